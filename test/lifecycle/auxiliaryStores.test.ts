import { describe, expect, it } from 'vitest'
import {
  branchKey,
  filesKey,
  formatKey,
  type Key,
  outboxKey,
  parseKey,
  personKey,
  receiptsKey,
} from '../../src/domain/key.ts'
import type { Store } from '../../src/domain/ports.ts'
import { never } from '../../src/domain/session.ts'
import { type Memory, type MemoryOptions, openMemory, profiles, ramStore } from '../../src/index.ts'
import { said as stored } from '../../src/stores/conformance/stage.ts'
import { verifies } from '../requirements/verifies.ts'

const start = 1_800_000_000_000
const hour = 3_600_000
const [tenant, ann] = [parseKey('acme'), parseKey('acme:ann')]

const say = (memory: Memory, key: string) => memory.append(key, [{ role: 'user', content: 'Hello' }])
const put = (store: Store, key: Key, expiresAt = never) =>
  store.commit({ key, at: start, epoch: 0, append: [stored('my zebra is blue')], put: [], drop: [], expiresAt })
const keysIn = async (store: Store) => (await store.list({ limit: 9_999 })).map(({ key }) => formatKey(key))

/** A memory in whose store everything is that the engine keeps for itself. */
async function opened(more: MemoryOptions = {}) {
  const clock = { now: start }
  const store = ramStore()
  const memory = await openMemory({ profile: 'thread', store, clock: () => clock.now, ...more })
  await say(memory, 'acme')
  await say(memory, 'acme:ann')
  const ofTenant = [
    filesKey('acme'),
    outboxKey('acme'),
    personKey('acme', 'ann'),
    receiptsKey(tenant),
    branchKey(tenant, 3),
    branchKey(tenant, 12),
  ]
  for (const key of [...ofTenant, receiptsKey(ann), branchKey(ann, 2)]) await put(store, key)
  return { memory, clock, store }
}

describe('what is kept beside the conversation of a tenant', () => {
  verifies(
    'X-05',
    'is forgotten with it: branches and receipts, not files, nor what is known of people or of sessions',
    async () => {
      const { memory, store } = await opened()
      await memory.forget({ key: 'acme' })
      expect(await keysIn(store)).toEqual([
        'acme::files',
        'acme::outbox',
        'acme::person:ann',
        'acme:ann',
        'acme:ann:2',
        'acme:ann:receipts',
      ])
      await memory.close()
    },
  )

  verifies('X-05', 'is forgotten with the whole tenant, and then nothing is left', async () => {
    const { memory, store } = await opened()
    await memory.forget({ scope: 'acme' })
    expect(await keysIn(store)).toEqual([])
    await memory.close()
  })

  it('is found however much else there is', async () => {
    const { memory, store } = await opened()
    for (let number = 100; number < 330; number++) await put(store, branchKey(tenant, number))
    for (let number = 100; number < 330; number++) await put(store, personKey('acme', `p${number}`))
    await memory.forget({ key: 'acme' })
    expect((await keysIn(store)).filter((key) => /::\d|::receipts/.test(key))).toEqual([])
    await memory.close()
  })
})

describe('what is kept beside a session', () => {
  const short = { ...profiles.thread, lifetime: { ...profiles.thread.lifetime, idle: 24 * hour } }

  it('lives as long as the session does, whatever it was written with, and not a moment longer', async () => {
    const { memory, clock, store } = await opened({ profile: short })
    await put(store, branchKey(ann, 7), start + hour)
    clock.now += 20 * hour
    await say(memory, 'acme:ann')
    clock.now += 10 * hour
    await memory.sweep()
    expect((await keysIn(store)).filter((key) => key.startsWith('acme:ann'))).toEqual([
      'acme:ann',
      'acme:ann:2',
      'acme:ann:7',
      'acme:ann:receipts',
    ])
    clock.now += 14 * hour
    await memory.sweep()
    expect((await keysIn(store)).filter((key) => key.startsWith('acme:ann'))).toEqual([])
    await memory.close()
  })

  it('goes along with it to another key, and says which session it was cut off from', async () => {
    const { memory, store } = await opened()
    const about = {
      kind: 'about',
      id: 'about',
      at: start,
      branchOf: { session: 'ann', after: 1 },
      sources: [],
    } as const
    const packed = { kind: 'about', id: 'r1-8', at: start, metadata: 'eight receipts', sources: [] } as const
    await store.commit({
      key: branchKey(ann, 2),
      at: start,
      epoch: 0,
      append: [],
      put: [about],
      drop: [],
      expiresAt: never,
    })
    await store.commit({
      key: receiptsKey(ann),
      at: start,
      epoch: 0,
      append: [],
      put: [packed],
      drop: [],
      expiresAt: never,
    })
    await memory.transfer('acme:ann', 'acme:ben')
    const ben = parseKey('acme:ben')
    expect((await store.head(branchKey(ben, 2), 0)).derived).toEqual([
      { ...about, branchOf: { session: 'ben', after: 1 } },
    ])
    expect((await store.head(receiptsKey(ben), 0)).derived).toEqual([packed])
    await memory.close()
  })

  it('is gone after the next sweep if whoever ended the session did not come to the end, and nothing else is', async () => {
    const { memory, store } = await opened()
    await store.erase(ann)
    const durable = await openMemory({ profile: 'thread', store: { ...store, durability: 'durable' } })
    await durable.sweep()
    expect(await keysIn(store)).toEqual([
      'acme',
      'acme::12',
      'acme::3',
      'acme::files',
      'acme::outbox',
      'acme::person:ann',
      'acme::receipts',
    ])
    await memory.close()
  })

  it('is looked for a piece at a time, and found behind a thousand others', async () => {
    const { memory, store } = await opened()
    for (let number = 0; number < 1_100; number++) await put(store, parseKey(`acme:${number}`))
    await store.erase(ann)
    const durable = await openMemory({ profile: 'thread', store: { ...store, durability: 'durable' } })
    const left = async () => (await keysIn(store)).filter((key) => key.startsWith('acme:ann'))
    await durable.sweep()
    expect(await left()).toEqual(['acme:ann:2', 'acme:ann:receipts'])
    await durable.sweep()
    expect(await left()).toEqual([])
    await memory.close()
  })
})
