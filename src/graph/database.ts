import { resolve } from 'node:path'
import type { SQLInputValue, StatementSync } from 'node:sqlite'
import { MemoryError } from '../domain/error.ts'
import type { Keyring } from '../domain/ports.ts'
import { busyTimeoutMs, connectWriter, prepareFile, syncFile } from '../stores/sqlite/connect.ts'
import { isBusy, isDiskError, toMemoryError } from '../stores/sqlite/errors.ts'
import { FileGuard, type GuardedFile, guardFile, releaseFile, type StoreIdentity } from '../stores/sqlite/fileGuard.ts'
import { prepareGraph } from '../stores/sqlite/graph.ts'
import { DatabaseSync } from '../stores/sqlite/nodeSqlite.ts'
import { migrate } from '../stores/sqlite/schema.ts'

type QueuedWrite = {
  readonly work: () => unknown
  readonly resolve: (result: never) => void
  readonly reject: (error: unknown) => void
}
type Outcome = { readonly result: unknown } | { readonly error: unknown }

/** Longest time the event loop is blocked waiting for another process's write lock before yielding. */
const maxBlockingMs = 50
/** Writes that share one transaction, and so one fsync. */
const maxBatchWrites = 512
/** Prepared statements kept; the SQL of queries varies with their filters. */
const maxStatements = 200

/**
 * SQLite database of a graph, in a file or in memory. Reads run synchronously. Concurrent writes are batched into one
 * transaction, each in its own savepoint, and resolve after the commit is durable.
 */
export class GraphDatabase {
  private readonly path: string | undefined
  private readonly identity: StoreIdentity | undefined
  private guarded: { readonly file: GuardedFile; readonly guard: FileGuard } | undefined
  private readonly queue: QueuedWrite[] = []
  private readonly statements = new Map<string, StatementSync>()
  private connection: DatabaseSync | undefined
  private running: Promise<void> | undefined
  private isClosed = false
  private cached: { readonly version: string; readonly value: unknown } | undefined

  /** Without a path the database is in memory. Throws `bad-secret` if the keys do not fit the file. */
  constructor(path?: string, keyring?: Keyring) {
    this.path = path === undefined ? undefined : resolve(path)
    this.identity = this.path === undefined ? undefined : prepareFile(this.path, keyring)
    this.translateErrors(() => prepareGraph(this.database, this.name))
  }

  /** Connection for code that runs inside `read` or `write`. */
  get database(): DatabaseSync {
    this.connection ??= this.connect()
    return this.connection
  }

  /** Returns rows as arrays. */
  all<T>(sql: string, ...values: readonly SQLInputValue[]): T[] {
    return this.prepare(sql).all(...values) as T[]
  }

  get<T>(sql: string, ...values: readonly SQLInputValue[]): T | undefined {
    return this.prepare(sql).get(...values) as T | undefined
  }

  /** Returns the number of changed rows and the id of the last inserted one. */
  run(sql: string, ...values: readonly SQLInputValue[]): { readonly changes: number; readonly rowId: number } {
    const { changes, lastInsertRowid } = this.prepare(sql).run(...values)
    return { changes: Number(changes), rowId: Number(lastInsertRowid) }
  }

  /** Caches the latest computed value until this or another connection writes. Call it inside `read`. */
  getOrCompute<T>(name: string, compute: () => T): T {
    const [dataVersion] = this.get<[number]>('PRAGMA data_version') ?? []
    const version = `${name} ${dataVersion}`
    if (this.cached?.version !== version) this.cached = { version, value: compute() }
    return this.cached.value as T
  }

  /** Runs work on one consistent snapshot of the database. */
  async read<T>(work: () => T): Promise<T> {
    this.assertOpen()
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

  async write<T>(work: () => T): Promise<T> {
    this.assertOpen()
    return new Promise<T>((resolve, reject) => {
      this.queue.push({ work, resolve, reject })
      this.running ??= this.runQueue()
    })
  }

  /** Truncates the write-ahead log, which still holds deleted content. Returns false while a reader blocks it. */
  async truncateWal(): Promise<boolean> {
    this.assertOpen()
    if (this.path === undefined) return true
    const { busy } = this.translateErrors(() =>
      this.withShortBusyTimeout(
        () => this.database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number },
      ),
    )
    // Without fsync, a power failure could restore the previous content of the log.
    if (busy === 0) syncFile(`${this.path}-wal`)
    return busy === 0
  }

  /** Waits for queued writes, then closes the connection. */
  async close(): Promise<void> {
    this.isClosed = true
    await this.running
    this.disconnect()
  }

  private prepare(sql: string): StatementSync {
    const known = this.statements.get(sql)
    if (known !== undefined) return known
    if (this.statements.size >= maxStatements) this.statements.clear()
    const statement = this.database.prepare(sql)
    statement.setReturnArrays(true)
    this.statements.set(sql, statement)
    return statement
  }

  private async runQueue(): Promise<void> {
    // Let other writes of this event loop turn join the batch.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.queue.length > 0) {
      const batch = this.queue.splice(0, maxBatchWrites)
      try {
        for (const deadline = performance.now() + busyTimeoutMs; !this.tryBegin(deadline); )
          await new Promise((resolve) => setTimeout(resolve, 5))
        this.guarded?.guard.checkAll()
        // No await until COMMIT: reads share this connection and would see uncommitted rows.
        this.cached = undefined
        const outcomes = batch.map(({ work }) => this.attempt(work))
        this.database.exec('COMMIT')
        // A commit to a file that has lost its name would be missing after a restart, and is not acknowledged.
        this.guarded?.guard.checkAll()
        for (const [index, outcome] of outcomes.entries()) settle(batch[index] as QueuedWrite, outcome)
      } catch (error) {
        this.rollback(error)
        for (const { reject } of batch) reject(toMemoryError(error, this.name))
      }
    }
    this.running = undefined
  }

  /** Returns false while another process holds the write lock, so that the event loop can run meanwhile. */
  private tryBegin(deadline: number): boolean {
    try {
      this.withShortBusyTimeout(() => this.database.exec('BEGIN IMMEDIATE'))
      return true
    } catch (error) {
      if (isBusy(error) && performance.now() < deadline) return false
      throw error
    }
  }

  private withShortBusyTimeout<T>(work: () => T): T {
    this.database.exec(`PRAGMA busy_timeout = ${maxBlockingMs}`)
    try {
      return work()
    } finally {
      this.database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    }
  }

  /** Runs one write in a savepoint: a rejected write leaves the others intact, a disk fault fails the whole batch. */
  private attempt(work: () => unknown): Outcome {
    this.database.exec('SAVEPOINT one')
    try {
      return { result: work() }
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
    if (this.guarded !== undefined) releaseFile(this.guarded.file)
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
    if (!(error instanceof SyntaxError)) return error
    return new MemoryError(
      'corrupt',
      `A row of the graph in ${this.name} is damaged. Restore a backup, or write the row again.`,
      { cause: error },
    )
  }

  private assertOpen(): void {
    if (this.isClosed) throw new MemoryError('closed', `The graph in ${this.name} is closed. Open it again.`)
  }

  private get name(): string {
    return this.path ?? 'ram:'
  }
}

function settle({ resolve, reject }: QueuedWrite, outcome: Outcome): void {
  if ('error' in outcome) reject(outcome.error)
  else resolve(outcome.result as never)
}

function openInMemory(): DatabaseSync {
  const database = new DatabaseSync(':memory:', { enableForeignKeyConstraints: true })
  migrate(database, 'ram:')
  return database
}
