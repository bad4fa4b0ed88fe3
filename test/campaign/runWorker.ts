import { fork } from 'node:child_process'
import { once } from 'node:events'
import { type ShrunkFinding, withoutLongInput } from './findingCollector.ts'
import type { Figures, Finding } from './part.ts'
import { seedOf } from './random.ts'
import type { WorkerMessage, WorkerTask } from './worker.ts'

/** Result of one process, or of several after each other if some ended early. */
export type Share = { readonly done: number; readonly figures: Figures; readonly findings: readonly ShrunkFinding[] }

/** Time for the inputs in progress when a worker must stop, and the longest time without progress. */
const graceMs = 20_000
const maxSilentMs = 300_000
const checkIntervalMs = 500
const maxRestarts = 20

/** Runs a share; a worker that crashes or hangs is a finding, and another one goes on with the inputs that are left. */
export async function runShare(
  task: WorkerTask,
  isStopped: () => boolean,
  onProgress: (done: number) => void,
): Promise<Share> {
  let share: Share = { done: 0, figures: {}, findings: [] }
  for (let starts = 0; starts <= maxRestarts; starts++) {
    const { done } = share
    const rest = { ...task, seed: starts === 0 ? task.seed : seedOf(task.seed, starts), inputs: task.inputs - done }
    const { isComplete, ...next } = await runWorker(rest, isStopped, (count) => onProgress(done + count))
    share = mergeShares([share, next])
    if (isComplete || share.done >= task.inputs || isStopped() || Date.now() >= task.deadline) break
  }
  return share
}

async function runWorker(
  task: WorkerTask,
  isStopped: () => boolean,
  onProgress: (done: number) => void,
): Promise<Share & { readonly isComplete: boolean }> {
  const child = fork(new URL('./worker.ts', import.meta.url), [JSON.stringify(task)], {
    execArgv: ['--no-sparkplug', '--max-old-space-size=6000'],
  })
  let [done, figures, shrunk]: [number, Figures, readonly ShrunkFinding[] | undefined] = [0, {}, undefined]
  const known: { readonly finding: Finding; readonly firstAfter: number }[] = []
  let heardAt = Date.now()
  child.on('message', (message: WorkerMessage) => {
    heardAt = Date.now()
    if ('finding' in message) known.push(message)
    else if ('shrunk' in message) shrunk = message.shrunk
    else {
      ;({ done, figures } = message)
      onProgress(done)
    }
  })
  let stoppedAt: number | undefined
  let isHanging = false
  const timer = setInterval(() => {
    if (isStopped() && stoppedAt === undefined && child.connected) {
      stoppedAt = Date.now()
      child.send('stop')
    }
    const end = stoppedAt ?? task.deadline + task.maxShrinkMs
    if (Date.now() < end + graceMs && Date.now() - heardAt < maxSilentMs + task.maxShrinkMs) return
    isHanging = true
    child.kill('SIGKILL')
  }, checkIntervalMs)
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  clearInterval(timer)
  if (shrunk !== undefined) return { done, figures, findings: shrunk, isComplete: true }
  const findings = known.map(({ finding, firstAfter }) => ({
    ...withoutLongInput(finding),
    count: 1,
    isRepeatable: false,
    firstAfter,
  }))
  // A worker that is stopped by its user may be in the middle of a long input.
  if (isHanging && stoppedAt !== undefined) return { done, figures, findings, isComplete: true }
  const ending = isHanging ? 'did not end' : `ended with ${code ?? signal}`
  const detail = `The process of seed ${task.seed} ${ending} after ${done} inputs`
  const kind = isHanging ? 'hang' : 'crash'
  const failure = { kind, detail, input: { ...task }, count: 1, isRepeatable: false, firstAfter: done }
  return { done, figures, findings: [...findings, failure], isComplete: false }
}

/** Adds up the results of several processes; the largest counts for figures that contain `max` or `longest`. */
export function mergeShares(shares: readonly Share[]): Share {
  const figures = new Map<string, number>()
  for (const [name, value] of shares.flatMap((share) => Object.entries(share.figures))) {
    const known = figures.get(name) ?? 0
    figures.set(name, /\b(?:max|longest)\b/.test(name) ? Math.max(known, value) : known + value)
  }
  return {
    done: shares.reduce((sum, { done }) => sum + done, 0),
    figures: Object.fromEntries([...figures].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))),
    findings: shares.flatMap(({ findings }) => findings),
  }
}
