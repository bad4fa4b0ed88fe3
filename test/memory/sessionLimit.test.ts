import { describe, expect, it } from 'vitest'
import { branchKey, parseKey } from '../../src/domain/key.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { type Memory, openMemory, profiles, ramStore } from '../../src/index.ts'
import { newMessage } from '../../src/stores/conformance/fixtures.ts'
import { sharedStore } from '../../src/stores/sharedStore.ts'

const start = 1_800_000_000_000
const sayHello = (memory: Memory, key: string) => memory.append(key, [{ role: 'user', content: 'Hello' }])

/** A RAM store that records its `list` calls, and two memories that share it. */
async function openSharedStore(whenFull: 'evict' | 'refuse') {
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
  const open = () => openMemory({ profile, store: sharedStore(store), clock: () => clock.now++ })
  const sessions = async () =>
    (await ram.list({ scope: 'acme', limit: 99 }))
      .map(({ key }) => key.id)
      .filter((id) => id !== '' && !id.includes(':'))
  return { ram, lists, sessions, clock, first: await open(), second: await open() }
}

describe('the session limit of a scope in RAM', () => {
  it('lists the sessions only when the limit may be exceeded', async () => {
    const { ram, first, second, lists, sessions } = await openSharedStore('evict')
    await sayHello(first, 'acme:a')
    await sayHello(second, 'acme:b')
    // Auxiliary entries of a session do not count.
    await ram.commit({
      key: branchKey(parseKey('acme:a'), 1),
      at: start,
      epoch: 0,
      append: [newMessage('x')],
      put: [],
      drop: [],
      expiresAt: noExpiry,
    })
    await sayHello(first, 'acme:c')
    await sayHello(first, 'globex:a')
    expect(lists).toEqual([])
    await sayHello(second, 'acme:d')
    expect(lists).toContain('acme')
    expect(await sessions()).toEqual(['b', 'c', 'd'])
  })

  it('holds for sessions begun by another memory, by a transfer or by a direct commit', async () => {
    const { ram, first, second, sessions } = await openSharedStore('evict')
    await sayHello(first, 'acme:a')
    await second.transfer('acme:a', 'acme:moved')
    await ram.commit({
      key: parseKey('acme:direct'),
      at: start + 50,
      epoch: 0,
      append: [newMessage('x')],
      put: [],
      drop: [],
      expiresAt: noExpiry,
    })
    await second.setMetadata('acme:told', { template: 'brief' })
    for (const key of ['acme:b', 'acme:c', 'acme:d']) {
      await sayHello(first, key)
      expect((await sessions()).length).toBeLessThanOrEqual(3)
    }
    expect((await sessions()).slice(-3)).toContain('d')
  })

  it('does not count sessions that ended, were forgotten or expired', async () => {
    const { first, second, sessions, clock } = await openSharedStore('refuse')
    for (const key of ['acme:a', 'acme:b', 'acme:c']) await sayHello(first, key)
    await expect(sayHello(second, 'acme:d')).rejects.toMatchObject({ code: 'full' })
    await first.end('acme:a')
    await sayHello(second, 'acme:d')
    await expect(sayHello(second, 'acme:e')).rejects.toMatchObject({ code: 'full' })
    await second.forget({ key: 'acme:b' })
    await sayHello(first, 'acme:e')
    clock.now += 8 * 86_400_000
    for (const key of ['acme:f', 'acme:g', 'acme:h']) await sayHello(first, key)
    await expect(sayHello(second, 'acme:i')).rejects.toMatchObject({ code: 'full' })
    await first.sweep()
    expect(await sessions()).toEqual(['f', 'g', 'h'])
  })

  it('holds when many sessions begin concurrently', async () => {
    const { first, sessions } = await openSharedStore('evict')
    await Promise.all(Array.from({ length: 20 }, (_, place) => sayHello(first, `acme:s${place}`)))
    expect((await sessions()).length).toBe(3)
  })
})
