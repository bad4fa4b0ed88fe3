import { openMemory, profiles } from '../../src/index.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { redisStore } from '../../src/stores/redis.ts'
import { mapConcurrently } from '../../test/fault/mapConcurrently.ts'
import type { PostgresServer } from '../../test/support/postgresServer.ts'
import type { RedisServer } from '../../test/support/redisServer.ts'
import { createSentences } from '../corpus.ts'
import type { Servers } from './roundTrips.ts'

const redisMegabytes = [16, 32, 64]
const messagesEach = 20

/** Runs the real stores against small quotas, from which larger ones follow by arithmetic. */
export async function measureQuotas({ postgres, redis }: Servers): Promise<void> {
  await fillRedis(redis)
  await shareConnections(postgres)
}

/** Fills Redis with sessions until it refuses one. */
async function fillRedis(redis: RedisServer): Promise<void> {
  console.log(`\nRedis: sessions of ${messagesEach} messages until the memory limit`)
  const texts = createSentences(1_000)
  for (const megabytes of redisMegabytes) {
    redis.ask('FLUSHALL')
    const limit = Number(/used_memory:(\d+)/.exec(redis.ask('INFO', 'memory'))?.[1]) + megabytes * 1e6
    redis.ask('CONFIG', 'SET', 'maxmemory', String(Math.round(limit)))
    const store = await redisStore(`${redis.url}?prefix=quota${megabytes}`)
    const memory = await openMemory({ store, upkeep: false, profile: profiles.ephemeral })
    let sessions = 0
    const fill = async (): Promise<unknown> => {
      for (;;) {
        const messages = Array.from({ length: messagesEach }, (_, at) => ({
          role: at % 2 === 0 ? ('user' as const) : ('assistant' as const),
          content: texts[(sessions * messagesEach + at) % texts.length] as string,
        }))
        try {
          await memory.append(`tenant${sessions % 100}:s${sessions}`, messages)
        } catch (error) {
          return error
        }
        sessions++
      }
    }
    const error = await fill()
    const bytes = (megabytes * 1e6) / sessions
    console.log(
      `  ${megabytes} MB: ${sessions} sessions, ${Math.round(bytes)} bytes per session, ${Math.round(bytes / messagesEach)} per message; then: ${error instanceof Error ? error.message : error}`,
    )
    console.log(`    a million sessions: ${((bytes * 1e6) / 1e9).toFixed(1)} GB`)
    await memory.close()
    await store.close()
  }
  redis.ask('FLUSHALL')
  redis.ask('CONFIG', 'SET', 'maxmemory', '0')
}

const connectionLimits = [2, 5, 10]
const turns = 2_000

/** Writes and reads with few connections per process. */
async function shareConnections(postgres: PostgresServer): Promise<void> {
  console.log('\nPostgreSQL: turns with few connections (16 at once)')
  const url = await postgres.createDatabase()
  for (const maxConnections of connectionLimits) {
    const store = await postgresStore(url, { maxConnections })
    const memory = await openMemory({ store, upkeep: false })
    const startedAt = performance.now()
    await mapConcurrently(
      Array.from({ length: turns }, (_, turn) => turn),
      async (turn) => {
        const key = `c${maxConnections}:s${turn % 200}`
        await memory.append(key, [{ role: 'user', content: `Where is parcel ${turn}?` }])
        await memory.context(key, { budget: 1_000 })
        await memory.append(key, [{ role: 'assistant', content: 'On its way.' }])
      },
      16,
    )
    const seconds = (performance.now() - startedAt) / 1_000
    console.log(`  ${maxConnections} connections: ${Math.round(turns / seconds)} turns/s`)
    await memory.close()
    await store.close()
  }
}
