import { describe, expect } from 'vitest'
import { openMemory } from '../../../src/index.ts'
import type { Memory } from '../../../src/memory.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createSharedStores } from './sharedServers.ts'

const [sessions, processes] = [12, 3]

describe.each(await createSharedStores())('sessions that expire, store %s', (_, store) => {
  verifies(
    ['T-17', 'X-07'],
    'swept by several servers at once › end once, and each end is delivered once',
    async () => {
      const url = await store()
      let now = 1_000_000
      const delivered: string[] = []
      const onSessionEnd = async (key: string): Promise<void> => {
        delivered.push(key)
      }
      const open = (): Promise<Memory> =>
        openMemory({ profile: 'thread', store: url, upkeep: false, clock: () => now, onSessionEnd })
      const memories = await Promise.all(Array.from({ length: processes }, open))
      const keys = Array.from({ length: sessions }, (_, index) => `demo:s${String(index).padStart(2, '0')}`)
      for (const [index, key] of keys.entries()) {
        const memory = memories[index % processes] as Memory
        await memory.append(key, [{ role: 'user', content: `Hello from ${key}` }])
        await memory.setMetadata(key, { idle: 1_000 })
      }
      now += 2_000
      const ended: string[] = []
      // A sweep that is disturbed by another one is repeated later, as the server does.
      for (let rounds = 0; rounds < 50 && delivered.length < sessions; rounds++) {
        const sweeps = await Promise.allSettled(memories.map((memory) => memory.sweep()))
        ended.push(...sweeps.flatMap((sweep) => (sweep.status === 'fulfilled' ? sweep.value.ended : [])))
        for (const memory of memories) await memory.lifecycle.whenIdle()
      }
      expect(delivered.toSorted()).toEqual(keys)
      expect(new Set(ended).size).toBe(ended.length)
      for (const key of keys) expect(await memories[0]?.transcript(key)).toEqual([])
      for (const memory of memories) await memory.close()
    },
  )
})
