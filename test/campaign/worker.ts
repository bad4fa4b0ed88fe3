/** Runs a share of a part in a process of its own: a crash ends the share, not the campaign. */

import { FindingCollector, type ShrunkFinding } from './findingCollector.ts'
import { Counter, type Figures, type Finding, type PartStore } from './part.ts'
import { parts } from './parts.ts'

export type WorkerTask = {
  readonly part: string
  readonly seed: number
  readonly inputs: number
  readonly store?: PartStore
  /** Time at which the worker stops although inputs are left, as `Date.now()`. */
  readonly deadline: number
  /** Most time for shrinking after that. */
  readonly maxShrinkMs: number
}
/** Figures while the part runs, the first finding of each kind at once, and the shrunk findings at the end. */
export type WorkerMessage =
  | { readonly done: number; readonly figures: Figures }
  | { readonly finding: Finding; readonly firstAfter: number }
  | { readonly shrunk: readonly ShrunkFinding[] }
/** Asks the worker to end without trying or shrinking further inputs. */
export type WorkerCommand = 'stop'

const sendIntervalMs = 500

const task = JSON.parse(process.argv[2] as string) as WorkerTask
const part = parts.find(({ name }) => name === task.part)
if (part === undefined) throw new Error(`Unknown part ${task.part}`)

const send = (message: WorkerMessage): void => void process.send?.(message)
const collector = new FindingCollector((finding, firstAfter) => send({ finding, firstAfter }))
const counter = new Counter()
let isStopped = false
let sentAt = 0
let tried = 0
const addFinding = (finding: Finding): void => collector.add(finding, tried)
const isOver = (): boolean => isStopped || Date.now() >= task.deadline

process.on('message', (command: WorkerCommand) => {
  isStopped = command === 'stop'
})
// A terminal sends its signals to all processes of the campaign; the first one decides.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined)
process.on('disconnect', () => process.exit())
process.on('unhandledRejection', (reason) =>
  addFinding({
    kind: 'unhandled rejection',
    detail: reason instanceof Error ? `${reason.stack}` : String(reason),
    input: null,
  }),
)

const done = await part.run({
  ...task,
  isOver,
  counter,
  onProgress: (progress) => {
    tried = progress
    if (Date.now() - sentAt < sendIntervalMs) return
    sentAt = Date.now()
    send({ done: progress, figures: counter.figures })
  },
  onFinding: addFinding,
})
send({ done, figures: counter.figures })
const shrunk = await collector.shrinkAll(part, Date.now() + task.maxShrinkMs, () => isStopped)
// Exiting at once would drop a large message.
process.send?.({ shrunk } satisfies WorkerMessage, () => process.exit())
