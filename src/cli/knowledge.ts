import type { Command } from 'commander'
import type { Knowledge } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { parseKey, type Scope } from '../domain/key.ts'
import type { Memory } from '../memory.ts'
import { exitCodesHelp } from './errors.ts'
import { addStoreOptions, openExistingStore, type StoreFlags } from './openStore.ts'
import { formatStatement, formatTable, formatTime, printResult, truncateLine } from './output.ts'

const help = `
Knowledge stated by a model is pending, and not shown to any model until it is approved. Rejected knowledge is deleted
permanently.

Examples:
  threadkeep knowledge list acme
  threadkeep knowledge approve acme k3
  threadkeep knowledge reject acme k3

${exitCodesHelp}`

export function addKnowledgeCommand(program: Command): void {
  const knowledge = program
    .command('knowledge')
    .description('list, approve or reject the knowledge of a scope')
    .addHelpText('after', help)
  addStoreOptions(knowledge.command('list'))
    .description('list the knowledge shared by all sessions of a scope, highest confidence first')
    .argument('<scope>', 'scope')
    .addHelpText('after', help)
    .action(list)
  addStoreOptions(knowledge.command('approve'))
    .description('approve pending knowledge')
    .argument('<scope>', 'scope')
    .argument('<id>', 'id shown by knowledge list')
    .addHelpText('after', help)
    .action(approve)
  addStoreOptions(knowledge.command('reject'))
    .description('delete knowledge permanently')
    .argument('<scope>', 'scope')
    .argument('<id>', 'id shown by knowledge list')
    .addHelpText('after', help)
    .action(reject)
}

async function list(text: string, flags: StoreFlags): Promise<void> {
  const scope = parseScope(text)
  await using memory = await openExistingMemory(flags)
  const items = [...(await memory.upkeep.knowledge(scope))].sort((a, b) => b.confidence - a.confidence)
  const lines = items.length === 0 ? [`No knowledge in ${scope}.`] : formatTable(items.map(toRow))
  printResult(flags.json, { scope, items }, lines)
}

function toRow(knowledge: Knowledge): readonly string[] {
  const pending = knowledge.pending === true ? ' (pending)' : ''
  return [
    knowledge.id,
    knowledge.confidence.toFixed(2),
    knowledge.category,
    `last used ${formatTime(knowledge.usedAt)}`,
    `${truncateLine(formatStatement(knowledge))}${pending}`,
  ]
}

async function approve(text: string, id: string, flags: StoreFlags): Promise<void> {
  const scope = parseScope(text)
  await using memory = await openExistingMemory(flags)
  const knowledge = await memory.upkeep.approve(scope, id)
  printResult(flags.json, knowledge, [
    `Approved ${knowledge.key} in ${scope} (${knowledge.category}, confidence ${Number(knowledge.confidence.toFixed(2))}).`,
  ])
}

async function reject(text: string, id: string, flags: StoreFlags): Promise<void> {
  const scope = parseScope(text)
  await using memory = await openExistingMemory(flags)
  const knowledge = (await memory.upkeep.knowledge(scope)).find((entry) => entry.id === id)
  // memory.forget() accepts the id of any entry in the scope's own memory; this command deletes only knowledge.
  if (knowledge === undefined)
    throw new MemoryError('bad-option', `No knowledge ${id} in ${scope}. Run threadkeep knowledge list ${scope}.`, {
      param: 'id',
    })
  const forgotten = await memory.forget({ key: scope, messageId: id })
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
