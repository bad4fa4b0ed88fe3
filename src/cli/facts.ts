import type { Command } from 'commander'
import type { Fact } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { parseKey } from '../domain/key.ts'
import type { Memory } from '../memory.ts'
import { formatCount } from '../text/formatCount.ts'
import { addStoreOptions, openExistingStore, requireSession, type StoreFlags } from './openStore.ts'
import { confirmOptions, parseDate } from './options.ts'
import { type ConfirmFlags, confirmOperation } from './terminal/confirm.ts'
import { explainNoFacts } from './terminal/emptyResults.ts'
import { option, setHelp } from './terminal/help.ts'
import { formatStatement, formatTime, printResult } from './terminal/output.ts'
import { formatTable } from './terminal/table.ts'

type Flags = StoreFlags &
  ConfirmFlags & {
    readonly asOf?: string
    readonly history?: boolean
    readonly record?: boolean
    readonly clear?: boolean
  }

export function addFactsCommand(program: Command): void {
  const command = addStoreOptions(program.command('facts'))
    .description('show or delete the facts extracted from a session')
    .argument('<key>', 'session, as scope:session')
    .addOption(option('--as-of <date>', 'facts that were valid at a time, such as 2026-03-01', { fallback: 'now' }))
    .option('--history', 'include superseded facts, with the time they were superseded')
    .option('--record', 'print facts and summary as one JSON record')
    .option('--clear', 'delete facts and summaries; messages are kept')
    .action(run)
  for (const confirmOption of confirmOptions()) command.addOption(confirmOption)
  setHelp(command, {
    details: [
      'Each line shows the field, the message that states the fact, the time and the value. Facts come only from messages of the user. They are extracted when a session has grown; threadkeep upkeep run extracts them now.',
    ],
    examples: [
      'threadkeep facts acme:ann',
      'threadkeep facts acme:ann --as-of 2026-03-01',
      'threadkeep facts acme:ann --record > record.json',
      'threadkeep facts acme:ann --clear',
    ],
  })
}

async function run(text: string, flags: Flags): Promise<void> {
  const key = parseKey(text)
  rejectConflictingFlags(flags)
  const asOf = flags.asOf === undefined ? {} : { asOf: parseDate(flags.asOf, 'as-of') }
  const store = await openExistingStore(flags, process.env)
  const { openMemory } = await import('../index.ts')
  await using memory = await openMemory({ store })
  await requireSession(store, key)
  if (flags.clear === true) return await clearFacts(memory, text, flags)
  if (flags.record === true) {
    const record = await memory.upkeep.record(key, asOf)
    return printResult(flags.json, record, [JSON.stringify(record, null, 2)])
  }
  const facts = await sortFacts(await memory.upkeep.facts(key, { ...asOf, history: flags.history === true }))
  const lines = facts.length === 0 ? [await explainNoFacts(key, flags.asOf)] : formatTable(facts.map(toRow))
  printResult(flags.json, { key: text, items: facts }, lines)
}

function rejectConflictingFlags({ asOf, history, record, clear }: Flags): void {
  const modes = [history, record, clear].filter((flag) => flag === true).length
  if (modes > 1)
    throw new MemoryError('bad-option', '--history, --record and --clear cannot be combined. Choose one.', {
      param: 'key',
    })
  if (asOf !== undefined && (history === true || clear === true))
    throw new MemoryError('bad-option', '--as-of cannot be combined with --history or --clear. Choose one.', {
      param: 'as-of',
    })
}

async function clearFacts({ upkeep }: Memory, key: string, flags: Flags): Promise<void> {
  const [facts, summaries] = await Promise.all([upkeep.facts(key, { history: true }), upkeep.summaries(key)])
  const deleted = `${formatCount(facts.length, 'fact')} and ${formatCount(summaries.length, 'summary', 'summaries')}`
  const confirmed = await confirmOperation(flags, {
    value: { wouldDelete: { key, facts, summaries } },
    lines: [
      `Would delete ${deleted} of ${key}. Messages are kept.`,
      ...formatTable([
        ...facts.map(toRow),
        ...summaries.map(({ tier, id, at, text }) => [`${tier} summary`, id, formatTime(at), text]),
      ]),
    ],
    question: `Delete ${deleted} of ${key}?`,
    otherwise: 'Nothing was deleted.',
  })
  if (!confirmed) return
  await upkeep.clear(key)
  printResult(flags.json, { key, facts: facts.length, summaries: summaries.length }, [
    `Deleted ${deleted} of ${key}. Messages are kept.`,
  ])
}

/** Sorts facts by field, then by the message that states them first. */
async function sortFacts(facts: readonly Fact[]): Promise<readonly Fact[]> {
  const [{ factFields }, { byFirstMention }] = await Promise.all([
    import('../upkeep/extract/fields.ts'),
    import('../upkeep/extract/merge.ts'),
  ])
  const sorted = [...facts].sort(byFirstMention)
  const names = new Set<string>([...factFields, ...sorted.map(({ field }) => field)])
  return [...names].flatMap((name) => sorted.filter(({ field }) => field === name))
}

function toRow(fact: Fact): readonly string[] {
  const [first, ...others] = fact.sources
  const source = `${first?.message ?? '-'}${others.length === 0 ? '' : ` +${others.length}`}`
  const until = fact.until === undefined ? '' : ` (until ${formatTime(fact.until)})`
  return [fact.field, source, formatTime(fact.at), `${formatStatement(fact)}${until}`]
}
