import { describe, expect, it } from 'vitest'
import { branchKey, filesKey, formatKey, type Key, outboxKey, parseKey, personKey } from '../../src/domain/key.ts'
import type { Store } from '../../src/domain/ports.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { type MemoryOptions, openMemory, profiles, ramStore } from '../../src/index.ts'
import { newMessage as stored } from '../../src/stores/conformance/fixtures.ts'
import { verifies } from '../requirements/verifies.ts'
import { appendUser } from './fixtures.ts'

const start = 1_800_000_000_000
const hour = 3_600_000
const record = { id: 'r1', at: start, body: '{}' }
const [tenant, ann] = [parseKey('acme'), parseKey('acme:ann')]

const put = (store: Store, key: Key, expiresAt = noExpiry) =>
  store.commit({ key, at: start, epoch: 0, append: [stored('my zebra is blue')], put: [], drop: [], expiresAt })
const keysIn = async (store: Store) => (await store.list({ limit: 9_999 })).map(({ key }) => formatKey(key))

/** Opens a memory whose store has all kinds of auxiliary keys. */
async function openTestMemory(options: MemoryOptions = {}) {
  const clock = { now: start }
  const store = ramStore()
  const memory = await openMemory({ profile: 'thread', store, clock: () => clock.now, ...options })
  await appendUser(memory, 'acme')
  await appendUser(memory, 'acme:ann')
  const ofTenant = [
    filesKey('acme'),
    outboxKey('acme'),
    personKey('acme', 'ann'),
    branchKey(tenant, 3),
    branchKey(tenant, 12),
  ]
  for (const key of [...ofTenant, branchKey(ann, 2)]) await put(store, key)
  for (const key of [tenant, ann]) await store.appendRecord(key, record, 10)
  return { memory, clock, store }
}

describe('auxiliary data of a tenant conversation', () => {
  verifies('X-05', 'is forgotten with it: branches and receipts, but not files, people or sessions', async () => {
    const { memory, store } = await openTestMemory()
    await memory.forget({ key: 'acme' })
    expect(await keysIn(store)).toEqual(['acme::files', 'acme::outbox', 'acme::person:ann', 'acme:ann', 'acme:ann:2'])
    await memory.close()
  })

  verifies('X-05', 'is forgotten with the whole tenant, and nothing is left', async () => {
    const { memory, store } = await openTestMemory()
    await memory.forget({ scope: 'acme' })
    expect(await keysIn(store)).toEqual([])
    await memory.close()
  })

  it('is found among many other keys', async () => {
    const { memory, store } = await openTestMemory()
    for (let number = 100; number < 330; number++) await put(store, branchKey(tenant, number))
    for (let number = 100; number < 330; number++) await put(store, personKey('acme', `p${number}`))
    await memory.forget({ key: 'acme' })
    expect((await keysIn(store)).filter((key) => /::\d/.test(key))).toEqual([])
    await memory.close()
  })
})

describe('auxiliary data of a session', () => {
  const short = { ...profiles.thread, lifetime: { ...profiles.thread.lifetime, idle: 24 * hour } }

  it('lives exactly as long as the session, regardless of its own expiry', async () => {
    const { memory, clock, store } = await openTestMemory({ profile: short })
    await put(store, branchKey(ann, 7), start + hour)
    clock.now += 20 * hour
    await appendUser(memory, 'acme:ann')
    clock.now += 10 * hour
    await memory.sweep()
    expect((await keysIn(store)).filter((key) => key.startsWith('acme:ann'))).toEqual([
      'acme:ann',
      'acme:ann:2',
      'acme:ann:7',
    ])
    clock.now += 14 * hour
    await memory.sweep()
    expect((await keysIn(store)).filter((key) => key.startsWith('acme:ann'))).toEqual([])
    await memory.close()
  })

  it('is moved with a transfer, and refers to the new session', async () => {
    const { memory, store } = await openTestMemory()
    const about = {
      kind: 'about',
      id: 'about',
      at: start,
      branchOf: { session: 'ann', after: 1 },
      sources: [],
    } as const
    await store.commit({
      key: branchKey(ann, 2),
      at: start,
      epoch: 0,
      append: [],
      put: [about],
      drop: [],
      expiresAt: noExpiry,
    })
    await memory.transfer('acme:ann', 'acme:ben')
    const ben = parseKey('acme:ben')
    expect((await store.readHead(branchKey(ben, 2), 0)).derived).toEqual([
      { ...about, branchOf: { session: 'ben', after: 1 } },
    ])
    expect(await store.records(ben, { limit: 9 })).toEqual([{ ...record, number: 1 }])
    expect(await store.records(ann, { limit: 9 })).toEqual([])
    await memory.close()
  })

  it('of an incompletely erased session is erased by the next sweep', async () => {
    const { memory, store } = await openTestMemory()
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
    ])
    await memory.close()
  })

  it('is scanned page by page, and found after a thousand other keys', async () => {
    const { memory, store } = await openTestMemory()
    for (let number = 0; number < 1_100; number++) await put(store, parseKey(`acme:${number}`))
    await store.erase(ann)
    const durable = await openMemory({ profile: 'thread', store: { ...store, durability: 'durable' } })
    const left = async () => (await keysIn(store)).filter((key) => key.startsWith('acme:ann'))
    await durable.sweep()
    expect(await left()).toEqual(['acme:ann:2'])
    await durable.sweep()
    expect(await left()).toEqual([])
    await memory.close()
  })
})
