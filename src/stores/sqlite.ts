import '../requireNode.ts'
import { resolve } from 'node:path'
import { checkOptions, type OptionChecks } from '../domain/checkOptions.ts'
import {
  checkEraseFilter,
  checkListFilter,
  checkPage,
  checkRecordRange,
  checkTarget,
} from '../domain/checkStoreOptions.ts'
import type { Message } from '../domain/entry.ts'
import { anyFunction, anyObject, integerAtLeast, MemoryError } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type {
  AuxiliaryRecord,
  EntryVector,
  EraseFilter,
  IndexChanges,
  IndexHit,
  IndexQuery,
  Keyring,
  PageOptions,
  RecordRange,
  SearchIndex,
  SearchTarget,
  SessionFilter,
  Store,
  StoreCapabilities,
  StoredRecord,
  StoredVector,
  StoreFile,
  StoreTable,
  UnembeddedPage,
} from '../domain/ports.ts'
import type { SessionChange, SessionHead, SessionListItem } from '../domain/session.ts'
import { describeTableKey, parseTableKey } from '../domain/tableRows.ts'
import { runInSlices } from '../domain/work.ts'
import type { ScopeIndex } from '../search/scopeIndex.ts'
import { StoreSearch } from '../search/storeSearch.ts'
import { VectorIndex } from '../search/vectorIndex.ts'
import { listInPages } from './listInPages.ts'
import { backupDatabase } from './sqlite/backup.ts'
import type { WriteTask } from './sqlite/batchWriter.ts'
import { connectReader, connectWriter, prepareFile } from './sqlite/connect.ts'
import { retireKeys } from './sqlite/encryption.ts'
import { toMemoryError } from './sqlite/errors.ts'
import { FileGuard, type GuardedFile, guardFile, hasLostName, releaseFile } from './sqlite/fileGuard.ts'
import { HeadCache, maxPageMessages } from './sqlite/headCache.ts'
import type { DatabaseSync } from './sqlite/nodeSqlite.ts'
import { isCiphertext, plaintextError, requireEncrypted, requireEncryptedValues } from './sqlite/plaintextRows.ts'
import { Reader } from './sqlite/read.ts'
import { isOverwritten, recoverFile, setLogAside } from './sqlite/recover.ts'
import { buildMessages } from './sqlite/rows.ts'
import { decodeSnapshot, encodeSnapshotInSteps } from './sqlite/snapshot.ts'
import { SqliteTable } from './sqlite/table/sqliteTable.ts'
import { VectorReader } from './sqlite/vectors.ts'
import { createFileTasks } from './sqlite/wipe/fileTasks.ts'
import { WipeRunner } from './sqlite/wipe/wipeRunner.ts'
import type { CommitResult } from './sqlite/write.ts'
import { WriteQueue } from './sqlite/writeQueue.ts'
import { textAnalysis } from './textAnalysis.ts'
import { mapInOrder, waitForTurn, yieldToEventLoop, yieldWhenLong } from './yieldToEventLoop.ts'

/** Options of `sqliteStore`. */
export type SqliteStoreOptions = {
  /** Called for each damaged entry that is found and quarantined. Default: `process.emitWarning`. */
  readonly onWarning?: (warning: string) => void
  /** Number of messages from which a search index is saved in the file. Default: 2,000. */
  readonly minSnapshotMessages?: number
  /** Keys of an encrypted file. The store then accepts only what `encryptedStore` writes to it. */
  readonly keyring?: Keyring
}

/**
 * Opens a store in one SQLite file, which is created if it does not exist. Acknowledged writes are on disk; several
 * processes may share the file.
 *
 * Throws `bad-store` if the file cannot be opened, belongs to another program or was written by a newer version, and
 * `bad-secret` if it is encrypted and the keys are missing or wrong.
 *
 * @example
 * const memory = await openMemory({ store: sqliteStore('memory.db') })
 */
export function sqliteStore(file: string, options: SqliteStoreOptions = {}): SqliteStore {
  return new SqliteStore(resolve(file), options)
}

const optionChecks: OptionChecks<SqliteStoreOptions> = {
  onWarning: anyFunction,
  minSnapshotMessages: integerAtLeast(0),
  keyring: anyObject,
}

/** Reads on the calling thread, from the head cache or the file; writes in a worker thread. */
export class SqliteStore implements Store, SearchIndex {
  readonly durability = 'durable'
  readonly path: string
  readonly capabilities: StoreCapabilities
  readonly table: StoreTable
  private readonly file: GuardedFile
  private readonly guard: FileGuard
  private recovery: Promise<void> | undefined
  /** The file has failed a check since it last passed one. */
  private isSuspect = false
  private readonly database: DatabaseSync
  private readonly queue: WriteQueue
  private readonly wipeRunner: WipeRunner
  private readonly reader: Reader
  private readonly vectors: VectorReader
  private readonly headCache: HeadCache
  private readonly finder: StoreSearch
  private readonly onWarning: (warning: string) => void
  private readonly minSnapshotMessages: number
  private damagedRows = 0
  /** Snapshots are written one after the other. */
  private lastSnapshot = Promise.resolve()

