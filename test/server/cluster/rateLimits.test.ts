import { describe, expect, it } from 'vitest'
import { openStore } from '../../../src/stores/open.ts'
import { PostgresTokenBuckets } from '../../../src/stores/postgres/tokenBuckets.ts'
import { postgresStore } from '../../../src/stores/postgres.ts'
import { redisStore } from '../../../src/stores/redis.ts'
import { verifies } from '../../requirements/verifies.ts'
import { newPrefix, startRedis } from '../../stores/redis/redisServer.ts'
import { createTempPaths } from '../../stores/tempPaths.ts'
import { createEmptyDatabases } from '../../support/postgres.ts'
import { openConfiguredServer } from '../config/harness.ts'
import { createRedisUrls, openSharedServers } from './sharedServers.ts'

const newRedisUrl = await createRedisUrls()
const newPostgresUrl = createEmptyDatabases()
const fresh = createTempPaths()
const rateLimits = { requestsPerMinute: 4 }
const stores = [
  ['Redis', newRedisUrl],
  ['PostgreSQL', newPostgresUrl],
] as const

describe.each(stores)('rate limits of two servers on %s', (_, store) => {
  verifies('T-17', 'with a shared store › count the requests of both', async () => {
    const url = await store()
    await using limits = { store: await openStore(url), [Symbol.asyncDispose]: () => limits.store.close() }
    await using shared = await openSharedServers(url, 2, {
      rateLimits,
      tokenBuckets: limits.store.capabilities.tokenBuckets,
    })
    const statuses: number[] = []
    for (let index = 0; index < 6; index++) statuses.push((await shared.ask(index % 2, `Question ${index}`))[0])
    expect(statuses).toEqual([200, 200, 200, 200, 429, 429])
    expect(shared.faults()).toEqual([])
  })
})
describe('rate limits of two servers', () => {
  verifies(
    'T-17',
    'with a shared store that is gone › apply to each server, and the operator is told once',
    async () => {
      const redis = await startRedis()
      const store = await redisStore(`${redis.url}?prefix=${newPrefix()}`)
      await using shared = await openSharedServers(newRedisUrl(), 2, {
        rateLimits,
        tokenBuckets: store.capabilities.tokenBuckets,
      })
      await redis.stop('SIGKILL')
      const statuses: number[] = []
      for (let index = 0; index < 10; index++) statuses.push((await shared.ask(index % 2, `Question ${index}`))[0])
      expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 200, 200, 429, 429])
      expect(shared.faults().map((fault) => fault.split('. ')[0])).toEqual(
        Array(2).fill('Each server limits the rate on its own'),
      )
      await store.close()
    },
  )
})

describe.each(stores)('token buckets in %s', (_, url) => {
  it('refill evenly, hold as many tokens as allowed in a minute, and tell when the next one is there', async () => {
    const store = await openStore(await url())
    const buckets = store.capabilities.tokenBuckets
    const waits = await Promise.all(Array.from({ length: 8 }, () => buckets?.take('ann', 6)))
    expect(waits.filter((wait) => wait === 0)).toHaveLength(6)
    for (const wait of waits.filter((each) => each !== 0)) {
      expect(wait).toBeGreaterThan(5_000)
      expect(wait).toBeLessThanOrEqual(10_000)
    }
    expect(await buckets?.take('ben', 6)).toBe(0)
    // 60,000 tokens a minute are one each millisecond.
    for (let taken = 0; taken < 300; taken++) expect(await buckets?.take('cleo', 60_000)).toBe(0)
    await store.close()
  })
})

describe('token buckets in PostgreSQL', () => {
  const nowMs = 'extract(epoch FROM clock_timestamp()) * 1000'
  const open = async () => {
    const store = await postgresStore(await newPostgresUrl())
    const { database } = store
    const buckets = new PostgresTokenBuckets(database, 5)
    const run = (scope: string, sql: string, ...values: readonly number[]) =>
      database.transaction(scope, ({ query }) =>
        query(sql.replace('BUCKETS', `${database.schema}.token_bucket`), values),
      )
    return {
      take: (bucket: string) => buckets.take(bucket, 2),
      /** Sets the time at which all buckets are full, in milliseconds from now. */
      fillAfter: (ms: number) => run('*', `UPDATE BUCKETS SET full_at = ${nowMs} + $1`, ms),
      count: async (scope: string) => (await run(scope, 'SELECT count(*) FROM BUCKETS'))[0]?.[0],
      [Symbol.asyncDispose]: () => store.close(),
    }
  }

  it('refill with the clock of the database, also after it was set back', async () => {
    await using buckets = await open()
    const takeThree = async () => [await buckets.take('ann'), await buckets.take('ann'), await buckets.take('ann')]
    expect(await takeThree()).toEqual([0, 0, expect.closeTo(30_000, -4)])
    await buckets.fillAfter(20_000)
    expect(await takeThree()).toEqual([0, expect.closeTo(20_000, -4), expect.closeTo(20_000, -4)])
    await buckets.fillAfter(24 * 3_600_000)
    expect(await takeThree()).toEqual([0, 0, expect.closeTo(30_000, -4)])
  })

  it('are invisible to statements of a tenant, and deleted when they are full', async () => {
    await using buckets = await open()
    for (const client of ['ann', 'ben', 'cleo', 'dan']) await buckets.take(client)
    expect([await buckets.count('*'), await buckets.count('acme')]).toEqual([4, 0])
    await buckets.fillAfter(-1)
    await buckets.take('ben')
    await expect.poll(() => buckets.count('*')).toBe(1)
  })
})

describe('a server on PostgreSQL', () => {
  it('with a rate limit › uses the buckets of its database', async () => {
    const config = { store: await newPostgresUrl(), upkeep: 'off', limits: { requestsPerMinute: 2 } }
    const open = () => openConfiguredServer(fresh('.json'), config)
    await using first = await open()
    await using second = await open()
    const statuses = []
    for (const { server } of [first, second, first, second])
      statuses.push((await fetch(`${server.url}/api/usage`)).status)
    expect(statuses).toEqual([200, 200, 429, 429])
  })
})
