import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { openMemory } from '../../../src/index.ts'
import { newChange, newFact, newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { partitionCount, partitionName } from '../../../src/stores/postgres/migrate.ts'
import { type PostgresStore, postgresStore } from '../../../src/stores/postgres.ts'
import { findEncodings, newCanary } from '../../fault/canary.ts'
import { verifies } from '../../requirements/verifies.ts'
import { getPostgres } from '../../support/postgres.ts'

const server = await getPostgres()
const url = await server.createDatabase()
const stores: PostgresStore[] = []
afterAll(async () => {
  for (const store of stores) await store.close()
})
const open = async (): Promise<PostgresStore> => {
  const store = await postgresStore(url, { minSnapshotMessages: 1 })
  stores.push(store)
  return store
}
const key = parseKey('acme:ann')

/** Lists the files of the database that contain a text, after everything was written to them. */
async function findInFiles(text: string): Promise<readonly string[]> {
  const database = new URL(url).pathname.slice(1)
  await server.administer('CHECKPOINT')
  const [row] = await server.administer(`SELECT oid FROM pg_database WHERE datname = '${database}'`)
  const folder = join(server.dataFolder, 'base', String(row?.oid))
  return readdirSync(folder).filter((file) => findEncodings(readFileSync(join(folder, file)), [text]).length > 0)
}

/** Rewrites the partitions of a scope. */
async function vacuumFull({ database }: PostgresStore, scope: string): Promise<void> {
  for (const table of ['message', 'derived', 'record'])
    for (let number = 0; number < partitionCount; number++) {
      const sql = `SELECT satisfies_hash_partition('${database.schema}.${table}'::regclass, ${partitionCount}, ${number}, $1::text)`
      const [row] = await database.query(sql, [scope])
      if (row?.[0] === true) await database.maintain(`VACUUM FULL ${database.schema}.${partitionName(table, number)}`)
    }
}

describe('erase', () => {
  verifies(
    'X-05',
    'of a session › removes its rows, and VACUUM FULL its bytes from the files of the tables',
    async () => {
      const store = await open()
      const canary = newCanary()
      await store.commit(
        newChange('1', { append: [newMessage(`the word is ${canary}`)], put: [newFact('f1', canary)] }),
      )
      await store.appendRecord(key, { id: 'r', at: 1, body: JSON.stringify(canary) }, 10)
      await store.search({ scope: 'acme' }, { text: canary, limit: 5 })
      expect(await findInFiles(canary)).not.toEqual([])
      const { epoch } = await store.readHead(key, 0)
      await store.erase(key)
      const everything = await store.database.transaction('*', ({ query }) =>
        query(
          `SELECT (SELECT count(*) FROM ${store.database.schema}.message), (SELECT count(*) FROM ${store.database.schema}.snapshot)`,
        ),
      )
      expect(everything).toEqual([[0, 0]])
      expect(await store.search({ scope: 'acme' }, { text: canary, limit: 5 })).toEqual([])
      await expect(store.commit(newChange('2', { epoch, append: [newMessage('late')] }))).rejects.toMatchObject({
        code: 'erased',
      })
      await vacuumFull(store, 'acme')
      expect(await findInFiles(canary)).toEqual([])
    },
  )

  verifies('X-05', 'in one process › drops the caches and indexes of the others', async () => {
    const [writer, reader] = [await open(), await open()]
    await writer.commit(
      newChange('1', { epoch: (await writer.readHead(key, 0)).epoch, append: [newMessage('a secret walrus')] }),
    )
    const other = parseKey('zeta:bob')
    await writer.commit(newChange('1', { key: other, append: [newMessage('a walrus')] }))
    const cachedKeys = (): readonly string[] => {
      const { heads, finder } = reader as unknown as {
        heads: { sessions: Iterable<readonly [string, unknown]> }
        finder: { bytes: number }
      }
      return [...[...heads.sessions].map(([name]) => name).sort(), ...(finder.bytes > 0 ? ['index'] : [])]
    }
    for (const target of [key, other]) await reader.readHead(target, 5)
    await reader.search(key, { text: 'walrus', limit: 5 })
    expect(cachedKeys()).toEqual(['acme:ann', 'zeta:bob', 'index'])
    await writer.erase(key)
    await expect.poll(cachedKeys).toEqual(['zeta:bob'])
  })

  it('after the connection that listens was lost › drops all caches when it is back', async () => {
    const reader = await open()
    await reader.commit(newChange('1', { key: parseKey('acme:carl'), append: [newMessage('a walrus')] }))
    await reader.readHead(parseKey('acme:carl'), 5)
    const { heads } = reader as unknown as { heads: { sessions: { size: number } } }
    expect(heads.sessions.size).toBe(1)
    await server.administer("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
    await expect.poll(() => heads.sessions.size, { timeout: 10_000 }).toBe(0)
  })

  verifies('X-05', 'of a scope through the library › leaves nothing of it', async () => {
    const store = await open()
    const memory = await openMemory({ store, profile: 'thread' })
    await memory.append('gone:ann', [{ role: 'user', content: 'My cat is called Miso.' }])
    await store.table.writeRows('gone', 1, [{ namespace: ['a'], key: 'k', value: 'Miso' }])
    await memory.forget({ scope: 'gone' })
    const left = await store.database.transaction('gone', ({ query }) =>
      query(
        `SELECT (SELECT count(*) FROM ${store.database.schema}.session), (SELECT count(*) FROM ${store.database.schema}.message)`,
      ),
    )
    expect(left).toEqual([[0, 0]])
    await memory.close()
  })
})
