import { MemoryError } from '../../domain/error.ts'
import type { Scope } from '../../domain/key.ts'
import type { SqlSession } from '../../domain/ports.ts'
import { backoffDelay } from '../../domain/retry.ts'
import type { Connection, Driver, NotificationListener, SqlRow, SqlValue } from './driver.ts'
import { breaksConnection, isNotApplied, isTransient, type Stage, toMemoryError } from './errors.ts'
import { type MigrationStep, migrateComponent } from './migrate.ts'
import { defaultSettings } from './url.ts'

/**
 * Repetition after a fault that may pass. `always`: the operation recognises or tolerates its repetition.
 * `if-not-applied`: only if the fault shows that nothing was applied.
 */
export type Repetition = 'always' | 'if-not-applied'

export type TransactionOptions = {
  readonly repeat?: Repetition
  /** Sees one state of the database and writes nothing. */
  readonly readOnly?: boolean
}

/** Scope of operations on the whole store; no tenant can have this name. */
export const allScopes = '*'

const retryBaseDelayMs = 50
const maxRetryDelayMs = 1_000

/**
 * Runs statements on a database and repeats what failed for a passing reason. Row-level security shows a statement only
 * rows of the scope that its transaction has entered.
 */
export class Database {
  readonly name: string
  readonly schema: string
  private readonly driver: Driver
  private readonly retryTimeMs: number
  private isClosed = false

  /** Faults are retried for `retryTimeMs`. */
  constructor(driver: Driver, schema: string, retryTimeMs = defaultSettings.connectTimeoutMs) {
    this.driver = driver
    this.retryTimeMs = retryTimeMs
    this.name = driver.name
    this.schema = schema
  }

  /** Runs one statement in one round trip. It sees no rows of tenants unless it enters a scope itself. */
  query<R extends SqlRow>(
    sql: string,
    values: readonly SqlValue[] = [],
    repeat: Repetition = 'if-not-applied',
  ): Promise<readonly R[]> {
    return this.withConnection(repeat, (connection) => connection.query(sql, values) as Promise<readonly R[]>)
  }

  /** Calls a function of the schema, which enters a scope, in one round trip. Resolves to its parsed JSON. */
  async call<T>(name: string, values: readonly SqlValue[], repeat: Repetition = 'if-not-applied'): Promise<T> {
    const placeholders = values.map((_, index) => `$${index + 1}`).join(', ')
    const [row] = await this.query<[string | null]>(`SELECT ${this.schema}.${name}(${placeholders})`, values, repeat)
    return JSON.parse(row?.[0] ?? 'null') as T
  }

  /** Runs several statements in one transaction that has entered a scope. */
  transaction<T>(
    scope: Scope,
    work: (session: SqlSession) => Promise<T>,
    { repeat = 'if-not-applied', readOnly = false }: TransactionOptions = {},
  ): Promise<T> {
    const mode = readOnly ? ' ISOLATION LEVEL REPEATABLE READ READ ONLY' : ''
    let isCommitting = false
    return this.withConnection(
      repeat,
      async (connection) => {
        isCommitting = false
        await connection.run(`BEGIN${mode}; SET LOCAL threadkeep.scope = '${scope.replaceAll("'", "''")}'`)
        try {
          const result = await work(connection)
          isCommitting = true
          await connection.run('COMMIT')
          return result
        } catch (error) {
          if (!breaksConnection(error) || error instanceof MemoryError) await connection.run('ROLLBACK')
          throw error
        }
      },
      () => !isCommitting,
    )
  }

  /** Runs a statement that may not be part of a transaction, such as VACUUM. */
  maintain(sql: string): Promise<void> {
    return this.withConnection('always', (connection) => connection.run(sql))
  }

  /** Brings the tables of a component to the newest version; concurrent callers wait for the first. */
  migrate(component: string, steps: readonly MigrationStep[]): Promise<void> {
    return this.withConnection('always', (connection) =>
      migrateComponent(connection, { name: this.name, schema: this.schema, component }, steps),
    )
  }

  listen(channel: string, listener: NotificationListener): Promise<void> {
    return this.driver.listen(channel, listener)
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    await this.driver.close()
  }

  /** `isUnsent` tells for a failed attempt whether the deciding statement had not been sent. */
  private async withConnection<T>(
    repeat: Repetition,
    work: (connection: Connection) => Promise<T>,
    isUnsent: () => boolean = () => false,
  ): Promise<T> {
    const deadline = performance.now() + this.retryTimeMs
    for (let attempts = 1; ; attempts++) {
      if (this.isClosed) throw new MemoryError('closed', `${this.name} is closed. Open it again.`)
      const stage: { current: Stage } = { current: 'connect' }
      try {
        return await this.attempt(work, stage)
      } catch (error) {
        const isSafe = repeat === 'always' || isUnsent() || isNotApplied(error, stage.current)
        const delay = Math.min(maxRetryDelayMs, backoffDelay(attempts, retryBaseDelayMs))
        if (!isSafe || !isTransient(error) || performance.now() + delay > deadline)
          throw toMemoryError(error, this.name, stage.current)
        await new Promise((resolve) => setTimeout(resolve, delay))
      }
    }
  }

  private async attempt<T>(work: (connection: Connection) => Promise<T>, stage: { current: Stage }): Promise<T> {
    const connection = await this.driver.connect()
    stage.current = 'run'
    let isBroken = true
    try {
      const result = await work(connection)
      isBroken = false
      return result
    } catch (error) {
      isBroken = !(error instanceof MemoryError) && breaksConnection(error)
      throw error
    } finally {
      connection.release(isBroken)
    }
  }
}
