import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { MemoryError } from '../domain/error.ts'
import type { Kind, Upload } from './kind.ts'
import type { FileLimits } from './limits.ts'
import type { Answer, Asked, Portion } from './readerProcess.ts'
import { unreadable } from './unreadable.ts'

type Waiting = { readonly resolve: (portion: Portion) => void; readonly reject: (error: MemoryError) => void }

/** Reads files in a process of its own, one after the other; it begins with the first one, and anew after a fault. */
export class Reader {
  private readonly limits: FileLimits
  private child: ChildProcess | undefined
  private waiting: Waiting | undefined
  private isClosed = false

  constructor(limits: FileLimits) {
    this.limits = limits
  }

  /** The pieces of a file, a portion at a time; the next file is for when this one is done with. */
  async *read(kind: Kind, file: Upload): AsyncGenerator<Portion> {
    let isDone = false
    try {
      for (let asked: Asked = { read: kind, file, limits: this.limits }; !isDone; asked = { next: true }) {
        const portion = await this.ask(asked)
        isDone = portion.isLast
        yield portion
      }
    } finally {
      if (!isDone && this.child?.connected === true) this.child.send({ drop: true } satisfies Asked)
    }
  }

  /** Ends the process; what is being read is given up. */
  async close(): Promise<void> {
    this.isClosed = true
    await this.end(closed())
  }

  private async ask(asked: Asked): Promise<Portion> {
    if (this.isClosed) throw closed()
    const child = this.process()
    // This process stays alive for as long as something is being read, and no longer.
    keepAlive(child, true)
    const late = setTimeout(() => this.end(tooSlow(this.limits)), this.limits.milliseconds)
    try {
      return await new Promise<Portion>((resolve, reject) => {
        this.waiting = { resolve, reject }
        child.send(asked, (error) => error && this.lose(child, error))
      })
    } finally {
      clearTimeout(late)
      this.waiting = undefined
      keepAlive(child, false)
    }
  }

  private process(): ChildProcess {
    if (this.child !== undefined) return this.child
    const name = import.meta.url.endsWith('.ts') ? './readerProcess.ts' : './readerProcess.js'
    const child = fork(new URL(name, import.meta.url), [], {
      // What this process was started with, and the keys in its environment, are none of a file's business; Windows needs one name of it.
      execArgv: [`--max-old-space-size=${this.limits.heapMegabytes}`],
      env: { SystemRoot: process.env.SystemRoot },
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    child.on('message', (answer: Answer) => this.hear(answer))
    child.on('error', (cause) => this.lose(child, cause))
    child.on('exit', () => this.lose(child, undefined))
    this.child = child
    return child
  }

  private hear(answer: Answer): void {
    if ('failed' in answer) this.waiting?.reject(new MemoryError('bad-message', answer.failed, { param: 'file' }))
    else this.waiting?.resolve(answer)
  }

  private lose(child: ChildProcess, cause: unknown): void {
    if (this.child !== child) return
    this.child = undefined
    this.waiting?.reject(
      unreadable(
        'takes more memory to read than there is for it. Split it into smaller ones, or save it as text',
        cause,
      ),
    )
  }

  private async end(why: MemoryError): Promise<void> {
    const { child } = this
    this.child = undefined
    this.waiting?.reject(why)
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    keepAlive(child, true)
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
}

function keepAlive(child: ChildProcess, isWanted: boolean): void {
  if (isWanted) {
    child.ref()
    child.channel?.ref()
  } else {
    child.unref()
    child.channel?.unref()
  }
}

const closed = (): MemoryError =>
  new MemoryError('closed', 'The server was stopped before the file was read. Upload it again.')

const tooSlow = ({ milliseconds }: FileLimits): MemoryError =>
  unreadable(`took more than ${milliseconds / 1_000} s to read. Split it into smaller ones, or save it as text`)
