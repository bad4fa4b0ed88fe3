import { MemoryError } from '../domain/error.ts'
import type { Dataset } from './dataset.ts'
import {
  type ByBudget,
  type EvaluationOptions,
  evaluateEvidence,
  evaluateFutureReference,
  type FutureReferenceResult,
} from './evaluate.ts'
import type { EvidenceResult } from './evidence.ts'
import { evaluateIsolation, type IsolationResult } from './isolation.ts'
import { evaluatePrefix, type PrefixResult } from './prefix.ts'
import type { MemorySystem } from './system.ts'
import { evaluateUpdate, type UpdateResult, updateCategory } from './update.ts'

/** Results of each metric. */
type MetricResults = {
  readonly evidence: EvidenceResult
  readonly future: FutureReferenceResult
  readonly update: UpdateResult
  readonly isolation: IsolationResult
  readonly prefix: PrefixResult
}
export type Metric = keyof MetricResults

type Evaluate<T> = (dataset: Dataset, options: EvaluationOptions) => Promise<ByBudget<T> | undefined>
const evaluators: { readonly [Name in Metric]: Evaluate<MetricResults[Name]> } = {
  evidence: evaluateEvidence,
  future: evaluateFutureReference,
  update: evaluateUpdate,
  isolation: evaluateIsolation,
  prefix: evaluatePrefix,
}
export const metrics = Object.keys(evaluators) as readonly Metric[]

export const defaultBudgets: Readonly<Record<Metric, readonly number[]>> = {
  evidence: [500, 1_000, 2_000, 4_000],
  future: [1_000, 2_000, 4_000],
  update: [2_000],
  isolation: [2_000],
  prefix: [32_000],
}

/** Results of one metric on one dataset, by system; `undefined` where a system does not support the metric. */
export type MetricReport<Name extends Metric = Metric> = Name extends Metric
  ? {
      readonly dataset: string
      readonly metric: Name
      readonly systems: readonly { readonly system: string; readonly results?: ByBudget<MetricResults[Name]> }[]
    }
  : never

export type BenchmarkOptions = {
  readonly systems: readonly MemorySystem[]
  /** Default: `defaultMetrics` of each dataset. */
  readonly metrics?: readonly Metric[] | undefined
  /** Default: `defaultBudgets` of each metric. */
  readonly budgets?: readonly number[] | undefined
  readonly limit?: number | undefined
  readonly onProgress?: (step: BenchmarkStep) => void
}

export type BenchmarkStep = {
  readonly dataset: string
  readonly metric: Metric
  readonly system: string
  readonly done: number
  readonly total: number
}

const hasEvidence = ({ conversations }: Dataset): boolean =>
  conversations.some(({ questions }) => questions.some(({ evidence }) => evidence.length > 0))
const hasUpdates = ({ conversations }: Dataset): boolean =>
  conversations.some(({ questions }) => questions.some(({ category }) => category === updateCategory))

/** Returns the metrics that a dataset is made for: by its questions, or future reference if it has none. */
export function defaultMetrics(dataset: Dataset): Metric[] {
  if (!hasEvidence(dataset)) return ['future']
  return hasUpdates(dataset) ? ['evidence', 'update'] : ['evidence']
}

/** Measures systems on a dataset, metric by metric. */
export async function runBenchmark(
  dataset: Dataset,
  { systems, metrics: wanted, budgets, limit, onProgress }: BenchmarkOptions,
): Promise<MetricReport[]> {
  const selected = wanted ?? defaultMetrics(dataset)
  for (const metric of selected) requireQuestions(dataset, metric)
  const reports: MetricReport[] = []
  for (const metric of selected) {
    const results = []
    for (const system of systems) {
      const found = await evaluators[metric](dataset, {
        system,
        budgets: budgets ?? defaultBudgets[metric],
        ...(limit === undefined ? {} : { limit }),
        onProgress: (done, total) => onProgress?.({ dataset: dataset.name, metric, system: system.name, done, total }),
      })
      results.push({ system: system.name, ...(found === undefined ? {} : { results: found }) })
    }
    reports.push({ dataset: dataset.name, metric, systems: results } as MetricReport)
  }
  return reports
}

function requireQuestions(dataset: Dataset, metric: Metric): void {
  const isMissing =
    ((metric === 'evidence' || metric === 'isolation') && !hasEvidence(dataset)) ||
    (metric === 'update' && !hasUpdates(dataset))
  if (!isMissing) return
  const needed = metric === 'update' ? `questions of category ${updateCategory}` : 'questions with evidence'
  throw new MemoryError(
    'bad-option',
    `${dataset.name} has no ${needed}, which metric ${metric} needs. Add some, or choose another --metric.`,
    { param: 'metric' },
  )
}
