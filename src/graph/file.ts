import { resolve } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { MemoryError } from '../domain/error.ts'
import { connectWriter, patience, prepareFile, syncFile } from '../stores/sqlite/connect.ts'
import { faultOf, isBusy, isDiskFault } from '../stores/sqlite/errors.ts'
import { prepareGraph } from '../stores/sqlite/graph.ts'
import { migrate } from '../stores/sqlite/schema.ts'

type Waiting = {
  readonly work: () => unknown
  readonly resolve: (result: never) => void
  readonly reject: (error: unknown) => void
}
type Outcome = { readonly result: unknown } | { readonly error: unknown }

/** So long this process stands still for another one that is writing; after that it lets its own callers have their turn. */
const standstill = 50
/** So many writes share one wait for the disk. */
const largestTurn = 512
/** So many statements are held ready; those of queries differ by what is asked. */
const mostStatements = 200

/**
 * The database a graph lies in: a file, or nothing but RAM. Reads are answered at once; writes that come together are one
 * transaction, each of them whole or not at all, and on the disk before anybody is told.
 */
export class GraphFile {
  private readonly path: string | undefined
  private readonly waiting: Waiting[] = []
  private readonly statements = new Map<string, StatementSync>()
  private open: DatabaseSync | undefined
  private running: Promise<void> | undefined
  private isClosed = false
  private latest: { readonly version: string; readonly value: unknown } | undefined

  /** Without a path, in RAM. */
  constructor(path?: string) {
    this.path = path === undefined ? undefined : resolve(path)
    if (this.path !== undefined) prepareFile(this.path)
    this.guarded(() => prepareGraph(this.database, this.name))
  }

  /** For those who work inside `read` or `write`. */
  get database(): DatabaseSync {
    this.open ??= this.path === undefined ? inRam() : connectWriter(this.path)
    return this.open
  }

  /** Rows as arrays. */
  all<T>(sql: string, ...values: readonly SQLInputValue[]): T[] {
    return this.prepared(sql).all(...values) as T[]
  }

  one<T>(sql: string, ...values: readonly SQLInputValue[]): T | undefined {
    return this.prepared(sql).get(...values) as T | undefined
  }

  /** How many rows changed, and the number of the last new one. */
  run(sql: string, ...values: readonly SQLInputValue[]): { readonly changes: number; readonly place: number } {
    const { changes, lastInsertRowid } = this.prepared(sql).run(...values)
    return { changes: Number(changes), place: Number(lastInsertRowid) }
  }

  /**
   * To be called inside `read`: what takes long to read, which is at hand when it is asked for again before anybody, here
   * or elsewhere, has written. Only the latest is kept.
   */
  kept<T>(name: string, make: () => T): T {
    const [others] = this.one<[number]>('PRAGMA data_version') ?? []
    const version = `${name} ${others}`
    if (this.latest?.version !== version) this.latest = { version, value: make() }
    return this.latest.value as T
  }

  /** Sees one moment of the file, whoever else writes. */
  async read<T>(work: () => T): Promise<T> {
    this.refuseClosed()
    return this.guarded(() => {
      this.database.exec('BEGIN')
      try {
        return work()
      } finally {
        if (this.database.isTransaction) this.database.exec('COMMIT')
      }
    })
  }

  async write<T>(work: () => T): Promise<T> {
    this.refuseClosed()
    return new Promise<T>((resolve, reject) => {
      this.waiting.push({ work, resolve, reject })
      this.running ??= this.runAll()
    })
  }

