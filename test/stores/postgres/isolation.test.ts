import { describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { openMemory, profiles } from '../../../src/index.ts'
import { newChange, newFact, newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { type PostgresStore, postgresStore } from '../../../src/stores/postgres.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createEmptyStores, getPostgres } from '../../support/postgres.ts'

const openEmpty = createEmptyStores()

async function fill(store: PostgresStore, scope: string): Promise<void> {
  const key = parseKey(`${scope}:ann`)
  await store.commit(
    newChange('1', { key, append: [newMessage(`the walrus of ${scope}`)], put: [newFact('f1', scope)] }),
  )
  await store.appendRecord(key, { id: 'r1', at: 1, body: scope }, 10)
  const vector = { key, id: 'm1', epoch: 0, text: `the walrus of ${scope}`, values: Float32Array.of(1, 2) }
  await store.storeVectors('e', [vector])
  await store.table.writeRows(scope, 1, [{ namespace: [], key: 'k', value: scope }])
  await store.erase(parseKey(`${scope}:gone`))
}

const tables = ['session', 'message', 'derived', 'operation', 'record', 'vector', 'table_row', 'tombstone', 'removal']

/** Counts the rows of each table without a predicate on the scope. */
async function countRows(store: PostgresStore, scope: string): Promise<readonly number[]> {
  const { database } = store
  const sql = `SELECT ${tables.map((table) => `(SELECT count(*) FROM ${database.schema}.${table})`).join(', ')}`
  const rows = scope === '' ? await database.query(sql) : await database.transaction(scope, ({ query }) => query(sql))
  return rows[0] as number[]
}

describe('row-level security', () => {
  verifies(
    'X-06',
    'query › with a forgotten predicate › returns only rows of its scope, or none without one',
    async () => {
      const store = await openEmpty()
      for (const scope of ['acme', 'zeta', 'zeta-2']) await fill(store, scope)
      const one = tables.map(() => 1)
      expect(await countRows(store, 'acme')).toEqual(one)
      expect(await countRows(store, 'zeta')).toEqual(one)
      expect(await countRows(store, 'nobody')).toEqual(tables.map(() => 0))
      expect(await countRows(store, '')).toEqual(tables.map(() => 0))
    },
  )

  verifies('X-06', 'write › to another scope › is rejected, and deletes nothing of it', async () => {
    const store = await openEmpty()
    for (const scope of ['acme', 'zeta']) await fill(store, scope)
    const { database } = store
    await database.transaction('acme', ({ run }) =>
      run(`DELETE FROM ${database.schema}.message; UPDATE ${database.schema}.session SET revision = 99`),
    )
    expect((await store.readHead(parseKey('zeta:ann'), 5)).recent).toHaveLength(1)
    expect((await store.readHead(parseKey('zeta:ann'), 5)).revision).toBe(1)
    const insert = `INSERT INTO ${database.schema}.removal VALUES (sha256('zeta'), 3, 1)`
    await expect(database.transaction('acme', ({ run }) => run(insert))).rejects.toThrow(/row-level security/)
  })

  it('superuser › at open › is warned with a remedy', async () => {
    const server = await getPostgres()
    const url = new URL(await server.createDatabase())
    const warnings: string[] = []
    const store = await postgresStore(server.url(url.pathname.slice(1), 'postgres'), {
      onWarning: (text) => warnings.push(text),
    })
    await store.close()
    expect(warnings).toEqual([expect.stringMatching(/bypasses row-level security.*CREATE ROLE/s)])
  })
})

describe('a tenant with others in the same database', () => {
  const topics = ['the walrus on the ice', 'trains to Lisbon', 'a cat called Miso', 'the invoice of March']

  verifies('X-06', 'gets the same bytes as alone', async () => {
    const read = async (store: PostgresStore, others: readonly string[]): Promise<string> => {
      const memory = await openMemory({ profile: profiles.thread, store, clock: () => 50_000_000 })
      for (const scope of [...others, 'acme', ...others.map((name) => `acme-${name}`)])
        for (let session = 0; session < 2; session++) {
          const messages = topics.map((topic, at) => ({
            role: 'user' as const,
            content: `${topic}, number ${(scope.length * 7 + at + session) % 50}`,
            at: 1_000_000 * (at + 1),
          }))
          await memory.append(`${scope}:s${session}`, messages)
        }
      const found = await Promise.all(topics.map((topic) => memory.search('acme', topic, { limit: 20 })))
      const context = await memory.context('acme:s1', { query: 'what of the walrus and the invoice?', budget: 200 })
      return JSON.stringify([found, context])
    }
    const alone = await read(await openEmpty(), [])
    expect(alone).toContain('walrus')
    expect(
      await read(
        await openEmpty(),
        Array.from({ length: 8 }, (_, at) => `tenant${at}`),
      ),
    ).toBe(alone)
  })
})
