// Threadkeep, baselines and peers side by side: same data, encoder, budgets and scorer.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { formatTable } from '../src/cli/terminal/table.ts'
import { type Dataset, readDataset } from '../src/evaluation/dataset.ts'
import { evaluateEvidence, evaluateFutureReference } from '../src/evaluation/evaluate.ts'
import { createProgressBar } from '../src/evaluation/progressBar.ts'
import { formatPercent } from '../src/evaluation/statistics.ts'
import type { MemorySystem } from '../src/evaluation/system.ts'
import { resolveSystems } from '../src/evaluation/systems/resolve.ts'
import { loadPeers } from './peers/systems.ts'

type Comparison = {
  readonly title: string
  readonly file: string
  readonly metric: 'evidence' | 'future'
  readonly budgets: readonly number[]
}

const shortBudgets = [500, 1_000, 2_000, 4_000]
const comparisons: readonly Comparison[] = [
  { title: 'LoCoMo', file: 'locomo-dev', metric: 'evidence', budgets: shortBudgets },
  { title: 'FriendsQA', file: 'friends-dev', metric: 'evidence', budgets: shortBudgets },
  { title: 'QMSum', file: 'qmsum-dev', metric: 'evidence', budgets: shortBudgets },
  { title: 'RealMem', file: 'realmem-dev', metric: 'evidence', budgets: shortBudgets },
  { title: 'BEAM-100K', file: 'beam-100k', metric: 'evidence', budgets: [1_000, 2_000, 4_000, 8_000] },
  {
    title: 'Coding transcripts (future reference)',
    file: 'transcripts-dev',
    metric: 'future',
    budgets: [1_000, 2_000, 4_000],
  },
]

const help = `Usage: npm run bench -- peers [options]

Compares Threadkeep with baselines and other memory packages. Install them first: npm --prefix bench ci

  --data DIR          folder with the datasets (default: THREADKEEP_BENCH_DATA)
  --only NAME         only datasets whose file name starts with NAME; repeatable
  --system NAME       only systems whose name contains NAME; repeatable
  --budget N          token budget; repeatable (default: 500 to 4,000, BEAM to 8,000)
  --conversations N   only the first N conversations of each dataset
  --limit N           at most N questions per dataset, spread evenly
  --json              print JSON
  --help              print this text

Datasets: ${comparisons.map(({ file }) => file).join(', ')} (.json.gz, see docs/evaluation.md for the format).`

/** Results of one system; shares from 0 to 1. */
type Cell = {
  readonly budget: number
  readonly byTurn: number
  readonly byWord?: number
  readonly budgetShare?: number
}
type Row = {
  readonly dataset: string
  readonly system: string
  readonly cells: readonly Cell[]
  readonly error?: string
}

function fail(message: string): never {
  console.error(`${message}\nSee npm run bench -- peers --help`)
  process.exit(2)
}

function readOptions() {
  try {
    const text = { type: 'string' } as const
    const list = { type: 'string', multiple: true } as const
    const options = { data: text, only: list, system: list, budget: list, conversations: text, limit: text } as const
    const switches = { json: { type: 'boolean' }, help: { type: 'boolean' } } as const
    return parseArgs({ args: process.argv.slice(3), options: { ...options, ...switches } }).values
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error))
  }
}

function parseCount(value: string, name: string): number {
  const count = Number(value)
  return Number.isInteger(count) && count > 0 ? count : fail(`--${name} ${value} is not a positive integer.`)
}

const flags = readOptions()
const limits = {
  conversations: flags.conversations === undefined ? undefined : parseCount(flags.conversations, 'conversations'),
  questions: flags.limit === undefined ? undefined : parseCount(flags.limit, 'limit'),
  budgets: flags.budget?.map((value) => parseCount(value, 'budget')),
}

/** Selects the comparisons whose data exists. */
function selectComparisons(): { comparison: Comparison; path: string }[] {
  const folder = flags.data ?? process.env.THREADKEEP_BENCH_DATA
  if (folder === undefined) return fail('No data. Set the folder with --data DIR or THREADKEEP_BENCH_DATA.')
  for (const name of flags.only ?? [])
    if (!comparisons.some(({ file }) => file.startsWith(name)))
      fail(`Unknown dataset ${name}. Use one of: ${comparisons.map(({ file }) => file).join(', ')}.`)
  const selected = comparisons
    .filter(({ file }) => flags.only?.some((name) => file.startsWith(name)) ?? true)
    .map((comparison) => ({ comparison, path: join(folder, `${comparison.file}.json.gz`) }))
  const found = selected.filter(({ path }) => existsSync(path))
  for (const { path } of selected) if (!existsSync(path)) console.error(`Skipped: ${path} does not exist.`)
  return found.length > 0 ? found : fail(`No dataset in ${folder}.`)
}

const bar = createProgressBar(process.stderr)

async function evaluate(
  { title, metric, ...rest }: Comparison,
  dataset: Dataset,
  system: MemorySystem,
): Promise<Cell[]> {
  const budgets = limits.budgets ?? rest.budgets
  const options = {
    system,
    budgets,
    ...(limits.questions === undefined ? {} : { limit: limits.questions }),
    onProgress: (done: number, total: number) => bar.update(done, total, `${title}, ${system.name}`),
  }
  if (metric === 'evidence') return [...(await evaluateEvidence(dataset, options))]
  return (await evaluateFutureReference(dataset, options)).map(({ budget, reused }) => ({ budget, byTurn: reused }))
}

