import { randomUUID } from 'node:crypto'
import type { DerivedEntry, Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import type { Key } from '../../domain/key.ts'
import { KeyedMutex } from '../../domain/keyed.ts'
import type { Clock, SqlSession, StoreDatabase } from '../../domain/ports.ts'
import { noExpiry, type SessionChange } from '../../domain/session.ts'
import { throwConflict } from '../../stores/postgres/conflicts.ts'
import { type CommitAnswer, type DerivedCells, formatChange, parseDerived } from '../../stores/postgres/rows.ts'
import { createDamagedRowError } from '../rows.ts'
import { parseWorkspace, type WorkspaceCiphers } from '../workspace.ts'
import { WorkspaceRows } from './workspaceRows.ts'

/** State of the session that owns a workspace; revision 0 if it does not exist. */
type Owner = { readonly revision: number; readonly epoch: number; readonly derived: readonly DerivedEntry[] }

/**
 * Runs the transactions of a graph. Each workspace is owned by an internal session, which holds its key and whose lock
 * orders the writers of all processes.
 */
export class PostgresWorkspaces {
  private readonly clock: Clock
  private readonly database: StoreDatabase
  private readonly ciphers: WorkspaceCiphers
  private readonly running = new Set<Promise<unknown>>()
  /** Transactions of a workspace wait for each other here, in the order of the calls, instead of in the database. */
  private readonly order = new KeyedMutex()
  private isClosed = false

  constructor(database: StoreDatabase, ciphers: WorkspaceCiphers, clock: Clock) {
    this.database = database
    this.ciphers = ciphers
    this.clock = clock
  }

  /** Reads one state of a workspace; resolves to `absent` if it was never written. */
  async read<T>(name: string, absent: T, work: (rows: WorkspaceRows) => Promise<T>): Promise<T> {
    const key = parseWorkspace(name)
    const readRows = async (session: SqlSession): Promise<T> => {
      const owner = await this.readOwner(session, key, 'read_graph_owner')
      return owner.revision === 0 ? absent : this.runOn(session, key, owner, work)
    }
    return this.run(() => this.database.transaction(key.scope, readRows, { readOnly: true, repeat: 'always' }))
  }

  /** Writes to a workspace, which is created if it does not exist. `work` may be called again after a fault. */
  async write<T>(name: string, work: (rows: WorkspaceRows, at: Millis) => Promise<T>): Promise<T> {
    const key = parseWorkspace(name)
    return this.runInOrder(name, () =>
      this.database.transaction(key.scope, async (session) => {
        const found = await this.readOwner(session, key, 'lock_graph_owner')
        const at = this.clock()
        const owner = found.revision === 0 ? await this.createOwner(session, key, found.epoch, at) : found
        return this.runOn(session, key, owner, (rows) => work(rows, at))
      }),
    )
  }

  /** Writes to an existing workspace; resolves to `absent` if there is none. */
  async change<T>(name: string, absent: T, work: (rows: WorkspaceRows) => Promise<T>): Promise<T> {
    const key = parseWorkspace(name)
    return this.runInOrder(name, () =>
      this.database.transaction(key.scope, async (session) => {
        const owner = await this.readOwner(session, key, 'lock_graph_owner')
        return owner.revision === 0 ? absent : this.runOn(session, key, owner, work)
      }),
    )
  }

  /** Waits for running transactions. */
  async close(): Promise<void> {
    this.isClosed = true
    await Promise.allSettled(this.running)
    this.ciphers.wipe()
  }

  private async readOwner(
    session: SqlSession,
    { scope, id }: Key,
    read: 'read_graph_owner' | 'lock_graph_owner',
  ): Promise<Owner> {
    const [row] = await session.query(`SELECT ${this.database.schema}.${read}($1, $2)`, [scope, id])
    const { derived, ...owner } = JSON.parse(row?.[0] as string) as Owner & { derived: readonly DerivedCells[] }
    return { ...owner, derived: derived.map(parseDerived) }
  }

  /** Creates the session of a workspace, which the transaction has locked. */
  private async createOwner(session: SqlSession, key: Key, epoch: number, at: Millis): Promise<Owner> {
    const put = this.ciphers.createKeyEntries(key, at)
    const change: SessionChange = { key, at, epoch, base: 0, append: [], put, drop: [], expiresAt: noExpiry }
    const [row] = await session.query(`SELECT ${this.database.schema}.commit_change($1, $2, $3)`, [
      ...[key.scope, key.id, formatChange(change, randomUUID())],
    ])
    const answer = JSON.parse(row?.[0] as string) as CommitAnswer
    return 'conflict' in answer ? throwConflict(change, answer) : { revision: 1, epoch, derived: put }
  }

  /** Runs work on the rows of a workspace. A row that is not valid JSON is `corrupt`. */
  private async runOn<T>(
    session: SqlSession,
    key: Key,
    { derived }: Owner,
    work: (rows: WorkspaceRows) => Promise<T>,
  ): Promise<T> {
    const { name, schema } = this.database
    try {
      return await work(new WorkspaceRows(session, schema, key.scope, this.ciphers.open(key, derived)))
    } catch (error) {
      throw error instanceof SyntaxError ? createDamagedRowError(name, error) : error
    }
  }

  private runInOrder<T>(workspace: string, work: () => Promise<T>): Promise<T> {
    return this.run(() => this.order.run(workspace, work))
  }

  private async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.isClosed) throw new MemoryError('closed', `The graph in ${this.database.name} is closed. Open it again.`)
    const running = work()
    this.running.add(running)
    return running.finally(() => this.running.delete(running))
  }
}
