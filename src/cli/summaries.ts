import type { Command } from 'commander'
import { formatMessageId, type Summary } from '../domain/entry.ts'
import { parseKey } from '../domain/key.ts'
import { formatCount } from '../text/formatCount.ts'
import type { SummaryLosses } from '../upkeep/upkeep.ts'
import { addStoreOptions, openExistingStore, requireSession, type StoreFlags } from './openStore.ts'
import { explainNoSummaries } from './terminal/emptyResults.ts'
import { setHelp } from './terminal/help.ts'
import { formatRange, type Line, printResult } from './terminal/output.ts'
import { formatTable } from './terminal/table.ts'

type Flags = StoreFlags & { readonly lost?: boolean }

export function addSummariesCommand(program: Command): void {
  const command = addStoreOptions(program.command('summaries'))
    .description('show the summaries of a session, or the details they omit')
    .argument('<key>', 'session, as scope:session')
    .option('--lost', 'names, numbers and rules missing from the summaries, each with the message that contains it')
    .action(run)
  setHelp(command, {
    details: [
      'Each line shows the tier, the version, the author, the messages covered, the number of words and the text. With --lost, each line shows the message, the kind of detail and the detail itself. Summaries are made when a session has grown; threadkeep upkeep run --force makes one now.',
    ],
    examples: ['threadkeep summaries acme:ann', 'threadkeep summaries acme:ann --lost'],
  })
}

async function run(text: string, flags: Flags): Promise<void> {
  const key = parseKey(text)
  const store = await openExistingStore(flags, process.env)
  const { openMemory } = await import('../index.ts')
  await using memory = await openMemory({ store })
  await requireSession(store, key)
  const items = await memory.upkeep.summaries(key)
  if (items.length === 0) return printResult(flags.json, { key: text, items }, [await explainNoSummaries(key)])
  if (flags.lost !== true) return printResult(flags.json, { key: text, items }, await formatSummaries(items))
  const losses = await memory.upkeep.losses(key)
  printResult(flags.json, { key: text, items: losses }, formatLosses(losses))
}

async function formatSummaries(summaries: readonly Summary[]): Promise<Line[]> {
  const { countWords } = await import('../upkeep/summarise/summary.ts')
  return formatTable(
    summaries.map(({ tier, version, by, covers: [first, last], text }) => [
      tier,
      `version ${version}`,
      `by ${by}`,
      formatRange(formatMessageId(first), formatMessageId(last)),
      formatCount(countWords(text), 'word'),
      text,
    ]),
  )
}

function formatLosses(summaries: readonly SummaryLosses[]): Line[] {
  const rows = summaries.flatMap(({ losses }) => losses.map(({ kind, text, source }) => [source.message, kind, text]))
  return rows.length === 0 ? ['No losses.'] : formatTable(rows)
}