async function compare(comparison: Comparison, path: string): Promise<Row[]> {
  const { title, metric } = comparison
  const full = await readDataset(path)
  const dataset = { ...full, conversations: full.conversations.slice(0, limits.conversations) }
  let systemName = ''
  const onEncode = (done: number, total: number) => bar.update(done, total, `${title}, ${systemName}: encoding`)
  const peers = await loadPeers({ recentShare: metric === 'future' ? 0.5 : 0, onEncode })
  const systems = [...(await resolveSystems(['window', 'bm25', 'thread'])), ...peers].filter(
    ({ name }) => flags.system?.some((part) => name.toLowerCase().includes(part.toLowerCase())) ?? true,
  )
  if (systems.length === 0) fail(`No system has a name with ${flags.system?.join(' or ')}.`)
  const rows: Row[] = []
  for (const system of systems) {
    systemName = system.name
    const row = await evaluate(comparison, dataset, system).then(
      (cells) => ({ dataset: title, system: system.name, cells }),
      (error: Error) => ({ dataset: title, system: system.name, cells: [], error: error.message }),
    )
    rows.push(row)
    bar.clear()
    console.error(`${title}, ${system.name}: ${formatRow(row)}`)
  }
  return rows
}

const formatCells = (cells: readonly Cell[], value: (cell: Cell) => number | undefined): string =>
  cells.map((cell) => formatPercent(value(cell) ?? Number.NaN)).join(' / ') || '–'

function formatRow({ cells, error }: Row & { error?: string }): string {
  if (error !== undefined) return `failed: ${error}`
  const shown = formatCells(cells, ({ byTurn }) => byTurn)
  return cells[0]?.byWord === undefined ? shown : `${shown}; by word ${formatCells(cells, ({ byWord }) => byWord)}`
}

const formatBudget = (budget: number): string => (budget % 1_000 === 0 ? `${budget / 1_000}k` : String(budget))

/** Prints aligned tables for each dataset. */
function printTables(rows: readonly Row[]): void {
  for (const dataset of new Set(rows.map((row) => row.dataset))) {
    const own = rows.filter((row) => row.dataset === dataset)
    const sample = own.find(({ cells }) => cells.length > 0)?.cells ?? []
    const isEvidence = sample[0]?.byWord !== undefined
    const tables: [string, (cell: Cell) => number | undefined][] = isEvidence
      ? [
          ['evidence by turn, %', ({ byTurn }) => byTurn],
          ['evidence by word, %', ({ byWord }) => byWord],
          ['budget spent, %', ({ budgetShare }) => budgetShare],
        ]
      : [['identifiers shown, %', ({ byTurn }) => byTurn]]
    for (const [title, value] of tables) {
      const lines = own.map(({ system, cells }) => [
        system,
        ...cells.map((cell) => formatPercent(value(cell) ?? Number.NaN)),
      ])
      const header = ['', ...sample.map(({ budget }) => formatBudget(budget))]
      console.log(`\n${dataset}: ${title}`)
      for (const line of formatTable([header, ...lines], { numeric: new Set(sample.map((_, index) => index + 1)) }))
        console.log(`  ${line}`)
    }
  }
}

/** Prints a Markdown table with a row for each system and a column for each dataset. */
function printMarkdown(rows: readonly Row[], title: string, value: (cell: Cell) => number | undefined): void {
  const hasValue = ({ cells }: Row): boolean => cells.some((cell) => value(cell) !== undefined)
  const datasets = [...new Set(rows.filter(hasValue).map((row) => row.dataset))]
  if (datasets.length === 0) return
  const titles = datasets.map((dataset) => {
    const cells = rows.find((row) => row.dataset === dataset && row.cells.length > 0)?.cells ?? []
    return `${dataset}, ${cells.map(({ budget }) => formatBudget(budget)).join(' / ')}`
  })
  console.log(`\n| ${[title, ...titles].join(' | ')} |\n|---|${'---|'.repeat(datasets.length)}`)
  for (const system of new Set(rows.map((row) => row.system))) {
    const cells = datasets.map((dataset) =>
      formatCells(rows.find((row) => row.dataset === dataset && row.system === system)?.cells ?? [], value),
    )
    console.log(`| ${[system, ...cells].join(' | ')} |`)
  }
}

async function main(): Promise<void> {
  if (flags.help === true) return console.log(help)
  const { log } = console
  // Some packages print notices to standard output, which belongs to the result.
  console.log = console.error
  const rows: Row[] = []
  for (const { comparison, path } of selectComparisons()) rows.push(...(await compare(comparison, path)))
  console.log = log
  if (flags.json === true) return console.log(JSON.stringify(rows, undefined, 2))
  printTables(rows)
  printMarkdown(rows, 'by turn, %', ({ byTurn }) => byTurn)
  printMarkdown(rows, 'by word, %', ({ byWord }) => byWord)
}

await main()
