import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { defaultBudgets, type Metric, runBenchmark } from '../src/evaluation/benchmark.ts'
import { type Dataset, type DatasetConversation, readDataset } from '../src/evaluation/dataset.ts'
import { createProgressBar } from '../src/evaluation/progressBar.ts'
import { resolveSystems } from '../src/evaluation/systems/resolve.ts'
import { createCategoryTable, createTable, formatMarkdown } from '../src/evaluation/tables.ts'

/** Evaluation data is not part of the project. It is read from a folder that the user names. */
const instructions = `Set the folder with --data DIR or THREADKEEP_BENCH_DATA. It contains files such as locomo-dev.json.gz, beam-100k.json.gz and transcripts-dev.json.gz:
  [{ id, messages: [{ id, at, speaker, role, text, group }], questions: [{ id, category, query, answer, evidence }] }]
LoCoMo is published as snap-research/LoCoMo (CC BY-NC 4.0), BEAM as mohammadtavakoli78/BEAM; docs/evaluation.md describes the format.`

export const flags = parseArgs({
  options: {
    data: { type: 'string' },
    only: { type: 'string' },
    budget: { type: 'string' },
    limit: { type: 'string' },
    system: { type: 'string', multiple: true },
  },
  strict: false,
}).values as { data?: string; only?: string; budget?: string; limit?: string; system?: string[] }

const longBudgets = [1_000, 2_000, 4_000, 8_000]
const evidenceBudgets: Readonly<Record<string, readonly number[]>> = { 'beam-100k': longBudgets }
const evidenceSets = ['locomo-dev', 'beam-100k', 'friends-dev', 'qmsum-dev', 'realmem-dev'] as const
type DatasetName = (typeof evidenceSets)[number] | 'transcripts-dev'
/** Datasets that a metric is measured on, if they are in the folder. */
export const datasetsByMetric = {
  evidence: evidenceSets,
  prefix: ['locomo-dev', 'beam-100k', 'transcripts-dev'],
  future: ['transcripts-dev'],
} as const satisfies Partial<Record<Metric, readonly DatasetName[]>>

function findFile(name: DatasetName): string | undefined {
  const folder = flags.data ?? process.env.THREADKEEP_BENCH_DATA
  return folder === undefined ? undefined : join(folder, `${name}.json.gz`)
}

function exitWithInstructions(problem: string): never {
  console.error(`${problem}. ${instructions}`)
  process.exit(2)
}

/** Loads a dataset. Exits with instructions if it is not there. */
export async function loadDataset(name: DatasetName): Promise<readonly DatasetConversation[]> {
  const file = findFile(name)
  if (file === undefined || !existsSync(file))
    exitWithInstructions(`No ${name} data${file === undefined ? '' : ` at ${file}`}`)
  return (await readDataset(file)).conversations
}

/** Measures a metric on its datasets and prints Markdown tables. */
export async function printMetric(metric: keyof typeof datasetsByMetric, defaultSystems: readonly string[]) {
  const names = datasetsByMetric[metric].filter((name) => flags.only === undefined || name.startsWith(flags.only))
  const files = names.flatMap((name) => findFile(name) ?? []).filter((file) => existsSync(file))
  if (files.length === 0) exitWithInstructions(`No data for ${metric}`)
  const systems = await resolveSystems(flags.system ?? defaultSystems)
  const bar = createProgressBar(process.stderr)
  for (const file of files) {
    const dataset: Dataset = await readDataset(file)
    const reports = await runBenchmark(dataset, {
      systems,
      metrics: [metric],
      budgets: flags.budget?.split(',').map(Number) ?? budgetsOf(metric, dataset.name),
      limit: flags.limit === undefined ? undefined : Number(flags.limit),
      onProgress: ({ system, done, total }) => bar.update(done, total, `${dataset.name}, ${metric}, ${system}`),
    })
    bar.clear()
    for (const report of reports) {
      console.log(formatMarkdown(createTable(report)).join('\n'))
      if (report.metric === 'evidence') console.log(formatMarkdown(createCategoryTable(report)).join('\n'))
    }
  }
}

const budgetsOf = (metric: Metric, dataset: string): readonly number[] =>
  (metric === 'evidence' ? evidenceBudgets[dataset] : undefined) ?? defaultBudgets[metric]
