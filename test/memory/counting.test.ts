import { describe, expect, it } from 'vitest'
import { branchKey, parseKey } from '../../src/domain/key.ts'
import { never } from '../../src/domain/session.ts'
import { type Memory, openMemory, profiles, ramStore } from '../../src/index.ts'
import { said } from '../../src/stores/conformance/fixtures.ts'
import { borrowed } from '../../src/stores/sharedStore.ts'

const start = 1_800_000_000_000
const say = (memory: Memory, key: string) => memory.append(key, [{ role: 'user', content: 'Hello' }])

/** A store in RAM that tells how often its sessions are listed, and two memories that borrow it, each on its own. */
async function opened(whenFull: 'evict' | 'refuse') {
  const clock = { now: start }
  const lists: string[] = []
  const ram = ramStore()
  const store = {
    ...ram,
    list: (filter: Parameters<typeof ram.list>[0]) => ram.list(filter).finally(() => lists.push(filter.scope ?? '*')),
  }
  const profile = {
    ...profiles.support,
    upkeep: [],
    lifetime: { ...profiles.support.lifetime, sessionsPerScope: 3, whenFull },
  }
  const open = () => openMemory({ profile, store: borrowed(store), clock: () => clock.now++ })
  const sessions = async () =>
    (await ram.list({ scope: 'acme', limit: 99 }))
      .map(({ key }) => key.id)
      .filter((id) => id !== '' && !id.includes(':'))
  return { ram, lists, sessions, clock, first: await open(), second: await open() }
}

describe('the number of sessions that a scope has in RAM', () => {
  it('is looked up only when there may be too many', async () => {
    const { ram, first, second, lists, sessions } = await opened('evict')
    await say(first, 'acme:a')
    await say(second, 'acme:b')
    // What is kept beside a session is none.
    await ram.commit({
      key: branchKey(parseKey('acme:a'), 1),
      at: start,
      epoch: 0,
      append: [said('x')],
      put: [],
      drop: [],
      expiresAt: never,
    })
    await say(first, 'acme:c')
    await say(first, 'globex:a')
    expect(lists).toEqual([])
    await say(second, 'acme:d')
    expect(lists).toContain('acme')
    expect(await sessions()).toEqual(['b', 'c', 'd'])
  })

  it('is kept to its limit whoever has begun them: another memory, a transfer, or somebody who writes to the store itself', async () => {
    const { ram, first, second, sessions } = await opened('evict')
    await say(first, 'acme:a')
    await second.transfer('acme:a', 'acme:moved')
    await ram.commit({
      key: parseKey('acme:direct'),
      at: start + 50,
      epoch: 0,
      append: [said('x')],
      put: [],
      drop: [],
      expiresAt: never,
    })
    await second.describe('acme:told', { template: 'brief' })
    for (const key of ['acme:b', 'acme:c', 'acme:d']) {
      await say(first, key)
      expect((await sessions()).length).toBeLessThanOrEqual(3)
    }
    expect((await sessions()).slice(-3)).toContain('d')
  })

  it('counts what has ended, been forgotten or is over no more', async () => {
    const { first, second, sessions, clock } = await opened('refuse')
    for (const key of ['acme:a', 'acme:b', 'acme:c']) await say(first, key)
    await expect(say(second, 'acme:d')).rejects.toMatchObject({ code: 'full' })
    await first.end('acme:a')
    await say(second, 'acme:d')
    await expect(say(second, 'acme:e')).rejects.toMatchObject({ code: 'full' })
    await second.forget({ key: 'acme:b' })
    await say(first, 'acme:e')
    clock.now += 8 * 86_400_000
    for (const key of ['acme:f', 'acme:g', 'acme:h']) await say(first, key)
    await expect(say(second, 'acme:i')).rejects.toMatchObject({ code: 'full' })
    await first.sweep()
    expect(await sessions()).toEqual(['f', 'g', 'h'])
  })

  it('holds when many begin at once', async () => {
    const { first, sessions } = await opened('evict')
    await Promise.all(Array.from({ length: 20 }, (_, place) => say(first, `acme:s${place}`)))
    expect((await sessions()).length).toBe(3)
  })
})
