import { Worker } from 'node:worker_threads'
import { MemoryError } from '../domain/error.ts'
import type { Kind, Upload } from './kind.ts'
import type { FileLimits } from './limits.ts'
import type { Answer, Asked, Portion } from './thread.ts'
import { unreadable } from './unreadable.ts'

type Waiting = { readonly resolve: (portion: Portion) => void; readonly reject: (error: MemoryError) => void }

/** Reads files in a thread of its own, one after the other; it begins with the first one, and anew after a fault. */
export class Reader {
  private readonly limits: FileLimits
  private worker: Worker | undefined
  private waiting: Waiting | undefined
  private isClosed = false

  constructor(limits: FileLimits) {
    this.limits = limits
  }

  /** The pieces of a file, a portion at a time; the next file is for when this one is done with. */
  async *read(kind: Kind, file: Upload): AsyncGenerator<Portion> {
    let isDone = false
    try {
      for (let asked: Asked = { read: kind, file }; !isDone; asked = { next: true }) {
        const portion = await this.ask(asked)
        isDone = portion.isLast
        yield portion
      }
    } finally {
      if (!isDone) this.worker?.postMessage({ drop: true } satisfies Asked)
    }
  }

  /** Ends the thread; what is being read is given up. */
  async close(): Promise<void> {
    this.isClosed = true
    await this.end(closed())
  }

  private async ask(asked: Asked): Promise<Portion> {
    if (this.isClosed) throw closed()
    const worker = this.thread()
    worker.ref()
    const late = setTimeout(() => this.end(tooSlow(this.limits)), this.limits.milliseconds)
    try {
      return await new Promise<Portion>((resolve, reject) => {
        this.waiting = { resolve, reject }
        // Bytes go over as they are, without a copy.
        worker.postMessage(asked, 'read' in asked ? [asked.file.bytes.buffer as ArrayBuffer] : [])
      })
    } finally {
      clearTimeout(late)
      this.waiting = undefined
      // The process stays alive for as long as something is being read, and no longer.
      worker.unref()
    }
  }

  private thread(): Worker {
    if (this.worker !== undefined) return this.worker
    const { limits } = this
    // What the process was started with, such as a program on the command line, is none of the thread's business.
    const name = import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js'
    const worker = new Worker(new URL(name, import.meta.url), {
      workerData: { limits },
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: limits.heapMegabytes },
    })
    worker.on('message', (answer: Answer) => this.hear(answer))
    worker.on('error', (cause) => this.lose(worker, cause))
    worker.on('exit', () => this.lose(worker, undefined))
    this.worker = worker
    return worker
  }

  private hear(answer: Answer): void {
    if ('failed' in answer) this.waiting?.reject(new MemoryError('bad-message', answer.failed, { param: 'file' }))
    else this.waiting?.resolve(answer)
  }

  private lose(worker: Worker, cause: unknown): void {
    if (this.worker !== worker) return
    this.worker = undefined
    this.waiting?.reject(lost(cause))
  }

  private async end(why: MemoryError): Promise<void> {
    const { worker } = this
    this.worker = undefined
    this.waiting?.reject(why)
    await worker?.terminate()
  }
}

const closed = (): MemoryError => new MemoryError('closed', 'The server was stopped before the file was read. Upload it again.')

const lost = (cause: unknown): MemoryError =>
  (cause as NodeJS.ErrnoException | undefined)?.code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? unreadable('takes more memory to read than there is for it. Split it into smaller ones, or save it as text', cause)
    : unreadable('brought down the thread that read it. Save it again in its own program, or as text', cause)

const tooSlow = ({ milliseconds }: FileLimits): MemoryError =>
  unreadable(`took more than ${milliseconds / 1_000} s to read. Split it into smaller ones, or save it as text`)
