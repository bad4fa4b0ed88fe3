import { constants } from 'node:fs'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { acquireFileLock } from '../../stores/sqlite/fileLock.ts'
import { normalizeSecrets } from '../../text/secrets.ts'
import {
  type AuditLine,
  advance,
  type ChainState,
  initialState,
  maxTornBytes,
  nextLine,
  type Outcome,
  readHead,
  writeHead,
} from './auditChain.ts'
import { escapeClipped } from './fileErrors.ts'

/** File operation that was allowed, refused or failed. Never contains file content. */
export type AuditEvent = {
  readonly at: Millis
  readonly user: string
  readonly operation: string
  readonly path: string
  readonly outcome: Outcome
  readonly why?: string
}

const busyMessage = 'The audit log is locked by another process, so nothing was done. Try again.'

const openFlags =
  constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/**
 * Append-only log of file operations. Each line contains the hash of the line before, so that changed, removed and
 * moved lines are detected; the `.head` file detects a truncated end. Several processes may write the same log.
 */
export class AuditLog {
  readonly file: string
  #pending: Promise<void> = Promise.resolve()

  constructor(file: string) {
    this.file = resolve(file)
  }

  /** Appends a line; resolves when it is durable. */
  append(event: AuditEvent): Promise<void> {
    const appended = this.#pending.then(() => this.#append(event))
    this.#pending = appended.catch(() => undefined)
    return appended
  }

  async #append(event: AuditEvent): Promise<void> {
    try {
      await mkdir(dirname(this.file), { recursive: true, mode: 0o700 })
      using _lock = await acquireFileLock(`${this.file}.lock`, busyMessage)
      await using log = await open(this.file, openFlags, 0o600)
      const { state, lacksNewline } = await this.#readState(log)
      const { text, hash } = nextLine(state, toFields(event), lacksNewline)
      await log.writeFile(text)
      await log.sync()
      const { size: bytes } = await log.stat()
      await writeHead(this.file, { count: state.count + 1, bytes, hash })
    } catch (cause) {
      if (cause instanceof MemoryError) throw cause
      const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown error'
      throw new MemoryError(
        'not-durable',
        `The audit log cannot be written (${reason}), so nothing was done. The server operator must fix this.`,
        { cause },
      )
    }
  }

  /**
   * Reads the end of the log. Lines of writers that died before updating the head file are verified and recorded now.
   */
  async #readState(log: FileHandle): Promise<{ readonly state: ChainState; readonly lacksNewline: boolean }> {
    const [head, stats] = [await readHead(this.file), await log.stat()]
    if (!stats.isFile()) throw corruptLog('is not a file')
    if (head === null) throw corruptLog('has a damaged .head file')
    if (head === undefined) {
      if (stats.size > 0) throw corruptLog('has no .head file')
      await this.#initialize()
    }
    const recorded = { ...initialState, ...head }
    if (stats.size < recorded.bytes) throw corruptLog('has lost lines at its end')
    if (stats.size - recorded.bytes > maxTornBytes) throw corruptLog('has too much unrecorded data at its end')
    const tail = Buffer.alloc(stats.size - recorded.bytes)
    await log.read(tail, 0, tail.length, recorded.bytes)
    const state = advanceThrough(recorded, tail)
    // A line without its newline is recorded together with the next one.
    if (state.count > recorded.count && state.bytes <= stats.size) await writeHead(this.file, state)
    return { state, lacksNewline: tail.length > 0 && tail.at(-1) !== 0x0a }
  }

  /** Writes the head file before the first line: a log without one counts as tampered with. */
  async #initialize(): Promise<void> {
    await writeHead(this.file, initialState)
    // Windows cannot open folders, and makes directory entries durable by itself.
    if (process.platform === 'win32') return
    await using folder = await open(dirname(this.file), 'r')
    await folder.sync()
  }
}

function advanceThrough(recorded: ChainState, tail: Buffer): ChainState {
  let [state, start] = [recorded, 0]
  while (start < tail.length) {
    const end = tail.indexOf(0x0a, start) < 0 ? tail.length : tail.indexOf(0x0a, start)
    const next = advance(state, tail.subarray(start, end))
    if (typeof next === 'string') throw corruptLog(`has a line that ${next}`)
    ;[state, start] = [next.state, end + 1]
  }
  return state
}

const corruptLog = (fault: string): MemoryError =>
  new MemoryError(
    'corrupt',
    `The audit log ${fault}, so nothing was done. Run threadkeep audit verify for details; move the log and its .head file away to start a new one.`,
  )

/** Paths and names of users are masked: the log stays, and its readers need not know a secret. */
function toFields({
  at,
  user,
  operation,
  path,
  outcome,
  why,
}: AuditEvent): Omit<AuditLine, 'torn' | 'previous' | 'hash'> {
  return {
    at: new Date(at).toISOString(),
    user: escapeClipped(normalizeSecrets(user), 200),
    operation: escapeClipped(operation, 40),
    path: escapeClipped(normalizeSecrets(path), 1_000),
    outcome,
    ...(why === undefined ? {} : { why: escapeClipped(normalizeSecrets(why), 1_500) }),
  }
}
