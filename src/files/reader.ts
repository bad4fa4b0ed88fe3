import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { MemoryError } from '../domain/error.ts'
import type { FileKind, Upload } from './kind.ts'
import { type FileLimits, unreadableFileError } from './limits.ts'
import type { ReaderRequest, ReaderResponse, SegmentBatch } from './readerProcess.ts'

type PendingRequest = {
  readonly resolve: (batch: SegmentBatch) => void
  readonly reject: (error: MemoryError) => void
}

/** Parses files in a child process, one at a time. Starts the process on first use and again after a crash. */
export class Reader {
  private readonly limits: FileLimits
  private child: ChildProcess | undefined
  private pending: PendingRequest | undefined
  private isClosed = false

  constructor(limits: FileLimits) {
    this.limits = limits
  }

  /** Yields the segments of a file in batches; must be finished before the next file is read. */
  async *read(kind: FileKind, upload: Upload): AsyncGenerator<SegmentBatch> {
    let isDone = false
    let request: ReaderRequest = { type: 'read', kind, upload, limits: this.limits }
    try {
      while (!isDone) {
        const batch = await this.request(request)
        isDone = batch.isLast
        yield batch
        request = { type: 'next' }
      }
    } finally {
      if (!isDone && this.child?.connected === true) this.child.send({ type: 'discard' } satisfies ReaderRequest)
    }
  }

  /** Kills the process; a pending read fails. */
  async close(): Promise<void> {
    this.isClosed = true
    await this.kill(closedError())
  }

  private async request(request: ReaderRequest): Promise<SegmentBatch> {
    if (this.isClosed) throw closedError()
    const child = this.ensureChild()
    setRef(child, true)
    const timeout = setTimeout(() => this.kill(timeoutError(this.limits)), this.limits.parseTimeoutMs)
    try {
      return await new Promise<SegmentBatch>((resolve, reject) => {
        this.pending = { resolve, reject }
        child.send(request, (error) => error && this.handleExit(child, error))
      })
    } finally {
      clearTimeout(timeout)
      this.pending = undefined
      setRef(child, false)
    }
  }

  private ensureChild(): ChildProcess {
    if (this.child !== undefined) return this.child
    const fileName = import.meta.url.endsWith('.ts') ? './readerProcess.ts' : './readerProcess.js'
    const child = fork(new URL(fileName, import.meta.url), [], {
      // Parsers get neither the flags nor the environment of this process, which may hold keys. Windows needs
      // SystemRoot.
      execArgv: [`--max-old-space-size=${this.limits.maxHeapMegabytes}`],
      env: { SystemRoot: process.env.SystemRoot },
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    child.on('message', (response: ReaderResponse) => this.handleResponse(response))
    child.on('error', (cause) => this.handleExit(child, cause))
    child.on('exit', () => this.handleExit(child, undefined))
    this.child = child
    return child
  }

  private handleResponse(response: ReaderResponse): void {
    if ('error' in response) this.pending?.reject(new MemoryError('bad-message', response.error, { param: 'file' }))
    else this.pending?.resolve(response)
  }

  private handleExit(child: ChildProcess, cause: unknown): void {
    if (this.child !== child) return
    this.child = undefined
    this.pending?.reject(
      unreadableFileError('needs too much memory to read. Split it into smaller files, or save it as text', cause),
    )
  }

  private async kill(reason: MemoryError): Promise<void> {
    const { child } = this
    this.child = undefined
    this.pending?.reject(reason)
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    setRef(child, true)
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
}

/** Keeps this process alive while a request is pending, and only then. */
function setRef(child: ChildProcess, isReferenced: boolean): void {
  if (isReferenced) {
    child.ref()
    child.channel?.ref()
  } else {
    child.unref()
    child.channel?.unref()
  }
}

const closedError = (): MemoryError =>
  new MemoryError('closed', 'The server was stopped before the file was read. Upload it again.')

const timeoutError = ({ parseTimeoutMs }: FileLimits): MemoryError =>
  unreadableFileError(
    `took more than ${parseTimeoutMs / 1_000} s to read. Split it into smaller files, or save it as text`,
  )
