import type { Command } from 'commander'
import type { Knowledge } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { parseKey, type Scope } from '../domain/key.ts'
import type { Memory } from '../memory.ts'
import { normalizeSecrets } from '../text/secrets.ts'
import { exitCodesHelp } from './errors.ts'
import { addStoreOptions, openExistingStore, type StoreFlags } from './openStore.ts'
import { formatStatement, formatTable, formatTime, printResult, truncateLine } from './output.ts'

const help = `
Knowledge stated by a model is pending, and not shown to any model until it is approved. Rejected knowledge is deleted
permanently. Knowledge that was learned and has not been used for a long time is archived: neither shown nor found, until
it is stated again or restored.

Examples:
  threadkeep knowledge list acme
  threadkeep knowledge list acme --archived
  threadkeep knowledge approve acme k3
  threadkeep knowledge restore acme k3
  threadkeep knowledge reject acme k3 --person ann

${exitCodesHelp}`

type Flags = StoreFlags & { readonly person?: string; readonly archived?: boolean }

export function addKnowledgeCommand(program: Command): void {
  const knowledge = program
    .command('knowledge')
    .description('list, approve, restore or reject the knowledge of a scope or a person')
    .addHelpText('after', help)
  const addCommand = (name: string, description: string): Command =>
    addStoreOptions(knowledge.command(name))
      .description(description)
      .argument('<scope>', 'scope')
      .option('--person <id>', 'knowledge about this person of the scope')
      .addHelpText('after', help)
  addCommand('list', 'list the knowledge shared by all sessions of a scope, highest confidence first')
    .option('--archived', 'include archived knowledge')
    .action(list)
  const id = ['<id>', 'id shown by knowledge list'] as const
  addCommand('approve', 'approve pending knowledge')
    .argument(...id)
    .action(approve)
  addCommand('restore', 'bring archived knowledge back')
    .argument(...id)
    .action(restore)
  addCommand('reject', 'delete knowledge permanently')
    .argument(...id)
    .action(reject)
}

/** The person of the flags, as an option of the library. */
const ownerOf = ({ person }: Flags): { person?: string } => (person === undefined ? {} : { person })

async function list(text: string, flags: Flags): Promise<void> {
  const scope = parseScope(text)
  await using memory = await openExistingMemory(flags)
  const listed = await memory.upkeep.knowledge(scope, { ...ownerOf(flags), archived: flags.archived === true })
  const items = [...listed].sort((a, b) => b.confidence - a.confidence)
  const lines = items.length === 0 ? [normalizeSecrets(`No knowledge in ${scope}.`)] : formatTable(items.map(toRow))
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
    `${truncateLine(formatStatement(knowledge))}${pending}${archived}`,
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
