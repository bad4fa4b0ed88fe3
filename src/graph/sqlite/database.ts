import { resolve } from 'node:path'
import type { SQLInputValue, StatementSync } from 'node:sqlite'
import { MemoryError } from '../../domain/error.ts'
import type { FileMaintenance, LongReads } from '../../domain/fileMaintenance.ts'
import type { Keyring } from '../../domain/ports.ts'
import { runInSlices, type Work } from '../../domain/work.ts'
import { busyTimeoutMs, connectWriter, prepareFile } from '../../stores/sqlite/connect.ts'
import { isBusy, isDiskError, toMemoryError } from '../../stores/sqlite/errors.ts'
import { FileGuard, type GuardedFile, guardFile, type StoreIdentity } from '../../stores/sqlite/fileGuard.ts'
import { prepareGraph } from '../../stores/sqlite/graph.ts'
import { DatabaseSync } from '../../stores/sqlite/nodeSqlite.ts'
import { migrate } from '../../stores/sqlite/schema.ts'
import { createLongReads } from '../../stores/sqlite/wipe/longReads.ts'
import { mergeIndexesInSteps } from '../../stores/sqlite/wipe/mergeIndexes.ts'
import { yieldToEventLoop, yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import { createDamagedRowError } from '../rows.ts'
import { FileThread, releaseFileAfter, type ThreadWork } from './fileThread.ts'
import {
  type Outcome,
  type PartResult,
  type QueuedWrite,
  runPart,
  runWhole,
  settle,
  waitBetweenParts,
} from './queuedWrite.ts'
import { runTurn, SnapshotReader, SnapshotReaders } from './snapshotReader.ts'

/** Versions of different connections cannot be compared. */
type CachedValue = { readonly version: string; readonly reader: SnapshotReader | undefined; readonly value: unknown }

/** Writes that share one transaction, and so one fsync. */
const maxBatchWrites = 512
/** Time after which a transaction takes no further write: meanwhile others wait for the lock on the file. */
const maxBatchMs = 100
/** Pages of the log that a commit moves into the database, as SQLite does by default. */
const maxLogPages = 1_000
/** Attempts to read many rows in memory while others write, before writes wait for the read. */
const maxReadAttempts = 4
/** Cost of a write without steps, in characters. */
const writeWork = 400
/** Prepared statements kept; their SQL varies with the given fields. */
const maxStatements = 200

/**
 * SQLite database of a graph, in a file or in memory. Reads run synchronously. Concurrent writes are batched into one
 * transaction, each in its own savepoint, and resolve after the commit is durable. A transaction of many rows pauses;
 * short reads wait for its end, because they share its connection. Long reads of a file have connections of their own.
 */
export class GraphDatabase {
  private readonly path: string | undefined
  private readonly name: string
  private readonly identity: StoreIdentity | undefined
  private guarded: { readonly file: GuardedFile; readonly guard: FileGuard } | undefined
  private readonly queue: QueuedWrite[] = []
  private readonly statements = new Map<string, StatementSync>()
  private connection: DatabaseSync | undefined
  private running: Promise<void> | undefined
  /** Ends with the transaction in progress. */
  private transaction: Promise<readonly Outcome[]> | undefined
  private storeMaintenance: FileMaintenance | undefined
  private readonly longReads: LongReads
  private readonly readers: SnapshotReaders
  private ownMaintenance: FileThread | undefined
  /** Ends when the threads and descriptors of former connections are closed. */
  private released: Promise<void> = Promise.resolve()
  private isClosed = false
  private cached: CachedValue | undefined
  /** Transactions of this connection, which `PRAGMA data_version` does not count. */
  private transactionCount = 0
  /** Reads in steps. */
  private readonly operations = new Set<Promise<unknown>>()

  /**
   * Without a path the database is in memory. `maintenance` is that of the store in the same file: two would wait for
   * each other. Throws `bad-secret` if the keys do not fit the file.
   */
  constructor(path?: string, keyring?: Keyring, maintenance?: FileMaintenance) {
    this.storeMaintenance = maintenance
    this.longReads = maintenance?.longReads ?? createLongReads()
    this.readers = new SnapshotReaders(() => this.openReader(), this.longReads)
    this.path = path === undefined ? undefined : resolve(path)
    this.name = this.path ?? 'ram:'
    this.identity = this.path === undefined ? undefined : prepareFile(this.path, keyring)
    this.translateErrors(() => prepareGraph(this.database, this.name))
  }

  /** Connection for code that runs inside `read` or `write`. */
  get database(): DatabaseSync {
    if (this.readers.active !== undefined) return this.readers.active.database
    this.connection ??= this.connect()
    return this.connection
  }

  /** Returns rows as arrays. */
  all<T>(sql: string, ...values: readonly SQLInputValue[]): T[] {
    return this.prepare(sql).all(...values) as T[]
  }

  /** Returns rows as arrays up to the first one for which `isEnough` is true, and whether these are all. */
  take<T>(
    isEnough: (row: T) => boolean,
    sql: string,
    ...values: readonly SQLInputValue[]
  ): { readonly rows: readonly T[]; readonly isComplete: boolean } {
    const rows: T[] = []
    for (const row of this.prepare(sql).iterate(...values) as Iterable<unknown> as Iterable<T>) {
      rows.push(row)
      if (isEnough(row)) return { rows, isComplete: false }
    }
    return { rows, isComplete: true }
  }

  get<T>(sql: string, ...values: readonly SQLInputValue[]): T | undefined {
    return this.prepare(sql).get(...values) as T | undefined
  }

  /** Returns the number of changed rows and the id of the last inserted one. */
  run(sql: string, ...values: readonly SQLInputValue[]): { readonly changes: number; readonly rowId: number } {
    const { changes, lastInsertRowid } = this.prepare(sql).run(...values)
    return { changes: Number(changes), rowId: Number(lastInsertRowid) }
  }

  /** Caches the latest computed value until this or another connection writes. Call it inside `readInSteps`. */
  *getOrCompute<T>(name: string, compute: () => Work<T>): Work<T> {
    const version = `${name} ${this.readVersion()}`
    const reader = this.readers.active
    if (this.cached?.version === version && this.cached.reader === reader) return this.cached.value as T
    const value = yield* compute()
    this.cached = { version, reader, value }
    return value
  }

  /** Changes whenever this or another connection has written. */
  private readVersion(): string {
    const [dataVersion] = this.get<[number]>('PRAGMA data_version') ?? []
    return `${this.transactionCount} ${dataVersion}`
  }

  /** Runs work on one consistent snapshot of the database. */
  async read<T>(work: () => T): Promise<T> {
    this.assertOpen()
    return this.readAtOnce(work)
  }

  /** `read` for many rows: lets other requests run between steps, and writes of a file too. */
  async readInSteps<T>(work: () => Work<T>): Promise<T> {
    this.assertOpen()
    return this.finishBeforeClose(this.path === undefined ? this.repeatRead(work) : this.readers.read(work))
  }

  private openReader(): SnapshotReader {
    // Opens the file again after a failed write.
    void this.database
    this.guarded?.guard.check()
    return new SnapshotReader(this.path as string, this.identity as StoreIdentity)
  }

  /** Lets `close` wait for an operation. */
  private async finishBeforeClose<T>(operation: Promise<T>): Promise<T> {
    this.operations.add(operation)
    try {
      return await operation
    } catch (error) {
      throw this.translateError(error)
    } finally {
      this.operations.delete(operation)
    }
  }

  /** Reads again from the start if something was written meanwhile. In the last attempt writes wait for the read. */
  private async repeatRead<T>(work: () => Work<T>): Promise<T> {
    for (let attempt = 1; attempt < maxReadAttempts; attempt++) {
      const steps = work()
      let version: string | undefined
      for (;;) {
        const step = await this.readAtOnce(() => {
          version ??= this.readVersion()
          return version === this.readVersion() ? runTurn(steps) : undefined
        })
        if (step === undefined) break
        if (step.done === true) return step.value
        await yieldToEventLoop()
      }
    }
    return this.enqueue(() => runWhole(work()))
  }

  private async readAtOnce<T>(work: () => T): Promise<T> {
    // A transaction that has paused. The next one may begin in the turn in which it ends.
    while (this.transaction !== undefined) await this.transaction.catch(() => [])
    this.guarded?.guard.check()
    return this.translateErrors(() => {
      this.database.exec('BEGIN')
      try {
        return work()
      } finally {
        if (this.database.isTransaction) this.database.exec('COMMIT')
      }
    })
  }

  write<T>(work: () => T): Promise<T> {
    return this.writeInSteps(function* () {
      yield writeWork
      return work()
    })
  }

  /** `write` for many rows: lets other requests run between steps. */
  async writeInSteps<T>(work: () => Work<T>): Promise<T> {
    this.assertOpen()
    return this.enqueue(() => runWhole(work()))
  }

  /**
   * `writeInSteps` for deletions of many rows: it commits where the work yields `commitPoint` once it has done much.
   * Later writes follow its end, those of other connections may come before. If it rejects, a part may be deleted.
   */
  async writeInParts<T>(work: () => Work<T>, keepsOrder = true): Promise<T> {
    this.assertOpen()
    const steps = work()
    return this.enqueue(() => runPart(steps), keepsOrder)
  }

  /**
   * `writeInParts` for erasures, which may take minutes: later writes run between its parts. If it rejects, a part may
   * be erased; a repeated call continues.
   */
  eraseInSteps<T>(work: () => Work<T>): Promise<T> {
    return this.writeInParts(work, false).finally(() => this.noteErasure())
  }

  private enqueue<T>(work: () => Work<PartResult<T>>, keepsOrder = true): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.queue.push({ work, keepsOrder, resolve, reject })
      this.running ??= this.runQueue()
    })
  }

  /** Removes deleted content from unused parts of the file and from its log. */
  async wipe(): Promise<void> {
    this.assertOpen()
    await this.maintain((maintenance) => maintenance.wipe())
  }

  /** Merges the trigram indexes, which removes what was deleted from them. Writes may come in between. */
  async mergeIndexes(): Promise<void> {
    this.assertOpen()
    if (this.path === undefined) return this.eraseInSteps(() => mergeIndexesInSteps(this.database))
    await this.maintain((maintenance) => maintenance.mergeIndexes())
  }

  /** Lets the next sweep of the store wipe the file. Call it after a deletion is committed. */
  noteErasure(): void {
    this.storeMaintenance?.noteErasure()
  }

  /** Runs work on the file in the thread of the open store or, without one, in a thread of its own. */
  private async maintain(run: (maintenance: ThreadWork) => Promise<void>): Promise<void> {
    // After a failed write there is no connection.
    this.translateErrors(() => this.database)
    if (this.guarded === undefined) return
    try {
      if (this.storeMaintenance !== undefined) return await run(this.storeMaintenance)
    } catch (error) {
      if (!(error instanceof MemoryError && error.code === 'closed')) throw error
      this.storeMaintenance = undefined
    }
    this.ownMaintenance ??= new FileThread(this.guarded.file, this.longReads)
    await run(this.ownMaintenance)
  }

  /** Waits for reads in steps and queued writes, then closes the connection. */
  async close(): Promise<void> {
    this.isClosed = true
    await Promise.allSettled(this.operations)
    await this.running
    await this.ownMaintenance?.drain()
    // Reads that have waited for the last transaction come first.
    await yieldToEventLoop()
    this.readers.close()
    this.disconnect()
    await this.released
  }

  private prepare(sql: string): StatementSync {
    const statements = this.readers.active?.statements ?? this.statements
    const known = statements.get(sql)
    if (known !== undefined) return known
    if (statements.size >= maxStatements) statements.clear()
    const statement = this.database.prepare(sql)
    statement.setReturnArrays(true)
    statements.set(sql, statement)
    return statement
  }

  private async runQueue(): Promise<void> {
    // Let other writes of this event loop turn join the batch.
    await new Promise((resolve) => setImmediate(resolve))
    let lockedSince = performance.now()
    while (this.queue.length > 0) {
      const batch = this.queue.splice(0, maxBatchWrites)
      try {
        for (const deadline = performance.now() + busyTimeoutMs; !this.tryBegin(deadline); )
          await new Promise((resolve) => setTimeout(resolve, 5))
        const startedAt = performance.now()
        this.transaction = runInSlices(this.runBatch(batch), yieldWhenLong)
        const outcomes = await this.transaction
        this.queue.unshift(...batch.splice(outcomes.length))
        const isPart = outcomes.includes(undefined)
        const isLong = isPart || performance.now() - startedAt > maxBatchMs
        this.commit(isLong)
        for (const [index, outcome] of outcomes.entries()) settle(batch[index] as QueuedWrite, outcome, this.queue)
        this.transaction = undefined
        if (isLong) await this.moveLog()
        if (isPart) this.noteErasure()
        if (isPart) lockedSince = await waitBetweenParts(lockedSince)
      } catch (error) {
        this.rollback(error)
        for (const { reject } of batch) reject(toMemoryError(error, this.name))
      }
      this.transaction = undefined
    }
    this.running = undefined
  }

  /** Commits the transaction. Without `keepLog`, SQLite may also move the pages of the log into the database. */
  private commit(keepLog: boolean): void {
    if (keepLog) this.database.exec('PRAGMA wal_autocheckpoint = 0')
    try {
      this.database.exec('COMMIT')
    } finally {
      if (keepLog) this.database.exec(`PRAGMA wal_autocheckpoint = ${maxLogPages}`)
    }
    // A commit to a file that has lost its name would be missing after a restart, and is not acknowledged.
    this.guarded?.guard.checkAll()
  }

  /** Moves the log of a long transaction into the database in a thread; otherwise the next commit would. */
  private async moveLog(): Promise<void> {
    // The data is stored already. If this fails, the next commit moves the log.
    await this.maintain((maintenance) => maintenance.truncateLog()).catch(() => undefined)
  }

  /** Runs writes until the time of a transaction is over, and returns their outcomes. */
  private *runBatch(batch: readonly QueuedWrite[]): Work<readonly Outcome[]> {
    this.guarded?.guard.checkAll()
    this.cached = undefined
    this.transactionCount++
    const outcomes: Outcome[] = []
    const end = performance.now() + maxBatchMs
    for (const { work } of batch) {
      outcomes.push(yield* this.attempt(work))
      if (outcomes.includes(undefined) || performance.now() > end) break
    }
    return outcomes
  }

  /** Returns false while another connection has the write lock: SQLite would block the event loop to wait for it. */
  private tryBegin(deadline: number): boolean {
    this.database.exec('PRAGMA busy_timeout = 0')
    try {
      this.database.exec('BEGIN IMMEDIATE')
      return true
    } catch (error) {
      if (isBusy(error) && performance.now() < deadline) return false
      throw error
    } finally {
      this.database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    }
  }

  /** Runs one write in a savepoint: a rejected write leaves the others intact, a disk fault fails the whole batch. */
  private *attempt(work: () => Work<PartResult<unknown>>): Work<Outcome> {
    this.database.exec('SAVEPOINT one')
    try {
      return yield* work()
    } catch (error) {
      if (isDiskError(error)) throw error
      this.database.exec('ROLLBACK TO one')
      return { error: this.translateError(error) }
    } finally {
      if (this.database.isTransaction) this.database.exec('RELEASE one')
    }
  }

  private rollback(error: unknown): void {
    try {
      if (this.connection?.isTransaction) this.connection.exec('ROLLBACK')
    } catch {
      // SQLite has rolled back already, or the connection is unusable.
    }
    // After a failed write the state on disk is unknown; a new connection reads it again.
    if (isDiskError(error)) this.disconnect()
  }

  private disconnect(): void {
    const { connection } = this
    // An in-memory database is lost with its connection, and has no disk faults.
    if (this.path === undefined && !this.isClosed) return
    this.connection = undefined
    this.cached = undefined
    this.statements.clear()
    try {
      connection?.close()
    } catch {
      // Nothing can be done about a connection that cannot be closed.
    }
    this.released = Promise.all([this.released, releaseFileAfter(this.ownMaintenance, this.guarded?.file)]).then(
      () => {},
    )
    this.ownMaintenance = undefined
    this.guarded = undefined
  }

  private connect(): DatabaseSync {
    const { path, identity } = this
    if (path === undefined || identity === undefined) return openInMemory()
    const database = connectWriter(path, identity)
    const file = guardFile(database, path, identity)
    this.guarded = { file, guard: new FileGuard(file) }
    return database
  }

  private translateErrors<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw this.translateError(error)
    }
  }

  /** Maps driver errors to `MemoryError`; a row that is not valid JSON is `corrupt`. */
  private translateError(error: unknown): unknown {
    if (error instanceof Error && 'errcode' in error) return toMemoryError(error, this.name)
    return error instanceof SyntaxError ? createDamagedRowError(this.name, error) : error
  }

  private assertOpen(): void {
    if (this.isClosed) throw new MemoryError('closed', `The graph in ${this.name} is closed. Open it again.`)
  }
}

function openInMemory(): DatabaseSync {
  const database = new DatabaseSync(':memory:', { enableForeignKeyConstraints: true })
  migrate(database, 'ram:')
  return database
}
