import { randomBytes as nodeRandomBytes } from 'node:crypto'
import { replaceLoneSurrogates } from '../domain/chat.ts'
import type { Message } from '../domain/entry.ts'
import { checkOption, MemoryError } from '../domain/error.ts'
import { filesKey, formatKey, type Key, parseKey, type Scope } from '../domain/key.ts'
import type { Clock, SearchIndex, Store, Tokenizer } from '../domain/ports.ts'
import type { SecretMasker } from '../memory/secretMasker.ts'
import { FileCatalog } from './catalog.ts'
import { parseChunkBody } from './chunk.ts'
import { Indexer, type IndexJob } from './indexer.ts'
import { detectKind, type FileKind, mediaTypes, type Upload } from './kind.ts'
import { defaultFileLimits, type FileLimits, unreadableFileError } from './limits.ts'
import { Reader } from './reader.ts'
import { chunkSequences, type FileInfo, type FileRecord } from './record.ts'

export type FileServiceDeps = {
  /** The durable store: files belong to a tenant, not to a session. */
  readonly store: Store & SearchIndex
  readonly tokenizer: Tokenizer
  readonly masker: SecretMasker | undefined
  readonly clock: Clock
  /** Overrides of `defaultFileLimits`. */
  readonly limits?: Partial<FileLimits>
  /** Source of ids. Default: `node:crypto`. */
  readonly randomBytes?: (length: number) => Uint8Array
}

/** A page of a listing; `next` is the cursor of the next page, or null. */
export type FilePage = { readonly items: readonly FileInfo[]; readonly next: string | null }

type RunningJob = { readonly key: Key; readonly result: Promise<FileInfo> }
type StartedUpload = { readonly info: FileInfo; readonly result: Promise<FileInfo> | undefined }

const maxNameChars = 255
/** Sessions or chunks read at a time. */
const pageSize = 500
/** Time for storing chunks between two renewals of a lease, on top of the parse timeout. */
const storeAllowanceMs = 60_000

/**
 * Stores the files of tenants. Files are parsed in a child process, one at a time, and stored as chunks that searches
 * find like messages. `sweep` cleans up after processes that were killed.
 *
 * @example
 * const files = new FileService({ store, tokenizer, masker: undefined, clock: Date.now })
 * await files.add('acme', { name: 'handbook.pdf', bytes: await readFile('handbook.pdf') })
 * await store.search(filesKey('acme'), { text: 'refunds', limit: 5 })
 */
export class FileService {
  private readonly deps: FileServiceDeps
  private readonly limits: FileLimits
  private readonly catalog: FileCatalog
  private readonly reader: Reader
  private readonly indexer: Indexer
  /** Queued and running jobs by file id. */
  private readonly jobs = new Map<string, RunningJob>()
  private registering = 0
  private lastJob: Promise<unknown> = Promise.resolve()
  private isClosed = false

  constructor(deps: FileServiceDeps) {
    const { store, tokenizer, clock } = deps
    this.deps = deps
    this.limits = { ...defaultFileLimits, ...deps.limits }
    const { parseTimeoutMs, maxFiles, maxQueued } = this.limits
    const indexing = parseTimeoutMs + storeAllowanceMs
    const leaseDurations = { indexing, waiting: indexing * (maxQueued + 1) }
    this.catalog = new FileCatalog({ store, clock, holder: this.createId(), leaseDurations, maxFiles })
    this.reader = new Reader(this.limits)
    this.indexer = new Indexer({
      catalog: this.catalog,
      reader: this.reader,
      tokenizer,
      secretMasker: deps.masker,
      clock,
    })
  }

  /**
   * Adds a file and resolves when it is indexed. An upload with the same name and content as an existing file returns
   * that file; a file that another process is indexing is returned at once.
   */
  async add(
    scope: Scope,
    upload: Upload,
    options: { readonly onProgress?: (info: FileInfo) => void } = {},
  ): Promise<FileInfo> {
    const { info, result } = await this.startUpload(scope, upload, options.onProgress)
    return result ?? info
  }

  /** Adds a file and resolves when it is registered; `get` returns the progress of indexing. */
  async addInBackground(scope: Scope, upload: Upload): Promise<FileInfo> {
    return (await this.startUpload(scope, upload)).info
  }

  /** Lists the files of a tenant in order of upload. */
  async list(
    scope: Scope,
    { after = '0', limit = 100 }: { readonly after?: string; readonly limit?: number } = {},
  ): Promise<FilePage> {
    checkOption('after', after, /^\d{1,15}$/.test(after), 'the value of next on the previous page')
    checkOption('limit', limit, Number.isSafeInteger(limit) && limit > 0, 'a whole number, 1 or more')
    const records = (await this.catalog.records(toFilesKey(scope))).filter(({ order }) => order > Number(after))
    const last = records[limit - 1]
    return {
      items: records.slice(0, limit).map(({ info }) => info),
      next: records.length > limit && last !== undefined ? `${last.order}` : null,
    }
  }

  async get(scope: Scope, id: string): Promise<FileInfo | undefined> {
    return (await this.findRecord(scope, id))?.info
  }

