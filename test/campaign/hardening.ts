import { fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFailure } from './failures.ts'
import type { ShrunkFinding } from './findingCollector.ts'
import type { Figures, Part } from './part.ts'
import { Progress } from './progress.ts'
import { seedOf } from './random.ts'
import type { WorkerMessage, WorkerTask } from './worker.ts'

export type HardeningOptions = {
  readonly seed: number
  /** Inputs of each part; default: its full count. */
  readonly inputs?: number | undefined
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
  /** File of the shrunk input, relative to the repository. */
  readonly file: string
}

/** Runs a part with several processes and writes a file for each kind of failure. */
export async function runPart(part: Part, options: HardeningOptions): Promise<PartReport> {
  const planned = options.inputs ?? part.fullCount
  const workers = Math.max(1, Math.min(options.workers, part.maxWorkers, planned))
  const progress = new Progress(part, planned)
  const startedAt = Date.now()
  const shares = await Promise.all(
    Array.from({ length: workers }, (_, index) => {
      const inputs = Math.floor(planned / workers) + (index < planned % workers ? 1 : 0)
      const task = {
        part: part.name,
        seed: seedOf(options.seed, index),
        inputs,
        deadline: startedAt + options.seconds * 1_000,
      }
      return runWorker(task, (done) => progress.update(index, done))
    }),
  )
  progress.finish()
  return {
    part: part.name,
    unit: part.unit,
    done: shares.reduce((sum, { done }) => sum + done, 0),
    planned,
    seconds: Math.round((Date.now() - startedAt) / 1_000),
    figures: mergeFigures(shares.map(({ figures }) => figures)),
    failures: writeFailures(
      part,
      options.seed,
      shares.flatMap(({ findings }) => findings),
    ),
  }
}

type Share = { readonly done: number; readonly figures: Figures; readonly findings: readonly ShrunkFinding[] }

async function runWorker(task: WorkerTask, onProgress: (done: number) => void): Promise<Share> {
  const child = fork(new URL('./worker.ts', import.meta.url), [JSON.stringify(task)], {
    execArgv: ['--no-sparkplug', '--max-old-space-size=6000'],
  })
  let share: Share | undefined
  let progress = 0
  child.on('message', (message: WorkerMessage) => {
    if ('progress' in message) {
      progress = message.progress
      onProgress(progress)
    } else share = { ...message.result, findings: message.findings }
  })
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  if (share !== undefined) return share
  const detail = `The process of seed ${task.seed} ended with ${code ?? signal} after ${progress} inputs`
  const crash = { kind: 'crash', detail, input: { ...task }, count: 1, isRepeatable: false }
  return { done: progress, figures: {}, findings: [crash] }
}

/** Adds up the figures of all processes; the largest counts for those that begin with `max` or `longest`. */
function mergeFigures(all: readonly Figures[]): Figures {
  const merged = new Map<string, number>()
  for (const [name, value] of all.flatMap((figures) => Object.entries(figures))) {
    const known = merged.get(name) ?? 0
    merged.set(name, /^(?:max|longest)/.test(name) ? Math.max(known, value) : known + value)
  }
  return Object.fromEntries([...merged].sort(([a], [b]) => a.localeCompare(b)))
}

function writeFailures(part: Part, seed: number, findings: readonly ShrunkFinding[]): readonly PartFailure[] {
  const byKind = Map.groupBy(findings, ({ kind }) => kind)
  return [...byKind].map(([kind, [first, ...others]]) => {
    const { detail, input, isRepeatable } =
      [first, ...others].find((finding) => finding?.isRepeatable) ?? (first as ShrunkFinding)
    const count = [first, ...others].reduce((sum, finding) => sum + (finding?.count ?? 0), 0)
    const file = writeFailure({ part: part.name, kind, detail, seed, input })
    return { kind, detail, count, isRepeatable, file }
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
  const failures = reports.flatMap(({ part, failures: all }) =>
    all.map(
      ({ kind, detail, count, isRepeatable, file }) =>
        `${part}: ${kind} (${count}×${isRepeatable ? '' : ', not repeated alone'}): ${detail.replaceAll(/\s+/g, ' ').slice(0, 300)}\n  ${file}`,
    ),
  )
  return [`seed ${seed}`, ...table, '', ...figures, ...(failures.length === 0 ? [] : ['', ...failures])].join('\n')
}