  constructor(path: string, options: SqliteStoreOptions) {
    checkOptions<SqliteStoreOptions>('sqliteStore', options, optionChecks)
    const { minSnapshotMessages = 2_000, keyring } = options
    const { onWarning = (warning) => process.emitWarning(warning, 'ThreadkeepWarning') } = options
    const identity = prepareFile(path, keyring)
    this.path = path
    this.onWarning = onWarning
    this.minSnapshotMessages = minSnapshotMessages
    this.database = connectReader(path, identity)
    this.file = guardFile(this.database, path, identity)
    this.guard = new FileGuard(this.file)
    this.queue = new WriteQueue(this.file, (error) => this.handleFileChange(error))
    this.wipeRunner = new WipeRunner(this.queue)
    this.capabilities = {
      file: this.createCapability(),
      graph: {
        kind: 'sqlite',
        path,
        wipe: () => this.wipeRunner.wipe(),
        noteErasure: () => this.wipeRunner.noteErasure(),
        longReads: this.wipeRunner.longReads,
        ...createFileTasks(this.queue),
      },
      ...textAnalysis,
      indexedMessages: () => this.finder.indexedMessages,
    }
    this.reader = new Reader(this.database, (key, id) => this.quarantine(key, id))
    this.vectors = new VectorReader(this.database)
    this.headCache = new HeadCache(this.reader)
    this.finder = this.createFinder()
    this.table = new SqliteTable(this.database, {
      read: (query) => this.read(query),
      submit: (task) => this.queue.submit(task),
      submitErasure: (task) => this.submitErasure(task),
      checkValues: (values) => this.file.identity.isEncrypted && requireEncryptedValues(values),
      onDamage: (scope, name) =>
        this.submitQuarantine(`Row ${describeTableKey(parseTableKey(name))} of ${scope}`, 'table', {
          quarantineRows: [name],
          scope,
          reason,
        }),
    })
  }

  async readHead(key: Key, recent: number): Promise<SessionHead> {
    if (!this.headCache.hasDerived(key)) await this.headCache.loadDerived(key, (query) => this.read(query))
    const limit = await this.limitPage(key, { limit: recent, newest: true })
    return recent > limit ? this.readLongHead(key, recent, limit) : this.read(() => this.headCache.head(key, recent))
  }

  async readMessages(key: Key, range: PageOptions): Promise<readonly Message[]> {
    checkPage(range)
    const limit = await this.limitPage(key, range)
    return range.limit > limit ? this.readPages(key, range, limit) : this.read(() => this.headCache.page(key, range))
  }

  findMessages(key: Key, externalIds: readonly string[]): Promise<readonly Message[]> {
    return this.read(() => this.reader.findMessages(key, externalIds))
  }

  async list(filter: SessionFilter): Promise<readonly SessionListItem[]> {
    checkListFilter(filter)
    return listInPages(filter, (page) => this.read(() => this.reader.list(page)))
  }

  async commit(change: SessionChange): Promise<readonly Message[]> {
    if (this.file.identity.isEncrypted) requireEncrypted(change)
    const { committed } = (await this.queue.submit({ commit: change })) as { committed: CommitResult }
    const { first, last, row } = committed
    // A repeated change returns the messages of the first time.
    if (row === undefined)
      return this.readMessages(change.key, { after: first - 1, before: last + 1, limit: last - first + 1 })
    const messages = buildMessages(change.append, first, committed.offset)
    this.headCache.applyWrite(change.key, row, messages, change.put)
    return messages
  }

  async erase(key: Key, only?: EraseFilter): Promise<readonly string[]> {
    checkEraseFilter(only)
    try {
      return (await this.submitErasure({ erase: key, only })).erasedIds
    } finally {
      this.finder.drop(key.scope)
      this.headCache.drop(key)
    }
  }

  async appendRecord(key: Key, record: AuxiliaryRecord, keep: number): Promise<boolean> {
    if (this.file.identity.isEncrypted && !isCiphertext(record.body)) throw plaintextError()
    const { storedCount } = (await this.queue.submit({ appendRecord: record, key, keep })) as { storedCount: number }
    return storedCount > 0
  }

  async records(key: Key, range: RecordRange): Promise<readonly StoredRecord[]> {
    checkRecordRange(range)
    const { before = Number.MAX_SAFE_INTEGER, limit } = range
    return this.read(() => this.reader.records(key, before, limit))
  }

