import { constants } from 'node:fs'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { takeTurn } from '../../stores/sqlite/fileLock.ts'
import { beginning, follow, type Line, mostLeft, nextLine, type Outcome, type Reach } from './chain.ts'
import { readHead, writeHead } from './log.ts'
import { plainStart } from './plain.ts'

/** Something done with a file, or refused; never what stands in it. */
export type Event = {
  readonly at: Millis
  readonly user: string
  readonly operation: string
  readonly path: string
  readonly outcome: Outcome
  readonly why?: string
}

const busy = 'Another process has been writing the audit log for too long, so nothing was done. Try again.'

const flags =
  constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/**
 * An append-only log of what was done with files, by whom. Each line holds the hash of the one before, so that none can
 * be changed, removed or moved unseen; what is kept beside the log tells if its end was cut off. Several processes may
 * write the same log.
 */
export class Audit {
  readonly file: string
  #last: Promise<void> = Promise.resolve()

  constructor(file: string) {
    this.file = resolve(file)
  }

  /** Writes a line; it is on the disk when this resolves. */
  note(event: Event): Promise<void> {
    const written = this.#last.then(() => this.#append(event))
    this.#last = written.catch(() => undefined)
    return written
  }

  async #append(event: Event): Promise<void> {
    try {
      await mkdir(dirname(this.file), { recursive: true, mode: 0o700 })
      using _turn = await takeTurn(`${this.file}.lock`, busy)
      await using log = await open(this.file, flags, 0o600)
      const { reach, isOpen } = await this.#reached(log)
      const { text, hash } = nextLine(reach, fieldsOf(event), isOpen)
      await log.writeFile(text)
      await log.sync()
      const { size: bytes } = await log.stat()
      await writeHead(this.file, { count: reach.count + 1, bytes, hash })
    } catch (cause) {
      if (cause instanceof MemoryError) throw cause
      const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'an unknown fault'
      throw new MemoryError(
        'not-durable',
        `The audit log cannot be written (${reason}), so nothing was done. Whoever runs the server must see to it.`,
        {
          cause,
        },
      )
    }
  }

  /** Where the next line goes. What was written without being recorded, by a writer that died in between, is followed and recorded, lest it add up. */
  async #reached(log: FileHandle): Promise<{ readonly reach: Reach; readonly isOpen: boolean }> {
    const [head, state] = [await readHead(this.file), await log.stat()]
    if (!state.isFile()) throw broken('is not a file')
    if (head === null) throw broken('has a damaged record of its end')
    if (head === undefined) {
      if (state.size > 0) throw broken('has lost the record of its end')
      await this.#begin()
    }
    const from = { ...beginning, ...head }
    if (state.size < from.bytes) throw broken('has lost lines at its end')
    if (state.size - from.bytes > mostLeft) throw broken('has more at its end than writers that died can have left')
    const tail = Buffer.alloc(state.size - from.bytes)
    await log.read(tail, 0, tail.length, from.bytes)
    const reach = followed(from, tail)
    // A line that lacks its newline is recorded with the one after it.
    if (reach.count > from.count && reach.bytes <= state.size) await writeHead(this.file, reach)
    return { reach, isOpen: tail.length > 0 && tail.at(-1) !== 0x0a }
  }

  /** A log without a record of its end is one that somebody tampered with, so the record is there before the first line. */
  async #begin(): Promise<void> {
    await writeHead(this.file, beginning)
    // Windows opens no folders, and keeps their names by itself.
    if (process.platform === 'win32') return
    await using folder = await open(dirname(this.file), 'r')
    await folder.sync()
  }
}

function followed(from: Reach, tail: Buffer): Reach {
  let [reach, at] = [from, 0]
  while (at < tail.length) {
    const end = tail.indexOf(0x0a, at) < 0 ? tail.length : tail.indexOf(0x0a, at)
    const next = follow(reach, tail.subarray(at, end))
    if (typeof next === 'string') throw broken(`has a line that ${next}`)
    ;[reach, at] = [next.reach, end + 1]
  }
  return reach
}

const broken = (fault: string): MemoryError =>
  new MemoryError(
    'corrupt',
    `The audit log ${fault}, so nothing was done. threadkeep audit verify tells more; with the log and the .head beside it moved away a new one is begun.`,
  )

function fieldsOf({ at, user, operation, path, outcome, why }: Event): Omit<Line, 'torn' | 'previous' | 'hash'> {
  const reason = why === undefined ? {} : { why: plainStart(why, 1_500) }
  return {
    at: new Date(at).toISOString(),
    user: plainStart(user, 200),
    operation: plainStart(operation, 40),
    path: plainStart(path, 1_000),
    outcome,
    ...reason,
  }
}
