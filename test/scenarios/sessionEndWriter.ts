import { appendFileSync } from 'node:fs'
import type { SearchIndex, Store } from '../../src/domain/ports.ts'
import type { Profile } from '../../src/domain/profile.ts'
import { openMemory, profiles } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { interceptStore } from '../memory/storeFixtures.ts'

/** Profile with durable sessions that expire after one second, at most two per scope. */
export const shortLived: Profile = {
  ...profiles.thread,
  tokenizer: 'chars-4',
  upkeep: [],
  lifetime: { idle: 1_000, sessionsPerScope: 2, whenFull: 'evict' },
}
export const start = 1_800_000_000_000

/** Opens a SQLite file, or a Redis store by its URL. */
export const openTestedStore = async (location: string): Promise<Store & SearchIndex> =>
  location.startsWith('redis:') ? redisStore(location) : sqliteStore(location)

/**
 * Begins and ends sessions in every way, logs stored sessions and reported ends, and kills itself at the given step:
 * `node sessionEndWriter.ts DATABASE LOG STEP`, with a file or the URL of a Redis store.
 */
async function runWriter(location: string, log: string, killAtStep: number): Promise<void> {
  let steps = 0
  const before = (): void => {
    if (++steps === killAtStep) process.kill(process.pid, 'SIGKILL')
  }
  let now = start
  const memory = await openMemory({
    profile: shortLived,
    store: interceptStore(await openTestedStore(location), {
      commit: async () => before(),
      erase: async () => before(),
    }),
    clock: () => now,
    onSessionEnd: (key, { messages }, { id }) => {
      before()
      appendFileSync(log, `ended ${key} ${id} ${messages.map(({ content }) => content)}\n`)
      before()
    },
  })
  for (const key of ['acme:a', 'acme:b', 'acme:c', 'zeta:d']) {
    now++
    await memory.append(key, [{ role: 'user', content: `hello from ${key}` }])
    appendFileSync(log, `stored ${key}\n`)
    await memory.lifecycle.whenIdle()
  }
  await memory.end('zeta:d')
  await memory.lifecycle.whenIdle()
  now += 1_000
  await memory.sweep()
  await memory.close()
  appendFileSync(log, `done after ${steps}\n`)
}

const [, , file, log, killAtStep] = process.argv
if (file !== undefined && log !== undefined && process.argv[1]?.endsWith('sessionEndWriter.ts') === true)
  await runWriter(file, log, Number(killAtStep))
