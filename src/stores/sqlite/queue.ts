import { Worker } from 'node:worker_threads'
import { MemoryError } from '../../domain/error.ts'
import type { Outcome, Task } from './group.ts'

/** A task on its way: JSON crosses threads quicker than objects do; what is numbers by the thousand goes as it is. */
type Sent = string | Task
const isNumbers = (task: Task): boolean => 'embed' in task || 'snapshot' in task

type Waiting = {
  readonly sent: Sent
  readonly isAlone: boolean
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: MemoryError) => void
}

/** A group as one message: a single text if it can be, for that crosses quickest. */
function joined(group: readonly Waiting[]): string | readonly Sent[] {
  const sent = group.map((one) => one.sent)
  return sent.every((one) => typeof one === 'string') ? `[${sent.join(',')}]` : sent
}

/** While some groups are on their way to the disk the next one is made; more would only make groups smaller. */
const mostUnderWay = 4
/** So many are worth a wait for the disk of their own while the others are still being made. */
const worthSending = 32
/** A group larger than this would keep the others waiting. */
const largestGroup = 512

/**
 * What is to be written waits here until the thread that writes is free, then goes there together: the busier the
 * store, the more writes share one wait for the disk.
 */
export class Queue {
  private readonly path: string
  private readonly waiting: Waiting[] = []
  private readonly underWay: (readonly Waiting[])[] = []
  private worker: Worker | undefined
  private ended: Promise<void> | undefined
  private drained: () => void = () => undefined
  private isDue = false

  constructor(path: string) {
    this.path = path
  }

  /** Resolves when it is on the disk; rejects if it was refused or could not be written. */
  submit(task: Task): Promise<Outcome> {
    if (this.ended !== undefined)
      return Promise.reject(new MemoryError('closed', `${this.path} is closed; open it again.`))
    return new Promise((resolve, reject) => {
      // What cannot be written down is refused here, before it could take others with it.
      const sent = isNumbers(task) ? task : JSON.stringify(task)
      // A kept index is large and can be done without: nobody's words should fail with it.
      this.waiting.push({ sent, isAlone: 'snapshot' in task, resolve, reject })
      if (this.waiting.length >= worthSending) return this.send()
      if (this.isDue) return
      this.isDue = true
      queueMicrotask(() => this.send())
    })
  }

  /** Resolves when everything submitted has been written and the database is closed. */
  close(): Promise<void> {
    this.ended ??= this.end()
    return this.ended
  }

  private async end(): Promise<void> {
    if (this.waiting.length > 0 || this.underWay.length > 0)
      await new Promise<void>((resolve) => (this.drained = resolve))
    const { worker } = this
    if (worker === undefined) return
    this.worker = undefined
    worker.ref()
    await new Promise<void>((resolve) => {
      worker.once('exit', () => resolve())
      worker.postMessage('close')
    })
  }

  private send(): void {
    this.isDue = false
    while (this.waiting.length > 0 && this.underWay.length < mostUnderWay) {
      const group = this.next()
      this.underWay.push(group)
      const worker = this.thread()
      // The process stays alive for as long as something is being written, and no longer.
      worker.ref()
      worker.postMessage(joined(group))
    }
  }

  private next(): readonly Waiting[] {
    const alone = this.waiting.findIndex(({ isAlone }) => isAlone)
    return this.waiting.splice(0, alone < 0 ? largestGroup : Math.min(largestGroup, Math.max(1, alone)))
  }

  private thread(): Worker {
    if (this.worker !== undefined) return this.worker
    // What the process was started with, such as a program on the command line, is none of the thread's business.
    const file = import.meta.url.endsWith('.ts') ? './writer.ts' : './writer.js'
    // What it reads is soon written and done with: a large nursery would only hold it longer.
    const worker = new Worker(new URL(file, import.meta.url), {
      workerData: { path: this.path },
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: 4 },
    })
    worker.on('message', (outcomes: string) => this.receive(worker, JSON.parse(outcomes) as readonly Outcome[]))
    worker.on('error', (error) => this.lose(worker, error))
    worker.on('exit', () => this.lose(worker, new Error('the writing thread ended')))
    this.worker = worker
    return worker
  }

  private receive(worker: Worker, outcomes: readonly Outcome[]): void {
    const group = this.underWay.shift() ?? []
    if (this.underWay.length === 0) worker.unref()
    group.forEach(({ resolve, reject }, at) => {
      const outcome = outcomes[at] as Outcome
      if ('failed' in outcome) reject(new MemoryError(outcome.failed.code, outcome.failed.message))
      else resolve(outcome)
    })
    if (this.waiting.length === 0 && this.underWay.length === 0) this.drained()
    // What the callers now ask for joins what is waiting.
    else setImmediate(() => this.send())
  }

  private lose(worker: Worker, cause: unknown): void {
    if (this.worker !== worker) return
    this.worker = undefined
    const lost = new MemoryError(
      'not-durable',
      `${this.path} could not be written to; whether it was stored is not known. Try again with the same operation id.`,
      { cause },
    )
    for (const { reject } of [...this.underWay.splice(0).flat(), ...this.waiting.splice(0)]) reject(lost)
    this.drained()
  }
}
