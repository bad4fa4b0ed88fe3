import { afterAll, inject } from 'vitest'
import { type PostgresServer, sharedPostgres } from './postgresServer.ts'
import './postgresSetup.ts'
import { PostgresStore, postgresStore } from '../../src/stores/postgres.ts'
import { emptyDatabase } from './emptyDatabase.ts'

/** Returns the PostgreSQL server of this test run. */
export const getPostgres = (): Promise<PostgresServer> => sharedPostgres(inject('postgresFolder'))

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
    await emptyDatabase(await first)
    return Object.assign(createStore(database, minSnapshotMessages), { close: async () => undefined })
  }
}

/** Creates a store with caches of its own. */
export const createStore = (database: PostgresStore['database'], minSnapshotMessages: number): PostgresStore =>
  new PostgresStore(database, { minSnapshotMessages, maxExactVectors: 10_000, vectorSchema: undefined })

function failOnWarning(warning: string): never {
  throw new Error(`Unexpected warning: ${warning}`)
}

/**
 * Returns a function that empties the database of a test file and resolves to its URL. Stores that were opened before
 * must be closed.
 */
export function createEmptyDatabases(): () => Promise<string> {
  let first: Promise<{ readonly url: string; readonly store: PostgresStore }> | undefined
  afterAll(async () => (await first)?.store.close())
  const create = async () => {
    const url = await (await getPostgres()).createDatabase()
    return { url, store: await postgresStore(url, { onWarning: failOnWarning }) }
  }
  return async () => {
    first ??= create()
    const { url, store } = await first
    await emptyDatabase(store)
    return url
  }
}