  search(where: SearchTarget, query: IndexQuery): Promise<readonly IndexHit[]> {
    return this.finder.search(where, query)
  }

  async changesSince(where: SearchTarget, since: number): Promise<IndexChanges> {
    checkTarget(where)
    return this.read(() => this.reader.changes(where, since))
  }

  listUnembedded(model: string, after: string, limit: number): Promise<UnembeddedPage> {
    return this.read(() => this.vectors.unembedded(model, after, limit))
  }

  readVectors(key: Key, ids: readonly string[]): Promise<readonly (StoredVector | undefined)[]> {
    return this.read(() => ids.map((id) => this.vectors.readVector(key, id)))
  }

  async countVectors(model: string): Promise<{ readonly done: number; readonly total: number }> {
    const count = this.vectors.count(model)
    for (;;) {
      const { done, value } = await this.read(() => count.next())
      if (done) return value
      await yieldToEventLoop()
    }
  }

  async storeVectors(model: string, vectors: readonly EntryVector[]): Promise<number> {
    if (this.file.identity.isEncrypted) throw plaintextError()
    return ((await this.queue.submit({ embed: vectors, model })) as { storedCount: number }).storedCount
  }

  /**
   * Copies the store to a new file while it is in use; the copy is one consistent state. Throws `bad-option` if the
   * target exists.
   */
  async backup(file: string, onProgress: (done: number, total: number) => void = () => undefined): Promise<void> {
    await backupDatabase(this.database, this.path, file, onProgress)
  }

  async close(): Promise<void> {
    // Closing the last connection moves the log into the database, which would damage what has overwritten it.
    if (this.database.isOpen && !hasLostName(this.file) && (await isOverwritten(this.guard)))
      setLogAside(this.file.path, this.onWarning)
    await this.lastSnapshot
    await this.wipeRunner.drain()
    await this.queue.close()
    await this.recovery
    this.finder.clear()
    if (!this.database.isOpen) return
    this.database.close()
    releaseFile(this.file)
  }

  private createCapability(): StoreFile {
    const { path, file } = this
    return {
      path,
      isEncrypted: file.identity.isEncrypted,
      check: () => void this.checkFile(true),
      wipe: () => this.wipeRunner.wipe(),
      wipeIfDue: () => this.wipeRunner.wipeIfDue(),
      retireKeys: (current) => {
        this.checkFile()
        const database = connectWriter(path, file.identity)
        try {
          retireKeys(database, current)
        } finally {
          database.close()
        }
      },
    }
  }

  /** Reads check the database only; after a fault, and for the health of the store, the log is checked too. */
  private checkFile(checksAll = this.isSuspect): void {
    if (!this.database.isOpen) throw new MemoryError('closed', `${this.path} is closed. Open it again.`)
    try {
      if (checksAll) {
        this.guard.checkAll()
        this.isSuspect = false
      } else this.guard.check()
    } catch (error) {
      throw this.handleFileChange(error as MemoryError)
    }
  }

  /**
   * Copies a deleted or replaced database, which the open connection still reads, to a new file, so that acknowledged
   * writes survive a restart. An overwritten one has lost its content.
   */
  private handleFileChange(error: MemoryError): MemoryError {
    if (error.code !== 'file-changed') return error
    this.isSuspect = true
    if (this.recovery !== undefined) return error
    this.onWarning(error.message)
    if (!hasLostName(this.file)) return error
    this.recovery = recoverFile(this.database, this.file.path).then(
      (copy) => this.onWarning(`The content of ${this.path} was copied to ${copy}. ${recoveryRemedy}`),
      (cause: unknown) => {
        this.recovery = undefined
        this.onWarning(`The content of ${this.path} could not be copied (${toMemoryError(cause, this.path).message}).`)
      },
    )
    return error
  }

  private createFinder(): StoreSearch {
    return new StoreSearch({
      changes: (where, { stamp }) => this.changesSince(where, stamp),
      readMessages: (key, after, limit) => this.headCache.readIndexed(key, after, limit, (query) => this.read(query)),
      readDerived: (key) => this.headCache.readDerivedInTurns(key, (query) => this.read(query)),
      readVectors: (...range) => this.read(() => this.vectors.listVectors(...range)),
      loadSnapshot: async (where) => decodeSnapshot(await this.read(() => this.reader.snapshot(where)), yieldWhenLong),
      saveSnapshot: (where, index) => this.saveSnapshot(where, index),
      pause: yieldWhenLong,
      readVector: (key, id, model) => this.read(() => this.vectors.getVector(key, id, model)),
      createVectorIndex: (model) => new VectorIndex(model),
      analysis: textAnalysis,
      // One after the other: each may have megabytes.
      readEntries: (found) => mapInOrder(found, ({ key, id }) => this.read(() => this.reader.entry(key, id))),
    })
  }

