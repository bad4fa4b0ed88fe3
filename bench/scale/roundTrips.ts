import { openMemory } from '../../src/index.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { redisStore } from '../../src/stores/redis.ts'
import { startProxy } from '../../test/support/postgresProxy.ts'
import type { PostgresServer } from '../../test/support/postgresServer.ts'
import type { RedisServer } from '../../test/support/redisServer.ts'

export type Servers = { readonly postgres: PostgresServer; readonly redis: RedisServer }

const key = 'acme:ann'
const history = Array.from({ length: 200 }, (_, at) => ({
  role: at % 2 === 0 ? ('user' as const) : ('assistant' as const),
  content: `Message ${at} about the walrus on ice number ${at % 9}, and more words to fill the budget of the context.`,
}))
const question = { role: 'user' as const, content: 'What did we say about the walrus on ice number 3?' }

/** Counts the round trips of the steps of a turn in a process that has not seen the session, and then again. */
export async function countRoundTrips({ postgres, redis }: Servers): Promise<void> {
  const proxy = await startProxy(postgres.port)
  const url = Object.assign(new URL(await postgres.createDatabase()), { port: String(proxy.port) }).href
  const stores = {
    PostgreSQL: {
      open: async () => openMemory({ store: await postgresStore(url), upkeep: false }),
      count: () => proxy.roundTrips,
    },
    Redis: {
      open: async () =>
        openMemory({ sessions: await redisStore(`${redis.url}?prefix=trips`), profile: 'support', upkeep: false }),
      count: () => countScripts(redis),
    },
  }
  console.log('\nRound trips of a turn (append the question, build the context, append the reply)')
  for (const [name, { open, count }] of Object.entries(stores)) {
    const writer = await open()
    await writer.append(key, history)
    const memory = await open()
    const measure = async (work: () => Promise<unknown>): Promise<number> => {
      const before = count()
      await work()
      return count() - before
    }
    const turn = async (): Promise<string> => {
      const asked = await measure(() => memory.append(key, [question]))
      const read = await measure(() => memory.context(key, { budget: 2_000 }))
      const replied = await measure(() => memory.append(key, [{ role: 'assistant', content: 'It was cold.' }]))
      return `${asked} + ${read} + ${replied}`
    }
    console.log(`  ${name.padEnd(10)} new process ${await turn()}, then ${await turn()}`)
    await memory.close()
    await writer.close()
  }
  await proxy.close()
}

/** Scripts that the server has executed: every operation of a turn is one. */
function countScripts(redis: RedisServer): number {
  const calls = redis.ask('INFO', 'commandstats').matchAll(/cmdstat_eval\w*:calls=(\d+)/g)
  return [...calls].reduce((sum, [, number]) => sum + Number(number), 0)
}
