import type { Command } from 'commander'
import type { Knowledge } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { parseKey, type Scope } from '../domain/key.ts'
import type { Memory } from '../memory.ts'
import { exitCodes } from './failure.ts'
import { aligned, glimpse, say, statement, timeOf } from './say.ts'
import { existingStore, type StoreFlags, withStore } from './store.ts'

const help = `
What a model claims waits for approval, and is shown to no model until then. What is rejected is forgotten for good.

Examples:
  threadkeep knowledge list acme
  threadkeep knowledge approve acme k3
  threadkeep knowledge reject acme k3

${exitCodes}`

/** The commands that show what a scope knows, and decide on what waits for approval. */
export function addKnowledge(program: Command): void {
  const knowledge = program
    .command('knowledge')
    .description('list what a scope knows, approve it or reject it')
    .addHelpText('after', help)
  withStore(knowledge.command('list'))
    .description('list what every session of a scope knows, the surest first')
    .argument('<scope>', 'the scope')
    .addHelpText('after', help)
    .action(list)
  withStore(knowledge.command('approve'))
    .description('let knowledge that waits for approval be shown')
    .argument('<scope>', 'the scope')
    .argument('<id>', 'the id it is listed with')
    .addHelpText('after', help)
    .action(approve)
  withStore(knowledge.command('reject'))
    .description('forget knowledge for good')
    .argument('<scope>', 'the scope')
    .argument('<id>', 'the id it is listed with')
    .addHelpText('after', help)
    .action(reject)
}

async function list(text: string, flags: StoreFlags): Promise<void> {
  const scope = scopeOf(text)
  await using memory = await opened(flags)
  const items = [...(await memory.upkeep.knowledge(scope))].sort((a, b) => b.confidence - a.confidence)
  say(flags.json, { scope, items }, items.length === 0 ? [`${scope} knows nothing.`] : aligned(items.map(rowOf)))
}

function rowOf(known: Knowledge): readonly string[] {
  const pending = known.pending === true ? ' (pending)' : ''
  return [
    known.id,
    known.confidence.toFixed(2),
    known.category,
    `last used ${timeOf(known.usedAt)}`,
    `${glimpse(statement(known))}${pending}`,
  ]
}

async function approve(text: string, id: string, flags: StoreFlags): Promise<void> {
  const scope = scopeOf(text)
  await using memory = await opened(flags)
  const known = await memory.upkeep.approve(scope, id)
  say(flags.json, known, [
    `${scope} knows ${known.key} (${known.category}, confidence ${Number(known.confidence.toFixed(2))}).`,
  ])
}

async function reject(text: string, id: string, flags: StoreFlags): Promise<void> {
  const scope = scopeOf(text)
  await using memory = await opened(flags)
  const known = (await memory.upkeep.knowledge(scope)).find((one) => one.id === id)
  // Forgetting takes any entry of the scope's own memory, and this command is not to take another.
  if (known === undefined)
    throw new MemoryError('bad-option', `${scope} knows nothing with the id ${id}.`, { param: 'id' })
  const forgotten = await memory.forget({ key: scope, messageId: id })
  say(flags.json, forgotten, [`${scope} has forgotten ${known.key}, for good.`])
}

/** With a session in its place, an id would be that of one of its messages. */
function scopeOf(text: string): Scope {
  const { scope, id } = parseKey(text)
  if (id === '') return scope
  throw new MemoryError('bad-option', `Knowledge belongs to a scope: write ${scope} instead of ${text}.`, {
    param: 'scope',
  })
}

async function opened(flags: StoreFlags): Promise<Memory> {
  const store = await existingStore(flags, process.env)
  const { openMemory } = await import('../index.ts')
  return openMemory({ store })
}
