import { randomBytes as randomBytesOfNode } from 'node:crypto'
import { wellFormed } from '../domain/chat.ts'
import type { Message } from '../domain/entry.ts'
import { check, MemoryError } from '../domain/error.ts'
import { filesKey, formatKey, type Key, parseKey, type Scope } from '../domain/key.ts'
import type { Clock, Index, Store, Tokenizer } from '../domain/ports.ts'
import type { Barrier } from '../memory/secretMasker.ts'
import { Catalogue } from './catalogue.ts'
import { bodyOf } from './chunk.ts'
import { type Entered, Indexer } from './indexer.ts'
import { type Kind, kindOf, mediaTypes, type Upload } from './kind.ts'
import { defaultLimits, type FileLimits } from './limits.ts'
import { Reader } from './reader.ts'
import { type FileInfo, type FileRecord, sequencesOf } from './record.ts'
import { unreadable } from './unreadable.ts'

export type FilesParts = {
  /** The durable one: files are a tenant's, not a session's. */
  readonly store: Store & Index
  readonly tokenizer: Tokenizer
  readonly barrier: Barrier | undefined
  readonly clock: Clock
  readonly limits?: Partial<FileLimits>
  /** Told of chunks as soon as they are stored, so that they get their vectors. */
  readonly onStored?: (key: Key, epoch: number, stored: readonly Message[]) => void
  readonly randomBytes?: (length: number) => Uint8Array
}

export type Listing = { readonly items: readonly FileInfo[]; readonly next: string | null }

type Work = { readonly key: Key; readonly result: Promise<FileInfo> }
type Started = { readonly info: FileInfo; readonly work: Promise<FileInfo> | undefined }

/** How many characters of a name are kept. */
const longestName = 255
/** So many sessions, and chunks, are read at once. */
const page = 500

/**
 * The files of tenants: read in a process of their own, one after the other, and kept as chunks that a search finds like
 * anything said. `sweep` cleans up what a process that was killed has left half done.
 *
 * @example
 * const files = new Files({ store, tokenizer, barrier: undefined, clock: Date.now })
 * await files.add('acme', { name: 'handbook.pdf', bytes: await readFile('handbook.pdf') })
 * await store.search(filesKey('acme'), { text: 'refunds', limit: 5 })
 */
export class Files {
  private readonly parts: FilesParts
  private readonly limits: FileLimits
  private readonly catalogue: Catalogue
  private readonly reader: Reader
  private readonly indexer: Indexer
  /** What is under way, by the id of the file. */
  private readonly works = new Map<string, Work>()
  private entering = 0
  private turn: Promise<unknown> = Promise.resolve()
  private isClosed = false

  constructor(parts: FilesParts) {
    this.parts = parts
    this.limits = { ...defaultLimits, ...parts.limits }
    const { milliseconds, files, waiting } = this.limits
    // Between two signs of life lie the reading of a file, at most, and some time to store it.
    const indexing = milliseconds + 60_000
    const patience = { indexing, waiting: indexing * (waiting + 1) }
    this.catalogue = new Catalogue({ ...parts, holder: this.random(), patience, most: files })
    this.reader = new Reader(this.limits)
    this.indexer = new Indexer({ ...parts, catalogue: this.catalogue, reader: this.reader, onStored: parts.onStored })
  }

  /**
   * Takes in a file, and resolves when all of it can be found. The same name with the same bytes again is the file that is
   * there; one that another process is indexing is not waited for.
   */
  async add(
    scope: Scope,
    file: Upload,
    options: { readonly onProgress?: (info: FileInfo) => void } = {},
  ): Promise<FileInfo> {
    const { info, work } = await this.start(scope, file, options.onProgress)
    return work ?? info
  }

  /** Takes in a file and answers at once; `get` tells how far it has come, and why if it failed. */
  async begin(scope: Scope, file: Upload): Promise<FileInfo> {
    return (await this.start(scope, file)).info
  }

  /** The files of a tenant in order of upload; `next` is where to go on, or null. */
  async list(
    scope: Scope,
    { after = '0', limit = 100 }: { readonly after?: string; readonly limit?: number } = {},
  ): Promise<Listing> {
    check('after', after, /^\d{1,15}$/.test(after), 'what next was on the page before')
    check('limit', limit, Number.isSafeInteger(limit) && limit > 0, 'a whole number, 1 or more')
    const records = (await this.catalogue.records(keyOf(scope))).filter(({ place }) => place > Number(after))
    const last = records[limit - 1]
    return {
      items: records.slice(0, limit).map(({ info }) => info),
      next: records.length > limit && last !== undefined ? `${last.place}` : null,
    }
  }

  async get(scope: Scope, id: string): Promise<FileInfo | undefined> {
    return (await this.record(scope, id))?.info
  }

