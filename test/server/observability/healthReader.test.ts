import { describe, expect, it } from 'vitest'
import { openMemory } from '../../../src/index.ts'
import { MemoryRegistry } from '../../../src/server/memoryRegistry.ts'
import { HealthReader } from '../../../src/server/observability/healthReader.ts'
import type { Backend } from '../../../src/server/upstreams/backend.ts'
import { redisStore } from '../../../src/stores/redis.ts'
import { verifies } from '../../requirements/verifies.ts'
import { startRedis } from '../../stores/redis/redisServer.ts'

const backend = { getHealth: () => [] } as unknown as Backend
const maxProbeMs = 200

async function openReader() {
  const server = await startRedis()
  const memory = await openMemory({ store: await redisStore(server.url), profile: 'ephemeral' })
  const reader = new HealthReader(MemoryRegistry.resolve(memory), backend, maxProbeMs)
  return { server, reader, [Symbol.asyncDispose]: () => memory.close() }
}

describe('HealthReader', () => {
  verifies(
    'S-07',
    'while this process stands still longer than the deadline › reports what the store answers',
    async () => {
      await using opened = await openReader()
      const state = opened.reader.readState(false)
      // The command is written before the process stands still.
      await new Promise((resume) => setImmediate(resume))
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * maxProbeMs)
      expect((await state).store).toBe('ok')
    },
  )

  it('of a store that does not answer › reports it within the deadline', async () => {
    await using opened = await openReader()
    opened.server.process.kill('SIGSTOP')
    expect((await opened.reader.readState(false)).store).toEqual({ fault: expect.stringMatching(/^busy: /) })
    opened.server.process.kill('SIGCONT')
  })
})
