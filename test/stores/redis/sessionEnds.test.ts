import { describe, expect } from 'vitest'
import type { Profile } from '../../../src/domain/profile.ts'
import { openMemory, profiles } from '../../../src/index.ts'
import { redisStore } from '../../../src/stores/redis.ts'
import { verifies } from '../../requirements/verifies.ts'
import { expectEndsOnce } from '../../scenarios/sessionEnds.ts'
import { createTempPaths } from '../tempPaths.ts'
import { newPrefix, startRedis } from './redisServer.ts'

const fresh = createTempPaths()
const server = await startRedis()
const hourMs = 3_600_000

/** Sessions that end after an hour without use, and after three in any case. */
const shortLived: Profile = {
  ...profiles.support,
  scopes: ['session'],
  tokenizer: 'chars-4',
  upkeep: [],
  lifetime: { idle: hourMs, age: 3 * hourMs, whenFull: 'evict' },
}

/** Opens a memory as a server whose clock is wrong by some time. */
async function openServerMemory(prefix: string, ahead: number, ends: string[]) {
  const time = { passed: 0 }
  const began = Date.now()
  const memory = await openMemory({
    profile: shortLived,
    store: await redisStore(server.url, { prefix }),
    clock: () => began + time.passed + ahead,
    onSessionEnd: async (key, { messages }) => {
      ends.push(`${key} ${messages.map(({ content }) => content)}`)
    },
  })
  const sweep = async () => {
    const { ended } = await memory.sweep()
    await memory.lifecycle.whenIdle()
    return ended
  }
  return { memory, time, sweep }
}

describe('redisStore › ends of sessions', () => {
  for (const ahead of [24 * hourMs, -24 * hourMs])
    verifies(
      ['T-06', 'T-07'],
      `two servers › with clocks ${ahead / hourMs} h apart › end no session early and each one once`,
      async () => {
        const ends: string[] = []
        const prefix = newPrefix()
        const [right, wrong] = [await openServerMemory(prefix, 0, ends), await openServerMemory(prefix, ahead, ends)]
        const pass = (ms: number): void => {
          for (const { time } of [right, wrong]) time.passed += ms
        }
        await right.memory.append('acme:a', [{ role: 'user', content: 'by the right one' }])
        await wrong.memory.append('acme:b', [{ role: 'user', content: 'by the wrong one' }])
        await wrong.memory.append('acme:a', [{ role: 'user', content: 'by both' }])
        pass(hourMs / 2)
        expect([await right.sweep(), await wrong.sweep(), ends]).toEqual([[], [], []])
        expect((await wrong.memory.context('acme:a')).text).toContain('by the right one')
        expect((await right.memory.transcript('acme:b')).map(({ content }) => content)).toEqual(['by the wrong one'])
        pass(2 * hourMs)
        const swept = await Promise.all([right.sweep(), wrong.sweep(), right.sweep(), wrong.sweep()])
        expect(new Set(swept.flat())).toEqual(new Set(['acme:a', 'acme:b']))
        pass(hourMs)
        await Promise.all([right.sweep(), wrong.sweep()])
        expect(ends.toSorted()).toEqual(['acme:a by the right one,by both', 'acme:b by the wrong one'])
        expect(await right.memory.transcript('acme:a')).toEqual([])
        for (const { memory } of [right, wrong]) await memory.close()
      },
    )

  verifies('T-07', 'a process › killed at any step of ending sessions › loses no end and ends none twice', async () => {
    const location = () => `${server.url}?prefix=${newPrefix()}`
    const steps = await expectEndsOnce(location(), fresh('.log'), Number.MAX_SAFE_INTEGER)
    expect(steps).toBeGreaterThan(30)
    for (let killAtStep = 4; killAtStep <= (steps ?? 0); killAtStep += 9)
      await expectEndsOnce(location(), fresh('.log'), killAtStep)
  })

  verifies('T-06', 'sessions › that no server ends › are dropped by Redis a day after their end', async () => {
    const prefix = newPrefix()
    const { memory } = await openServerMemory(prefix, 0, [])
    await memory.append('acme:a', [{ role: 'user', content: 'hello' }])
    const names = server.ask('KEYS', `{${prefix}:acme}*`).split('\n')
    expect(names.length).toBeGreaterThan(4)
    for (const name of names) {
      const left = Number(server.ask('PTTL', name))
      expect([name, left > 24 * hourMs && left <= 25 * hourMs]).toEqual([name, true])
    }
    // As if the time had passed: the list of sessions forgets them too.
    server.ask('DEL', `{${prefix}:acme}:session:a`, `{${prefix}:acme}:messages:a`)
    expect(await memory.transcript('acme:a')).toEqual([])
    expect((await memory.sweep()).ended).toEqual([])
    await memory.close()
  })
})