  /** The text of a file as it was read, without its secrets. */
  async text(scope: Scope, id: string): Promise<string> {
    const record = await this.record(scope, id)
    if (record === undefined)
      throw new MemoryError(
        'bad-option',
        `There is no file ${JSON.stringify(id)} here; list tells which ones there are.`,
        { param: 'id' },
      )
    const bare = new Set([...sequencesOf(record)].slice(0, record.bare))
    const bodies: string[] = []
    for (const [first, last] of record.runs) {
      for await (const { sequence, content } of this.messages(keyOf(scope), first, last))
        bodies.push(bare.has(sequence) ? content : bodyOf(content))
    }
    return bodies.join('')
  }

  /** Removes a file with everything that was kept of it, also while it is being indexed; whether there was one. */
  remove(scope: Scope, id: string): Promise<boolean> {
    return this.catalogue.remove(keyOf(scope), id)
  }

  /** Cleans up after processes that ended while they indexed or removed files, of all tenants. The host decides how often. */
  async sweep(): Promise<void> {
    const { store } = this.parts
    for (let after = ''; ; ) {
      const listed = await store.list({ after, limit: page })
      for (const { key } of listed) if (key.id === filesKey(key.scope).id) await this.catalogue.clean(key)
      const last = listed.at(-1)
      if (last === undefined) return
      after = formatKey(last.key)
    }
  }

  /** Resolves when nothing is under way any more, of one tenant or of all. */
  async settled(scope?: Scope): Promise<void> {
    const key = scope === undefined ? undefined : keyOf(scope)
    const wanted = (): readonly Work[] =>
      [...this.works.values()].filter((work) => key === undefined || work.key.scope === key.scope)
    for (let works = wanted(); works.length > 0; works = wanted())
      await Promise.allSettled(works.map(({ result }) => result))
  }

  /** Ends the reading process. What is under way is given up, and its record says so. */
  async close(): Promise<void> {
    this.isClosed = true
    await this.reader.close()
    await this.settled()
  }

  private async start(
    scope: Scope,
    file: Upload,
    onProgress: (info: FileInfo) => void = () => undefined,
  ): Promise<Started> {
    const key = keyOf(scope)
    const kind = this.checked(file)
    this.entering++
    try {
      // Whoever gave them may write over them.
      const bytes = new Uint8Array(file.bytes)
      const name = (await this.parts.barrier?.text(key, file.name)) ?? file.name
      const draft = {
        id: this.random(),
        name,
        type: mediaTypes[kind],
        bytes: bytes.length,
        sha256: await sha256(bytes),
      }
      const { info, isNew } = await this.catalogue.enter(key, draft)
      const work = isNew
        ? this.enqueue({ key, id: info.id, name, kind, file: { ...file, bytes } }, onProgress)
        : this.works.get(info.id)?.result
      return { info, work }
    } finally {
      this.entering--
    }
  }

  /** What a file is, if it may be taken in at all. */
  private checked({ name, bytes, ...rest }: Upload): Kind {
    const { waiting, bytes: most } = this.limits
    if (this.isClosed) throw new MemoryError('closed', 'These files are closed; open them again.')
    if (typeof name !== 'string' || name.trim() === '' || name.length > longestName || wellFormed(name) !== name)
      throw unreadable(`needs a name of at most ${longestName} characters`)
    if (bytes.length > most)
      throw unreadable(
        `has ${bytes.length.toLocaleString('en')} bytes; at most ${most.toLocaleString('en')} are read. Split it into smaller ones`,
      )
    if (this.works.size + this.entering >= waiting)
      throw new MemoryError('busy', `${waiting} files are waiting to be read already. Upload it again in a moment.`, {
        param: 'file',
      })
    return kindOf({ name, bytes, ...rest })
  }

  private enqueue(entered: Entered, onProgress: (info: FileInfo) => void): Promise<FileInfo> {
    const { key, id } = entered
    const result = this.turn.then(() => this.indexer.index(entered, onProgress))
    // If it fails its record says so, and whoever waits for it is told.
    this.turn = result.catch(() => undefined).finally(() => this.works.delete(id))
    this.works.set(id, { key, result })
    return result
  }

  private async record(scope: Scope, id: string): Promise<FileRecord | undefined> {
    return (await this.catalogue.records(keyOf(scope))).find(({ info }) => info.id === id)
  }

  private async *messages(key: Key, first: number, last: number): AsyncGenerator<Message> {
    for (let after = first - 1; ; ) {
      const messages = await this.parts.store.page(key, { after, before: last + 1, limit: page })
      yield* messages
      const newest = messages.at(-1)
      if (newest === undefined) return
      after = newest.sequence
    }
  }

  private random(): string {
    return Buffer.from((this.parts.randomBytes ?? randomBytesOfNode)(6)).toString('hex')
  }
}

/** Where a tenant's files are kept. A session has none, whatever its profile. */
function keyOf(scope: Scope): Key {
  const key = parseKey(scope)
  if (key.id !== '')
    throw new MemoryError('bad-key', 'File uploads not allowed for ephemeral sessions', { param: 'key' })
  return filesKey(key.scope)
}

const sha256 = async (bytes: Uint8Array<ArrayBuffer>): Promise<string> =>
  Buffer.from(await crypto.subtle.digest('SHA-256', bytes)).toString('hex')
