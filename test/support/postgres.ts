import { afterAll, inject } from 'vitest'
import { type PostgresServer, sharedPostgres } from './postgresServer.ts'
import './postgresSetup.ts'
import { PostgresStore, postgresStore } from '../../src/stores/postgres.ts'

/** Returns the PostgreSQL server of this test run. */
export const getPostgres = (): Promise<PostgresServer> => sharedPostgres(inject('postgresFolder'))

const tables = [
  'session',
  'message',
  'derived',
  'operation',
  'record',
  'vector',
  'table_row',
  'graph_row',
  'graph_origin',
  'tombstone',
  'removal',
  'snapshot',
]

/** Deletes all rows of a store. */
const deleteRows = ({ database }: PostgresStore): Promise<void> =>
  database.transaction('*', ({ run }) =>
    run(tables.map((table) => `DELETE FROM ${database.schema}.${table};`).join(' ')),
  )

/**
 * Returns a function that opens an empty store. All stores of a test file share one database, because it takes seconds
 * to migrate one, and its connections; closing such a store does nothing.
 */
export function createEmptyStores(
  minSnapshotMessages = 2_000,
  createUrl = async () => (await getPostgres()).createDatabase(),
): () => Promise<PostgresStore> {
  let first: Promise<PostgresStore> | undefined
  afterAll(async () => (await first)?.close())
  return async () => {
    first ??= createUrl().then((url) => postgresStore(url, { onWarning: failOnWarning }))
    const { database } = await first
    await deleteRows(await first)
    return Object.assign(createStore(database, minSnapshotMessages), { close: async () => undefined })
  }
}

/** Creates a store with caches of its own. */
export const createStore = (database: PostgresStore['database'], minSnapshotMessages: number): PostgresStore =>
  new PostgresStore(database, { minSnapshotMessages, maxExactVectors: 10_000, vectorSchema: undefined })

function failOnWarning(warning: string): never {
  throw new Error(`Unexpected warning: ${warning}`)
}