  /** Submits an erasure and waits until the log has nothing of the erased data. */
  private async submitErasure(task: WriteTask): Promise<ErasureResult> {
    this.wipeRunner.noteErasure()
    const result = (await this.queue.submit(task)) as ErasureResult
    if (result.isLogTruncated !== true) await this.wipeRunner.emptyLog(this.path)
    return result
  }

  /** Number of messages of a range that one turn may read. */
  private async limitPage(key: Key, range: PageOptions): Promise<number> {
    if (this.headCache.isCached(key, range)) return Math.min(range.limit, maxPageMessages)
    return this.read(() => this.headCache.limitPage(key, range))
  }

  private async readLongHead(key: Key, recent: number, limit: number): Promise<SessionHead> {
    const head = await this.read(() => this.headCache.head(key, limit))
    if (head.messages <= limit) return head
    const all = await this.readRest(key, head.recent, { limit: recent, newest: true })
    return all === undefined ? this.read(() => this.headCache.head(key, recent)) : { ...head, recent: all }
  }

  private async readPages(key: Key, range: PageOptions, limit: number): Promise<readonly Message[]> {
    const { damagedRows } = this
    const page = await this.read(() => this.headCache.page(key, { ...range, limit }))
    if (page.length + this.damagedRows - damagedRows < limit) return page
    return (await this.readRest(key, page, range)) ?? this.read(() => this.headCache.page(key, range))
  }

  /**
   * Reads the messages after the first page of a range, with a pause before each page. Returns undefined if the session
   * changes meanwhile in more than its end.
   */
  private async readRest(
    key: Key,
    first: readonly Message[],
    range: PageOptions,
  ): Promise<readonly Message[] | undefined> {
    const lineage = this.headCache.lineage(key)
    const isNewest = range.newest === true
    const pages = [first]
    let isLast = false
    for (let [page, count] = [first, first.length]; !isLast && count < range.limit; count += page.length) {
      await yieldToEventLoop()
      const { damagedRows } = this
      const edge = isNewest ? page[0] : page.at(-1)
      if (edge === undefined) return undefined
      const next = isNewest ? { before: edge.sequence } : { after: edge.sequence }
      const rest = { ...range, ...next, limit: range.limit - count }
      const limit = await this.limitPage(key, rest)
      page = await this.read(() => this.headCache.page(key, { ...rest, limit }))
      if (lineage === undefined || lineage !== this.headCache.lineage(key)) return undefined
      isLast = page.length + this.damagedRows - damagedRows < limit
      pages.push(page)
    }
    return (isNewest ? pages.reverse() : pages).flat()
  }

  private async read<T>(query: () => T): Promise<T> {
    const waiting = waitForTurn()
    if (waiting !== undefined) await waiting
    if (!this.database.isOpen) throw new MemoryError('closed', `${this.path} is closed. Open it again.`)
    this.checkFile()
    try {
      return query()
    } catch (error) {
      throw toMemoryError(error, this.path)
    }
  }

  /**
   * Saves a search index once it has grown by a quarter. Failures are ignored: the index can be rebuilt from the
   * messages. The writer refuses an index of what was erased meanwhile.
   */
  private async saveSnapshot(where: SearchTarget, index: ScopeIndex): Promise<void> {
    if (index.messageCount < this.minSnapshotMessages || index.messageCount < index.savedMessageCount * 1.25) return
    index.savedMessageCount = index.messageCount
    const { stamp, lineage } = index
    const save = async (): Promise<void> => {
      const snapshot = await runInSlices(index.snapshotInSteps(), yieldWhenLong)
      const data = await runInSlices(encodeSnapshotInSteps(snapshot), yieldWhenLong)
      this.queue.submit({ snapshot: where, stamp, lineage, data }).catch(() => undefined)
    }
    this.lastSnapshot = this.lastSnapshot.then(save).catch(() => undefined)
    await this.lastSnapshot
  }

  private quarantine(key: Key, id: string): void {
    this.damagedRows++
    this.headCache.drop(key)
    this.submitQuarantine(`${id} of ${formatKey(key)}`, 'session', { quarantine: [id], key, reason })
  }

  private submitQuarantine(name: string, container: string, task: WriteTask): void {
    this.onWarning(
      `${name} in ${this.path} is damaged and was quarantined; the rest of the ${container} is intact. Run threadkeep doctor for details.`,
    )
    this.queue.submit(task).catch((error: unknown) => this.onWarning(toMemoryError(error, this.path).message))
  }
}

const reason = 'its checksum differs'
type ErasureResult = {
  readonly erasedIds: readonly string[]
  readonly erasedRows?: number
  readonly isLogTruncated: boolean
}

const recoveryRemedy =
  'Stop this process, move the file that is at its place away, and rename the copy; or put the original file back.'