  /** Takes what was deleted out of the log too; false if a reader is in the way. */
  async clean(): Promise<boolean> {
    this.refuseClosed()
    if (this.path === undefined) return true
    const { busy } = this.guarded(() =>
      this.hurried(() => this.database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }),
    )
    // Without this a loss of power could bring back the log as it was before.
    if (busy === 0) syncFile(`${this.path}-wal`)
    return busy === 0
  }

  /** Resolves when everything that waits is written. */
  async close(): Promise<void> {
    this.isClosed = true
    await this.running
    this.letGo()
  }

  private prepared(sql: string): StatementSync {
    const known = this.statements.get(sql)
    if (known !== undefined) return known
    if (this.statements.size >= mostStatements) this.statements.clear()
    const statement = this.database.prepare(sql)
    statement.setReturnArrays(true)
    this.statements.set(sql, statement)
    return statement
  }

  private async runAll(): Promise<void> {
    // Whatever else comes in this turn of the event loop comes along.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.waiting.length > 0) {
      const turn = this.waiting.splice(0, largestTurn)
      try {
        for (const end = performance.now() + patience; !this.hasBegun(end); )
          await new Promise((resolve) => setTimeout(resolve, 5))
        // From here to the end nobody else gets a turn: what others read in between would be part of this.
        this.latest = undefined
        const outcomes = turn.map(({ work }) => this.attempt(work))
        this.database.exec('COMMIT')
        for (const [at, outcome] of outcomes.entries()) settle(turn[at] as Waiting, outcome)
      } catch (error) {
        this.undo(error)
        for (const { reject } of turn) reject(faultOf(error, this.name))
      }
    }
    this.running = undefined
  }

  /** False while another process writes, so that this one can do its other work meanwhile. */
  private hasBegun(end: number): boolean {
    try {
      this.hurried(() => this.database.exec('BEGIN IMMEDIATE'))
      return true
    } catch (error) {
      if (isBusy(error) && performance.now() < end) return false
      throw error
    }
  }

  /** Does something that others may be in the way of, without standing still for long. */
  private hurried<T>(work: () => T): T {
    this.database.exec(`PRAGMA busy_timeout = ${standstill}`)
    try {
      return work()
    } finally {
      this.database.exec(`PRAGMA busy_timeout = ${patience}`)
    }
  }

  /** A write that is refused does not touch the others; if the disk fails, all fail. */
  private attempt(work: () => unknown): Outcome {
    this.database.exec('SAVEPOINT one')
    try {
      return { result: work() }
    } catch (error) {
      if (isDiskFault(error)) throw error
      this.database.exec('ROLLBACK TO one')
      return { error: this.told(error) }
    } finally {
      if (this.database.isTransaction) this.database.exec('RELEASE one')
    }
  }

  private undo(error: unknown): void {
    try {
      if (this.open?.isTransaction) this.open.exec('ROLLBACK')
    } catch {
      // It was rolled back by SQLite itself, or the connection is beyond use.
    }
    // After a failed write nobody knows what the disk holds of it: a new connection reads it again.
    if (isDiskFault(error)) this.letGo()
  }

  private letGo(): void {
    const { open } = this
    // What is in RAM is lost with its connection, and no disk can fail there.
    if (this.path === undefined && !this.isClosed) return
    this.open = undefined
    this.latest = undefined
    this.statements.clear()
    try {
      open?.close()
    } catch {
      // A connection that cannot even be closed is given up.
    }
  }

  private guarded<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw this.told(error)
    }
  }

  /** What a caller hears of an error: of the driver's what it means, of a row that is no JSON any more that it is damaged. */
  private told(error: unknown): unknown {
    if (error instanceof Error && 'errcode' in error) return faultOf(error, this.name)
    if (!(error instanceof SyntaxError)) return error
    return new MemoryError(
      'corrupt',
      `A row of the graph in ${this.name} is damaged. Bring back a backup, or write it anew.`,
      { cause: error },
    )
  }

  private refuseClosed(): void {
    if (this.isClosed) throw new MemoryError('closed', `The graph in ${this.name} is closed; open it again.`)
  }

  private get name(): string {
    return this.path ?? 'ram:'
  }
}

function settle({ resolve, reject }: Waiting, outcome: Outcome): void {
  if ('error' in outcome) reject(outcome.error)
  else resolve(outcome.result as never)
}

function inRam(): DatabaseSync {
  const database = new DatabaseSync(':memory:', { enableForeignKeyConstraints: true })
  migrate(database, 'ram:')
  return database
}
