import { Worker } from 'node:worker_threads'
import { type ErrorCode, MemoryError } from '../../domain/error.ts'
import { estimateMessageBytes } from '../messageTail.ts'
import type { WriteResult, WriteTask } from './batchWriter.ts'
import type { GuardedFile } from './fileGuard.ts'

/**
 * JSON crosses threads faster than structured clones do; tasks with large binary data and long messages are sent as
 * they are, in one copy instead of three.
 */
type EncodedTask = string | WriteTask
const maxEncodedMessageBytes = 262_144
const isSentAsIs = (task: WriteTask): boolean =>
  'embed' in task ||
  'snapshot' in task ||
  ('commit' in task && task.commit.append.some((message) => estimateMessageBytes(message) > maxEncodedMessageBytes)) ||
  ('writeRows' in task && task.writeRows.some(({ value }) => value !== null && typeof value !== 'string'))

type PendingTask = {
  readonly encoded: EncodedTask
  /** Written in a batch of its own. */
  readonly isExclusive: boolean
  readonly resolve: (result: WriteResult) => void
  readonly reject: (error: MemoryError) => void
}

/** Encodes a batch as one JSON text if possible, which crosses threads fastest. */
function encodeBatch(batch: readonly PendingTask[]): string | readonly EncodedTask[] {
  const tasks = batch.map(({ encoded }) => encoded)
  return tasks.every((task) => typeof task === 'string') ? `[${tasks.join(',')}]` : tasks
}

/** The buffers of snapshots, which may have a hundred megabytes, are handed over instead of copied. */
const listTransfers = (batch: readonly PendingTask[]): ArrayBuffer[] =>
  batch.flatMap(({ encoded }) =>
    typeof encoded === 'object' && 'snapshot' in encoded ? [encoded.data.buffer as ArrayBuffer] : [],
  )

/** A failed write has a cause, which does not cross threads; its text does. */
const fromResult = ({ code, message }: { readonly code: ErrorCode; readonly message: string }): MemoryError =>
  new MemoryError(code, message, code === 'not-durable' ? { cause: new Error(message) } : {})

/** Batches sent to the worker at a time; more would only make batches smaller. */
const maxInFlightBatches = 4
/** Number of pending tasks that is sent at once instead of at the end of the microtask. */
const immediateBatchTasks = 32
/** A larger batch would delay the other tasks. */
const maxBatchTasks = 512

/**
 * Collects writes while the worker thread is busy and sends them as batches: the busier the store, the more writes
 * share one disk sync.
 */
export class WriteQueue {
  private readonly file: GuardedFile
  private readonly onFailure: (error: MemoryError) => MemoryError
  private readonly pending: PendingTask[] = []
  private readonly inFlight: (readonly PendingTask[])[] = []
  private worker: Worker | undefined
  private closing: Promise<void> | undefined
  private onDrained: () => void = () => undefined
  private isFlushScheduled = false

  /** `onFailure` sees every error before the caller does. */
  constructor(file: GuardedFile, onFailure: (error: MemoryError) => MemoryError) {
    this.file = file
    this.onFailure = onFailure
  }

  /** Resolves when the task is on disk; rejects if it was refused or could not be written. */
  submit(task: WriteTask): Promise<WriteResult> {
    if (this.closing !== undefined)
      return Promise.reject(new MemoryError('closed', `${this.file.path} is closed. Open it again.`))
    return new Promise((resolve, reject) => {
      // A task that cannot be serialized throws here, before it could fail a whole batch.
      const encoded = isSentAsIs(task) ? task : JSON.stringify(task)
      // Snapshots are large and optional: their failure must not affect other tasks. A wipe is no transaction.
      this.pending.push({ encoded, isExclusive: 'snapshot' in task || 'wipe' in task, resolve, reject })
      if (this.pending.length >= immediateBatchTasks) return this.flush()
      if (this.isFlushScheduled) return
      this.isFlushScheduled = true
      queueMicrotask(() => this.flush())
    })
  }

  /** Resolves when all submitted tasks are written and the database is closed. */
  close(): Promise<void> {
    this.closing ??= this.drainAndStop()
    return this.closing
  }

  private async drainAndStop(): Promise<void> {
    if (this.pending.length > 0 || this.inFlight.length > 0)
      await new Promise<void>((resolve) => (this.onDrained = resolve))
    const { worker } = this
    if (worker === undefined) return
    this.worker = undefined
    worker.ref()
    await new Promise<void>((resolve) => {
      worker.once('exit', () => resolve())
      worker.postMessage('close')
    })
  }

  private flush(): void {
    this.isFlushScheduled = false
    while (this.pending.length > 0 && this.inFlight.length < maxInFlightBatches) {
      const batch = this.takeBatch()
      this.inFlight.push(batch)
      const worker = this.getWorker()
      // Keeps the process alive while something is being written, and no longer.
      worker.ref()
      worker.postMessage(encodeBatch(batch), listTransfers(batch))
    }
  }

  private takeBatch(): readonly PendingTask[] {
    const exclusive = this.pending.findIndex(({ isExclusive }) => isExclusive)
    return this.pending.splice(0, exclusive < 0 ? maxBatchTasks : Math.min(maxBatchTasks, Math.max(1, exclusive)))
  }

  private getWorker(): Worker {
    if (this.worker !== undefined) return this.worker
    const file = import.meta.url.endsWith('.ts') ? './writer.ts' : './writer.js'
    const worker = new Worker(new URL(file, import.meta.url), {
      workerData: this.file,
      // Flags of the process, such as --eval, must not apply to the worker.
      execArgv: [],
      // Its objects are short-lived: a large young generation would only keep them longer.
      resourceLimits: { maxYoungGenerationSizeMb: 4 },
    })
    worker.on('message', (results: string) => this.handleResults(worker, JSON.parse(results) as readonly WriteResult[]))
    worker.on('error', (error) => this.handleWorkerLoss(worker, error))
    worker.on('exit', () => this.handleWorkerLoss(worker, new Error('the writer thread ended')))
    this.worker = worker
    return worker
  }

  private handleResults(worker: Worker, results: readonly WriteResult[]): void {
    const batch = this.inFlight.shift() ?? []
    if (this.inFlight.length === 0) worker.unref()
    batch.forEach(({ resolve, reject }, index) => {
      const result = results[index] as WriteResult
      if ('error' in result) reject(this.onFailure(fromResult(result.error)))
      else resolve(result)
    })
    if (this.pending.length === 0 && this.inFlight.length === 0) this.onDrained()
    // Deferred, so that tasks the callers submit now join the next batch.
    else setImmediate(() => this.flush())
  }

  private handleWorkerLoss(worker: Worker, cause: unknown): void {
    if (this.worker !== worker) return
    this.worker = undefined
    const error = new MemoryError(
      'not-durable',
      `${this.file.path} could not be written to; the change may or may not be stored. Try again with the same operation id.`,
      { cause },
    )
    for (const { reject } of [...this.inFlight.splice(0).flat(), ...this.pending.splice(0)]) reject(error)
    this.onDrained()
  }
}
