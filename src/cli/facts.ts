import type { Command } from 'commander'
import type { Fact } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { parseKey } from '../domain/key.ts'
import type { Memory } from '../memory.ts'
import { exitCodes } from './failure.ts'
import { aligned, glimpse, many, say, statement, timeOf } from './say.ts'
import { dateOf } from './settings.ts'
import { existingSession, existingStore, type StoreFlags, withStore } from './store.ts'

type Flags = StoreFlags & {
  readonly asOf?: string
  readonly history?: boolean
  readonly record?: boolean
  readonly clear?: boolean
}

const help = `
Each line tells the field, the message in which it was said, when, and what. Only what a user has said becomes a fact.

Examples:
  threadkeep facts acme:ann
  threadkeep facts acme:ann --as-of 2026-03-01
  threadkeep facts acme:ann --record > record.json
  threadkeep facts acme:ann --clear

${exitCodes}`

/** The command that shows what the user of a session has said that matters. */
export function addFacts(program: Command): void {
  withStore(program.command('facts'))
    .description('show what the user of a session has said that matters, or clear it')
    .argument('<key>', 'the session, as scope:session')
    .option('--as-of <date>', 'what held then, such as 2026-03-01')
    .option('--history', 'also what no longer holds, and until when it did')
    .option('--record', 'important data and summary in one record, as JSON')
    .option('--clear', 'take facts and summaries away; what was said stays')
    .addHelpText('after', help)
    .action(run)
}

async function run(text: string, flags: Flags): Promise<void> {
  const key = parseKey(text)
  refuseMixed(flags)
  const held = flags.asOf === undefined ? {} : { asOf: dateOf(flags.asOf, 'as-of') }
  const store = await existingStore(flags, process.env)
  const { openMemory } = await import('../index.ts')
  await using memory = await openMemory({ store })
  await existingSession(store, key)
  if (flags.clear === true) return clear(memory, text, flags)
  if (flags.record === true) {
    const record = await memory.upkeep.record(key, held)
    return say(flags.json, record, [JSON.stringify(record, null, 2)])
  }
  const facts = await inOrder(await memory.upkeep.facts(key, { ...held, history: flags.history === true }))
  say(flags.json, { key: text, items: facts }, facts.length === 0 ? ['No facts.'] : aligned(facts.map(rowOf)))
}

function refuseMixed({ asOf, history, record, clear: cleared }: Flags): void {
  const chosen = [history, record, cleared].filter((one) => one === true).length
  if (chosen > 1)
    throw new MemoryError('bad-option', '--history, --record and --clear do not go together; choose one.', {
      param: 'key',
    })
  if (asOf !== undefined && (history === true || cleared === true))
    throw new MemoryError('bad-option', '--as-of does not go with --history or --clear; choose one.', {
      param: 'as-of',
    })
}

async function clear({ upkeep }: Memory, key: string, flags: Flags): Promise<void> {
  const [facts, summaries] = await Promise.all([upkeep.facts(key, { history: true }), upkeep.summaries(key)])
  await upkeep.clear(key)
  const went = `${many(facts.length, 'fact')} and ${many(summaries.length, 'summary', 'summaries')}`
  say(flags.json, { key, facts: facts.length, summaries: summaries.length }, [
    `${went} of ${key} are gone; what was said stays.`,
  ])
}

/** Field by field, as they were said. */
async function inOrder(facts: readonly Fact[]): Promise<readonly Fact[]> {
  const [{ fields }, { bySaid }] = await Promise.all([
    import('../upkeep/extract/fields.ts'),
    import('../upkeep/extract/merge.ts'),
  ])
  const said = [...facts].sort(bySaid)
  const names = new Set<string>([...fields, ...said.map(({ field }) => field)])
  return [...names].flatMap((name) => said.filter(({ field }) => field === name))
}

function rowOf(fact: Fact): readonly string[] {
  const [first, ...others] = fact.sources
  const where = `${first?.message ?? '-'}${others.length === 0 ? '' : ` +${others.length}`}`
  const until = fact.until === undefined ? '' : ` (until ${timeOf(fact.until)})`
  return [fact.field, where, timeOf(fact.at), `${glimpse(statement(fact))}${until}`]
}
