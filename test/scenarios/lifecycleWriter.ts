import { appendFileSync } from 'node:fs'
import type { Index, Store } from '../../src/domain/ports.ts'
import type { Profile } from '../../src/domain/profile.ts'
import { openMemory, profiles } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'

/** Sessions on a disk that live for a second, two of them in each scope. */
export const brief: Profile = {
  ...profiles.thread,
  tokenizer: 'chars-4',
  upkeep: [],
  lifetime: { idle: 1_000, sessionsPerScope: 2, whenFull: 'evict' },
}
export const start = 1_800_000_000_000

/** A store in front of whose writes something is done, one after the other. */
function watched(store: Store & Index, before: () => void): Store & Index {
  return new Proxy(store, {
    get: (target, name) => {
      const method = Reflect.get(target, name) as unknown
      if (typeof method !== 'function') return method
      return (...given: unknown[]) => {
        if (name === 'commit' || name === 'erase') before()
        return method.apply(target, given)
      }
    },
  })
}

/**
 * Lets sessions begin and end in each way there is, notes what was stored and what was told, and is killed at one of
 * the steps: `node lifecycleWriter.ts DATABASE LOG STEP`.
 */
async function run(file: string, log: string, last: number): Promise<void> {
  let steps = 0
  const before = (): void => {
    if (++steps === last) process.kill(process.pid, 'SIGKILL')
  }
  let now = start
  const memory = await openMemory({
    profile: brief,
    store: watched(sqliteStore(file), before),
    clock: () => now,
    onSessionEnd: (key, { messages }, { id }) => {
      before()
      appendFileSync(log, `told ${key} ${id} ${messages.map(({ content }) => content)}\n`)
      before()
    },
  })
  for (const key of ['acme:a', 'acme:b', 'acme:c', 'zeta:d']) {
    now++
    await memory.append(key, [{ role: 'user', content: `hello from ${key}` }])
    appendFileSync(log, `said ${key}\n`)
    await memory.lifecycle.settled()
  }
  await memory.end('zeta:d')
  await memory.lifecycle.settled()
  now += 1_000
  await memory.sweep()
  await memory.close()
  appendFileSync(log, `done after ${steps}\n`)
}

const [, , file, log, last] = process.argv
if (file !== undefined && log !== undefined && process.argv[1]?.endsWith('lifecycleWriter.ts') === true)
  await run(file, log, Number(last))