  /** Returns the extracted text of a file with masked secrets. */
  async text(scope: Scope, id: string): Promise<string> {
    const record = await this.findRecord(scope, id)
    if (record === undefined)
      throw new MemoryError('bad-option', `Unknown file ${JSON.stringify(id)}. Use an id from the list of files.`, {
        param: 'id',
      })
    const unlabelled = new Set([...chunkSequences(record)].slice(0, record.unlabelledChunks))
    const bodies: string[] = []
    for (const [first, last] of record.runs) {
      for await (const { sequence, content } of this.readMessages(toFilesKey(scope), first, last))
        bodies.push(unlabelled.has(sequence) ? content : parseChunkBody(content))
    }
    return bodies.join('')
  }

  /** Removes a file with its chunks, even while it is being indexed; returns false if there was none. */
  remove(scope: Scope, id: string): Promise<boolean> {
    return this.catalog.remove(toFilesKey(scope), id)
  }

  /** Cleans up files of all tenants that dead processes left half indexed or half removed. The host schedules it. */
  async sweep(): Promise<void> {
    const { store } = this.deps
    for (let after = ''; ; ) {
      const sessions = await store.list({ after, limit: pageSize })
      for (const { key } of sessions) if (key.id === filesKey(key.scope).id) await this.catalog.cleanUp(key)
      const last = sessions.at(-1)
      if (last === undefined) return
      after = formatKey(last.key)
      // A store may answer without waiting; a hundred thousand sessions must not hold up requests.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** Resolves when no file of the tenant, or of any tenant, is queued or being indexed. */
  async waitUntilIdle(scope?: Scope): Promise<void> {
    const key = scope === undefined ? undefined : toFilesKey(scope)
    const findJobs = (): readonly RunningJob[] =>
      [...this.jobs.values()].filter((job) => key === undefined || job.key.scope === key.scope)
    for (let jobs = findJobs(); jobs.length > 0; jobs = findJobs())
      await Promise.allSettled(jobs.map(({ result }) => result))
  }

  /** Stops the reader process. Files that are queued or being indexed fail. */
  async close(): Promise<void> {
    this.isClosed = true
    await this.reader.close()
    await this.waitUntilIdle()
  }

  private async startUpload(
    scope: Scope,
    upload: Upload,
    onProgress: (info: FileInfo) => void = () => undefined,
  ): Promise<StartedUpload> {
    const key = toFilesKey(scope)
    const kind = this.validate(upload)
    this.deps.masker?.checkKey(key)
    this.registering++
    try {
      // Copied, because the caller may reuse the buffer.
      const bytes = new Uint8Array(upload.bytes)
      const name = (await this.deps.masker?.maskText(key, upload.name)) ?? upload.name
      const { info, isNew } = await this.catalog.register(key, {
        id: this.createId(),
        name,
        type: mediaTypes[kind],
        bytes: bytes.length,
        sha256: await sha256(bytes),
      })
      const result = isNew
        ? this.enqueue({ key, id: info.id, name, kind, upload: { ...upload, bytes } }, onProgress)
        : this.jobs.get(info.id)?.result
      return { info, result }
    } finally {
      this.registering--
    }
  }

  /** Returns the kind of an upload; throws if it cannot be accepted. */
  private validate(upload: Upload): FileKind {
    const { name, bytes } = upload
    const { maxQueued, maxFileBytes } = this.limits
    if (this.isClosed) throw new MemoryError('closed', 'The file service is closed. Start the server again.')
    if (
      typeof name !== 'string' ||
      name.trim() === '' ||
      name.length > maxNameChars ||
      replaceLoneSurrogates(name) !== name
    )
      throw unreadableFileError(`needs a name of at most ${maxNameChars} characters`)
    if (bytes.length > maxFileBytes)
      throw unreadableFileError(
        `has ${bytes.length.toLocaleString('en')} bytes; the limit is ${maxFileBytes.toLocaleString('en')}. Split it into smaller files`,
      )
    if (this.jobs.size + this.registering >= maxQueued)
      throw new MemoryError('busy', `The queue of ${maxQueued} files is full. Upload the file again in a moment.`, {
        param: 'file',
      })
    return detectKind(upload)
  }

  private enqueue(job: IndexJob, onProgress: (info: FileInfo) => void): Promise<FileInfo> {
    const result = this.lastJob.then(() => this.indexer.index(job, onProgress))
    // A failure is recorded in the file's record and rejects `result`; the next job runs in any case.
    this.lastJob = result.catch(() => undefined).finally(() => this.jobs.delete(job.id))
    this.jobs.set(job.id, { key: job.key, result })
    return result
  }

  private async findRecord(scope: Scope, id: string): Promise<FileRecord | undefined> {
    return (await this.catalog.records(toFilesKey(scope))).find(({ info }) => info.id === id)
  }

  private async *readMessages(key: Key, first: number, last: number): AsyncGenerator<Message> {
    for (let after = first - 1; ; ) {
      const messages = await this.deps.store.readMessages(key, { after, before: last + 1, limit: pageSize })
      yield* messages
      const newest = messages.at(-1)
      if (newest === undefined) return
      after = newest.sequence
    }
  }

  private createId(): string {
    return Buffer.from((this.deps.randomBytes ?? nodeRandomBytes)(6)).toString('hex')
  }
}

/** Returns the key under which a tenant's files are stored; throws for the key of a session. */
function toFilesKey(scope: Scope): Key {
  const key = parseKey(scope)
  if (key.id !== '')
    throw new MemoryError('bad-key', 'File uploads not allowed for ephemeral sessions', { param: 'key' })
  return filesKey(key.scope)
}

const sha256 = async (bytes: Uint8Array<ArrayBuffer>): Promise<string> =>
  Buffer.from(await crypto.subtle.digest('SHA-256', bytes)).toString('hex')
