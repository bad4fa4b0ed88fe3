import { resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { type Message, messageId } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Changes, Embedded, Erasure, Hit, Index, Query, Range, Store, Unembedded, Where } from '../domain/ports.ts'
import type { Change, Head, Listed } from '../domain/session.ts'
import { Finder } from '../search/find.ts'
import type { Held } from '../search/held.ts'
import { Meaning } from '../search/meaning.ts'
import { backUp } from './sqlite/backup.ts'
import { connectReader, prepareFile } from './sqlite/connect.ts'
import { faultOf } from './sqlite/faults.ts'
import { Heads } from './sqlite/heads.ts'
import { Queue } from './sqlite/queue.ts'
import { Reader } from './sqlite/read.ts'
import { packed, unpacked } from './sqlite/snapshot.ts'
import { VectorReader } from './sqlite/vectors.ts'
import type { Written } from './sqlite/write.ts'

/** So often a log is tried to be cleaned while others read it; they get their turn in between. */
const patienceToClean = 10

export type SqliteOptions = {
  /** Told of every entry that is found damaged and is put aside; without it, the process is warned. */
  readonly onWarning?: (warning: string) => void
  /** How many messages make an index worth keeping in the file; 2,000 when left out. */
  readonly worthKeeping?: number
}

/**
 * Sessions in one SQLite file. What is acknowledged is on the disk; several processes may share the file.
 *
 * @example
 * const memory = await openMemory({ store: sqliteStore('memory.db') })
 */
export const sqliteStore = (file: string, options: SqliteOptions = {}): SqliteStore =>
  new SqliteStore(resolve(file), options)

/** Reads are answered here, from what is at hand or from the file; writes are done by a thread of their own. */
export class SqliteStore implements Store, Index {
  readonly durability = 'durable'
  readonly path: string
  private readonly database: DatabaseSync
  private readonly queue: Queue
  private readonly reader: Reader
  private readonly vectors: VectorReader
  private readonly heads: Heads
  private readonly finder: Finder
  private readonly onWarning: (warning: string) => void
  private readonly worthKeeping: number

  constructor(
    path: string,
    { onWarning = (warning) => process.emitWarning(warning, 'ThreadkeepWarning'), worthKeeping = 2_000 }: SqliteOptions,
  ) {
    prepareFile(path)
    this.path = path
    this.onWarning = onWarning
    this.worthKeeping = worthKeeping
    this.database = connectReader(path)
    this.queue = new Queue(path)
    this.reader = new Reader(this.database, (key, id) => this.putAside(key, id))
    this.vectors = new VectorReader(this.database)
    this.heads = new Heads(this.reader)
    this.finder = new Finder({
      changes: (where, since) => this.changes(where, since),
      indexed: (key, after, limit) => this.read(() => this.reader.indexed(key, after, limit)),
      derived: (key) => this.read(() => this.reader.derivedOf(key)),
      pointed: (where, model, after, limit) => this.read(() => this.vectors.pointed(where, model, after, limit)),
      load: async (where) => unpacked(await this.read(() => this.reader.snapshot(where))),
      save: (where, held) => this.save(where, held),
      pause: () => new Promise((resolve) => setImmediate(resolve)),
      vector: (key, id, model) => this.read(() => this.vectors.vector(key, id, model)),
      meaning: (model) => new Meaning(model),
      entries: (found) => this.read(() => found.map(({ key, id }) => this.reader.entry(key, id))),
    })
  }

  head(key: Key, recent: number): Promise<Head> {
    return this.read(() => this.heads.head(key, recent))
  }

  page(key: Key, range: Range): Promise<readonly Message[]> {
    return this.read(() => this.heads.page(key, range))
  }

  list(filter: Parameters<Store['list']>[0]): Promise<readonly Listed[]> {
    return this.read(() => this.reader.list(filter))
  }

  async commit(change: Change): Promise<readonly Message[]> {
    const { written } = (await this.queue.submit({ commit: change })) as { written: Written }
    if (written.row !== undefined) {
      const messages = appended(change, written)
      this.heads.wrote(change.key, written.row, messages)
      return messages
    }
    return this.page(change.key, {
      after: written.first - 1,
      before: written.last + 1,
      limit: written.last - written.first + 1,
    })
  }

  async erase(key: Key, only?: Erasure): Promise<readonly string[]> {
    try {
      const { gone, isClean } = (await this.queue.submit({ erase: key, only })) as {
        gone: readonly string[]
        isClean: boolean
      }
      for (let tries = 1; !isClean && !(await this.isCleaned()); tries++) {
        if (tries === patienceToClean)
          throw new MemoryError(
            'busy',
            `It is forgotten, but a reader of ${this.path} keeps its log from being cleaned. Forget it again in a moment.`,
          )
      }
      return gone
    } finally {
      this.finder.drop(key.scope)
      this.heads.drop(key)
    }
  }

  search(where: Where, query: Query): Promise<readonly Hit[]> {
    return this.finder.search(where, query)
  }

  changes(where: Where, since: number): Promise<Changes> {
    return this.read(() => this.reader.changes(where, since))
  }

  unembedded(model: string, after: string, limit: number): Promise<Unembedded> {
    return this.read(() => this.vectors.unembedded(model, after, limit))
  }

  embedded(model: string): Promise<{ readonly done: number; readonly total: number }> {
    return this.read(() => this.vectors.embedded(model))
  }

  async embed(model: string, vectors: readonly Embedded[]): Promise<number> {
    return ((await this.queue.submit({ embed: vectors, model })) as { kept: number }).kept
  }

  /** Copies everything to another file while work goes on; the copy is a store of its own. */
  backup(file: string, onProgress?: (done: number, total: number) => void): Promise<void> {
    return backUp(this.database, this.path, resolve(file), onProgress)
  }

  async close(): Promise<void> {
    await this.queue.close()
    this.finder.clear()
    if (this.database.isOpen) this.database.close()
  }

  private async isCleaned(): Promise<boolean> {
    return ((await this.queue.submit({ clean: true })) as { isClean: boolean }).isClean
  }

  private async read<T>(from: () => T): Promise<T> {
    if (!this.database.isOpen) throw new MemoryError('closed', `${this.path} is closed; open it again.`)
    try {
      return from()
    } catch (error) {
      throw faultOf(error, this.path)
    }
  }

  /** Keeps an index once it has grown by a quarter; if that fails, it is made anew some day, and nobody else is concerned. */
  private save(where: Where, held: Held): void {
    if (held.messages < this.worthKeeping || held.messages < held.kept * 1.25) return
    held.kept = held.messages
    const { stamp, lineage } = held
    this.queue.submit({ snapshot: where, stamp, lineage, data: packed(held.parts()) }).catch(() => undefined)
  }

  private putAside(key: Key, id: string): void {
    this.onWarning(
      `${id} of ${formatKey(key)} in ${this.path} is damaged and was put aside; the rest of the session is sound. threadkeep doctor tells more.`,
    )
    this.heads.drop(key)
    this.queue
      .submit({ quarantine: [id], key, why: 'its checksum differs' })
      .catch((error: unknown) => this.onWarning(faultOf(error, this.path).message))
  }
}

/** The messages a change became: the writer tells their places, the words are at hand. */
function appended({ append }: Change, { first, offset }: Written): readonly Message[] {
  let sum = offset
  return append.map((said, at) => {
    const message: Message = Object.freeze({
      ...said,
      kind: 'message',
      id: messageId(first + at),
      sequence: first + at,
      offset: sum,
    })
    sum += said.weight
    return message
  })
}
