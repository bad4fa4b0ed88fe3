import type { Command } from 'commander'
import type { Knowledge } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { parseKey, type Scope } from '../domain/key.ts'
import type { Memory } from '../memory.ts'
import { addStoreOptions, openExistingStore, type StoreFlags } from './openStore.ts'
import { confirmOptions } from './options.ts'
import { type ConfirmFlags, confirmOperation } from './terminal/confirm.ts'
import { explainNoKnowledge } from './terminal/emptyResults.ts'
import { setHelp } from './terminal/help.ts'
import { formatStatement, formatTime, printResult } from './terminal/output.ts'
import { formatTable } from './terminal/table.ts'

const details = [
  'Knowledge stated by a model is pending, and not shown to any model until it is approved. Rejected knowledge is deleted permanently. Knowledge that was learned and has not been used for a long time is archived: neither shown nor found, until it is stated again or restored.',
]

type Flags = StoreFlags & ConfirmFlags & { readonly person?: string; readonly archived?: boolean }

export function addKnowledgeCommand(program: Command): void {
  const description = 'list, approve, restore or reject the knowledge of a scope or a person'
  const knowledge = setHelp(program.command('knowledge').description(description), {
    details,
    examples: ['threadkeep knowledge list acme', 'threadkeep knowledge approve acme k3'],
  })
  const addCommand = (name: string, description: string, examples: readonly string[]): Command =>
    setHelp(addStoreOptions(knowledge.command(name)), { details, examples })
      .description(description)
      .argument('<scope>', 'scope')
      .option('--person <id>', 'knowledge about this person of the scope')
  addCommand('list', 'list the knowledge shared by all sessions of a scope, highest confidence first', [
    'threadkeep knowledge list acme',
    'threadkeep knowledge list acme --archived',
  ])
    .option('--archived', 'include archived knowledge')
    .action(list)
  const id = ['<id>', 'id shown by knowledge list'] as const
  addCommand('approve', 'approve pending knowledge', [
    'threadkeep knowledge approve acme k3',
    'threadkeep knowledge approve acme k3 --person ann',
  ])
    .argument(...id)
    .action(approve)
  addCommand('restore', 'bring archived knowledge back', [
    'threadkeep knowledge restore acme k3',
    'threadkeep knowledge restore acme k3 --json',
  ])
    .argument(...id)
    .action(restore)
  const rejectCommand = addCommand('reject', 'delete knowledge permanently', [
    'threadkeep knowledge reject acme k3',
    'threadkeep knowledge reject acme k3 --person ann --yes',
  ])
    .argument(...id)
    .action(reject)
  for (const confirmOption of confirmOptions()) rejectCommand.addOption(confirmOption)
}

/** The person of the flags, as an option of the library. */
const ownerOf = ({ person }: Flags): { person?: string } => (person === undefined ? {} : { person })

async function list(text: string, flags: Flags): Promise<void> {
  const scope = parseScope(text)
  await using memory = await openExistingMemory(flags)
  const listed = await memory.upkeep.knowledge(scope, { ...ownerOf(flags), archived: flags.archived === true })
  const items = [...listed].sort((a, b) => b.confidence - a.confidence)
  const lines = items.length === 0 ? [await explainNoKnowledge(scope)] : formatTable(items.map(toRow))
  printResult(flags.json, { scope, items }, lines)
}

function toRow(knowledge: Knowledge): readonly string[] {
  const pending = knowledge.pending === true ? ' (pending)' : ''
  const archived = knowledge.archived === true ? ' (archived)' : ''
  return [
    knowledge.id,
    knowledge.confidence.toFixed(2),
    knowledge.category,
    `last used ${formatTime(knowledge.usedAt)}`,
    `${formatStatement(knowledge)}${pending}${archived}`,
  ]
}

const describe = ({ category, confidence }: Knowledge): string =>
  `(${category}, confidence ${Number(confidence.toFixed(2))})`

async function approve(text: string, id: string, flags: Flags): Promise<void> {
  const scope = parseScope(text)
  await using memory = await openExistingMemory(flags)
  const knowledge = await memory.upkeep.approve(scope, id, ownerOf(flags))
  printResult(flags.json, knowledge, [`Approved ${knowledge.key} in ${scope} ${describe(knowledge)}.`])
}

async function restore(text: string, id: string, flags: Flags): Promise<void> {
  const scope = parseScope(text)
  await using memory = await openExistingMemory(flags)
  const knowledge = await memory.upkeep.restore(scope, id, ownerOf(flags))
  printResult(flags.json, knowledge, [`Restored ${knowledge.key} in ${scope} ${describe(knowledge)}.`])
}

async function reject(text: string, id: string, flags: Flags): Promise<void> {
  const scope = parseScope(text)
  await using memory = await openExistingMemory(flags)
  const listed = await memory.upkeep.knowledge(scope, { ...ownerOf(flags), archived: true })
  const knowledge = listed.find((entry) => entry.id === id)
  // memory.forget() accepts the id of any entry in the scope's own memory; this command deletes only knowledge.
  if (knowledge === undefined)
    throw new MemoryError('bad-option', `No knowledge ${id} in ${scope}. Run threadkeep knowledge list ${scope}.`, {
      param: 'id',
    })
  const confirmed = await confirmOperation(flags, {
    value: { wouldForget: knowledge },
    lines: [`Would delete from ${scope}:`, ...formatTable([toRow(knowledge)])],
    question: 'Delete this knowledge for good?',
    otherwise: 'Nothing was deleted.',
  })
  if (!confirmed) return
  const forgotten = await memory.forget({ key: scope, messageId: id, ...ownerOf(flags) })
  printResult(flags.json, forgotten, [`Rejected ${knowledge.key} and deleted it from ${scope}.`])
}

/** Parses a scope. Rejects a session key, in which the id would name a message. */
function parseScope(text: string): Scope {
  const { scope, id } = parseKey(text)
  if (id === '') return scope
  throw new MemoryError('bad-option', `Knowledge belongs to a scope. Use ${scope} instead of ${text}.`, {
    param: 'scope',
  })
}

async function openExistingMemory(flags: StoreFlags): Promise<Memory> {
  const store = await openExistingStore(flags, process.env)
  const { openMemory } = await import('../index.ts')
  return openMemory({ store })
}
