import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import type { BenchmarkStep, Metric, MetricReport } from '../evaluation/benchmark.ts'
import type { Dataset } from '../evaluation/dataset.ts'
import type { Table } from '../evaluation/tables.ts'
import { collectValues, jsonOption, parseInteger } from './options.ts'
import { option, setHelp } from './terminal/help.ts'
import { type Line, printResult } from './terminal/output.ts'
import { createProgress } from './terminal/progress.ts'
import { formatTable } from './terminal/table.ts'

type Flags = {
  readonly metric?: readonly string[]
  readonly system?: readonly string[]
  readonly budget?: readonly string[]
  readonly limit?: string
  readonly seed?: string
  readonly categories?: boolean
  readonly json?: boolean
  readonly markdown?: boolean
}

/** Metrics that the generated dataset is made for. */
const generatedMetrics: readonly Metric[] = ['evidence', 'update', 'future', 'isolation']

export function addBenchCommand(program: Command): void {
  const command = program
    .command('bench')
    .description('measure memory systems on conversations with questions')
    .argument('[file...]', 'datasets, as .json or .json.gz (default: a generated one)')
    .option('--metric <name>', 'evidence, future, update, isolation or prefix; repeatable', collectValues)
    .option('--system <name>', 'system or module; repeatable (thread, bm25, window)', collectValues)
    .option('--budget <tokens>', "token budget; repeatable (the metric's)", collectValues)
    .addOption(
      option('--limit <questions>', 'use at most this many questions, spread evenly over each file', {
        fallback: 'all',
      }),
    )
    .addOption(option('--seed <number>', 'seed of the generated dataset', { fallback: '1' }))
    .option('--categories', 'also print the evidence by category of question')
    .option('--markdown', 'print Markdown tables')
    .addOption(jsonOption())
    .action(run)
  setHelp(command, {
    details: [
      'Measures how much of what a question needs is in the context, without calling a language model. Files have the format of docs/evaluation.md. Metrics (default: those that the questions of the file allow):',
      {
        evidence: 'share of the evidence in the context, by turn and by word; p50 and p95 latency',
        future: 'share of the identifiers used soon after a cut that the context before the cut contains',
        update: 'contexts that show the newest value of a changed fact, and those that show only an old one',
        isolation: 'turns of other users in a context when all conversations share one store',
        prefix: 'share of a prompt that is a common prefix with the previous one (--limit counts conversations)',
      },
      'Systems: the profiles thread, support, summary, agent, handoff and ephemeral; window (last tokens of the conversation); bm25 (BM25 with dates and neighbours); or the path of a module that exports a memory system.',
    ],
    examples: [
      'threadkeep bench',
      'threadkeep bench chats.json --budget 500 --budget 2000',
      'threadkeep bench chats.json.gz --system thread --system ./peer.ts --markdown',
    ],
  })
}

async function run(files: readonly string[], flags: Flags): Promise<void> {
  if (flags.json === true && flags.markdown === true)
    throw new MemoryError('bad-option', '--json and --markdown cannot be combined. Choose one.', { param: 'markdown' })
  const [{ metrics, runBenchmark }, { resolveSystems }] = await Promise.all([
    import('../evaluation/benchmark.ts'),
    import('../evaluation/systems/resolve.ts'),
  ])
  const options = {
    systems: await resolveSystems(flags.system ?? ['thread', 'bm25', 'window']),
    metrics:
      withoutRepeats(flags.metric)?.map((name) => parseMetric(name, metrics)) ??
      (files.length === 0 ? generatedMetrics : undefined),
    budgets: withoutRepeats(flags.budget)?.map((text) => parseInteger(text, 'budget', 1)),
    limit: flags.limit === undefined ? undefined : parseInteger(flags.limit, 'limit', 1),
  }
  const datasets = await loadDatasets(files, flags.seed)
  using progress = createProgress(flags)
  const onProgress = ({ dataset, metric, system, done, total }: BenchmarkStep): void =>
    progress.count(`${dataset}, ${metric}, ${system}:`, done, total)
  const reports: MetricReport[] = []
  for (const dataset of datasets) reports.push(...(await runBenchmark(dataset, { ...options, onProgress })))
  progress.clear()
  await printReports(reports, flags)
}

const withoutRepeats = (values: readonly string[] | undefined): readonly string[] | undefined =>
  values === undefined ? undefined : [...new Set(values)]

function parseMetric(name: string, known: readonly Metric[]): Metric {
  const metric = known.find((candidate) => candidate === name)
  if (metric !== undefined) return metric
  throw new MemoryError('bad-option', `Unknown metric ${JSON.stringify(name)}. Use one of: ${known.join(', ')}.`, {
    param: 'metric',
  })
}

async function loadDatasets(files: readonly string[], seed: string | undefined): Promise<Dataset[]> {
  if (files.length > 0 && seed !== undefined)
    throw new MemoryError('bad-option', '--seed belongs to the generated dataset. Omit the files or the seed.', {
      param: 'seed',
    })
  if (files.length === 0) {
    const { generateDataset } = await import('../evaluation/generate/generate.ts')
    return [generateDataset(seed === undefined ? 1 : parseInteger(seed, 'seed', 0, 1_000_000))]
  }
  const { readDataset } = await import('../evaluation/dataset.ts')
  const datasets: Dataset[] = []
  for (const file of files) datasets.push(await readDataset(file))
  return datasets
}

async function printReports(reports: readonly MetricReport[], flags: Flags): Promise<void> {
  const { createCategoryTable, createTable, formatMarkdown } = await import('../evaluation/tables.ts')
  const tables = reports.flatMap((report) =>
    report.metric === 'evidence' && flags.categories === true
      ? [createTable(report), createCategoryTable(report)]
      : [createTable(report)],
  )
  const format: (table: Table) => Line[] = flags.markdown === true ? formatMarkdown : formatText
  printResult(flags.json, { reports }, tables.flatMap(format))
}

/** Formats a table as a title and aligned columns, with an empty line after it. */
const formatText = ({ title, header, rows }: Table): Line[] => [
  title,
  ...formatTable([header, ...rows], { header: true, numeric: numericColumnsOf(rows) }),
  '',
]

const numericColumnsOf = (rows: readonly (readonly string[])[]): ReadonlySet<number> =>
  new Set((rows[0] ?? []).flatMap((cell, column) => (/^[\d–]/.test(cell) ? [column] : [])))
