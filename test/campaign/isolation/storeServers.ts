import { type PostgresStore, postgresStore } from '../../../src/stores/postgres.ts'
import { emptyDatabase } from '../../support/emptyDatabase.ts'
import { type PostgresServer, startPostgres } from '../../support/postgresServer.ts'
import { startRedisServer } from '../../support/redisServer.ts'

export type ServerStore = 'postgres' | 'redis'

/** Database servers of a run. */
export type StoreServers = AsyncDisposable & {
  /** Returns the URL of an empty store. A world has one store at a time. */
  emptyStore(store: ServerStore, world: string): Promise<string>
}

/** Creates servers that start with the first store, unless a PostgreSQL server is given. */
export function createStoreServers(
  startDatabases: () => Promise<Pick<PostgresServer, 'createDatabase'> & { remove?(): Promise<void> }> = startPostgres,
): StoreServers {
  let postgres: ReturnType<typeof startDatabases> | undefined
  let redis: ReturnType<typeof startRedisServer> | undefined
  let prefixes = 0
  const databases = new Map<string, Promise<{ readonly url: string; readonly store: PostgresStore }>>()
  const createDatabase = async () => {
    postgres ??= startDatabases()
    const url = await (await postgres).createDatabase()
    return { url, store: await postgresStore(url) }
  }
  return {
    emptyStore: async (kind, world) => {
      if (kind === 'redis') {
        redis ??= startRedisServer()
        return `${(await redis).url}?prefix=w${++prefixes}`
      }
      const database = databases.get(world) ?? createDatabase()
      databases.set(world, database)
      const { url, store } = await database
      await emptyDatabase(store)
      return url
    },
    [Symbol.asyncDispose]: async () => {
      for (const { store } of await Promise.all(databases.values())) await store.close()
      await (await redis)?.remove()
      await (await postgres)?.remove?.()
    },
  }
}
