import { describe, expect, it } from 'vitest'
import { redisStore } from '../../../src/stores/redis.ts'
import { verifies } from '../../requirements/verifies.ts'
import { newPrefix, startRedis } from '../../stores/redis/redisServer.ts'
import { newRedisUrl, openSharedServers } from './sharedServers.ts'

const rateLimits = { requestsPerMinute: 4 }

describe('rate limits of two servers', () => {
  verifies('T-17', 'with a shared store › count the requests of both', async () => {
    const url = newRedisUrl()
    await using limits = { store: await redisStore(url), [Symbol.asyncDispose]: () => limits.store.close() }
    await using shared = await openSharedServers(url, 2, {
      rateLimits,
      tokenBuckets: limits.store.capabilities.tokenBuckets,
    })
    const statuses: number[] = []
    for (let index = 0; index < 6; index++) statuses.push((await shared.ask(index % 2, `Question ${index}`))[0])
    expect(statuses).toEqual([200, 200, 200, 200, 429, 429])
    expect(shared.faults()).toEqual([])
  })

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

describe('token buckets in Redis', () => {
  it('refill evenly, hold as many tokens as allowed in a minute, and tell when the next one is there', async () => {
    const store = await redisStore(newRedisUrl())
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
