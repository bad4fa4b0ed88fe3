import { writeFailure } from './failures.ts'
import type { ShrunkFinding } from './findingCollector.ts'
import type { Figures, Part, PartStore } from './part.ts'
import { Progress } from './progress.ts'
import { seedOf } from './random.ts'
import { mergeShares, runShare } from './runWorker.ts'

export type HardeningOptions = {
  readonly seed: number
  /** Inputs of each part; default: its full count. */
  readonly inputs?: number | undefined
  /** Store of the parts that can use several. */
  readonly store?: PartStore | undefined
  /** Most seconds of each part. */
  readonly seconds: number
  readonly workers: number
}

/** Result of a part. */
export type PartReport = {
  readonly part: string
  readonly unit: string
  readonly done: number
  readonly planned: number
  readonly seconds: number
  readonly figures: Figures
  readonly failures: readonly PartFailure[]
}
export type PartFailure = {
  readonly kind: string
  readonly detail: string
  readonly count: number
  readonly isRepeatable: boolean
  readonly firstAfter: number
  /** File of the shrunk input, relative to the repository. */
  readonly file: string
}

/** Time for shrinking after a part, as a share of its own time. */
const shrinkShare = 0.5
const maxShrinkMs = 150_000

/** Runs a part with several processes and writes a file for each kind of failure. */
export async function runPart(part: Part, options: HardeningOptions, isStopped: () => boolean): Promise<PartReport> {
  const planned = options.inputs ?? part.fullCount
  const workers = Math.max(1, Math.min(options.workers, part.maxWorkers, planned))
  const startedAt = Date.now()
  const deadline = startedAt + options.seconds * 1_000
  using progress = new Progress(part, planned, deadline)
  const shares = await Promise.all(
    Array.from({ length: workers }, (_, index) => {
      const task = {
        part: part.name,
        ...(options.store !== undefined && { store: options.store }),
        seed: seedOf(options.seed, index),
        inputs: Math.floor(planned / workers) + (index < planned % workers ? 1 : 0),
        deadline,
        maxShrinkMs: Math.min(maxShrinkMs, options.seconds * 1_000 * shrinkShare),
      }
      return runShare(task, isStopped, (done) => progress.update(index, done))
    }),
  )
  const { done, figures, findings } = mergeShares(shares)
  return {
    part: part.name,
    unit: part.unit,
    done,
    planned,
    seconds: Math.round((Date.now() - startedAt) / 1_000),
    figures,
    failures: writeFailures(part, options.seed, findings),
  }
}

function writeFailures(part: Part, seed: number, findings: readonly ShrunkFinding[]): readonly PartFailure[] {
  const byKind = Map.groupBy(findings, ({ kind }) => kind)
  return [...byKind].map(([kind, [first, ...others]]) => {
    const { detail, input, isRepeatable } =
      [first, ...others].find((finding) => finding?.isRepeatable) ?? (first as ShrunkFinding)
    const count = [first, ...others].reduce((sum, finding) => sum + (finding?.count ?? 0), 0)
    const firstAfter = Math.min(...[first, ...others].map((finding) => finding?.firstAfter ?? 0))
    const file = writeFailure({ part: part.name, kind, detail, seed, input })
    return { kind, detail, count, isRepeatable, firstAfter, file }
  })
}

/** Formats the results as a table, with the failures and other figures below. */
export function formatReports(reports: readonly PartReport[], seed: number): string {
  const rows = [
    ['part', 'tried', 'planned', 'seconds', 'per second', 'failures'],
    ...reports.map(({ part, unit, done, planned, seconds, failures }) => [
      part,
      `${done} ${unit}`,
      `${planned}`,
      `${seconds}`,
      `${Math.round(done / Math.max(1, seconds))}`,
      `${failures.length}`,
    ]),
  ]
  const widths = (rows[0] as string[]).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  const table = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  const figures = reports.flatMap(({ part, figures: all }) =>
    Object.entries(all).map(([name, value]) => `${part}: ${name}: ${value}`),
  )
  const failures = reports.flatMap(({ part, unit, failures: all }) =>
    all.map(
      ({ kind, detail, count, isRepeatable, firstAfter, file }) =>
        `${part}: ${kind} (${count}×, first after ${firstAfter} ${unit}${isRepeatable ? '' : ', not repeated alone'}): ${detail.replaceAll(/\s+/g, ' ').slice(0, 300)}\n  ${file}`,
    ),
  )
  return [`seed ${seed}`, ...table, '', ...figures, ...(failures.length === 0 ? [] : ['', ...failures])].join('\n')
}
