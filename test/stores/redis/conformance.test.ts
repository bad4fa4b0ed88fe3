import { describe, it } from 'vitest'
import { storeConformance } from '../../../src/stores/conformance.ts'
import { redisStore } from '../../../src/stores/redis.ts'
import { newPrefix, startRedis } from './redisServer.ts'

const server = await startRedis()

describe('redisStore › passes the conformance suite', () => {
  for (const { name, run } of storeConformance(() => redisStore(server.url, { prefix: newPrefix() }))) it(name, run)
})
