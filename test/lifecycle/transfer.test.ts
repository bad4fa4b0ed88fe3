import { describe, expect, it } from 'vitest'
import type { Fact, Summary } from '../../src/domain/entry.ts'
import { branchKey, parseKey } from '../../src/domain/key.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { type Memory, type MemoryOptions, openMemory, profiles, ramStore } from '../../src/index.ts'
import { newMessage as stored } from '../../src/stores/conformance/fixtures.ts'
import { verifies } from '../requirements/verifies.ts'
import { appendUser } from './fixtures.ts'

const start = 1_800_000_000_000
const day = 86_400_000
const [phone, chat] = [parseKey('acme:phone'), parseKey('acme:chat')]

const ids = async (memory: Memory, key: string) =>
  (await memory.transcript(key)).map(({ id, content }) => `${id} ${content}`)

const fact: Fact = {
  kind: 'fact',
  id: 'f1',
  at: start,
  field: 'important_facts',
  key: '',
  value: 'Order 4471',
  importance: 5,
  sources: [{ message: 'm1' }],
}
const summary: Summary = {
  ...{ kind: 'summary', id: 'hour500000', at: start, tier: 'hour', text: 'About order 4471.' },
  ...{ covers: [1, 2], endOffset: 10, version: 1, by: 'builtin', sources: [], lossyRanges: [] },
}

/** Wraps a store so that writes fail after a number of them. */
function failingStore(inner: ReturnType<typeof ramStore>) {
  const left = { writes: Number.POSITIVE_INFINITY }
  const write = <T>(work: () => Promise<T>): Promise<T> =>
    left.writes-- > 0 ? work() : Promise.reject(new Error('gone'))
  const store: typeof inner = {
    ...inner,
    commit: (change) => write(() => inner.commit(change)),
    erase: (key, only) => write(() => inner.erase(key, only)),
    close: async () => undefined,
  }
  return { store, left }
}

const record = { id: 'r1', at: start, body: '{}' }

/** Opens a memory with a session that has messages with gaps, derived entries, receipts and a branch. */
async function openTestMemory(options: MemoryOptions = {}) {
  const clock = { now: start }
  const inner = ramStore()
  const { store, left } = failingStore(inner)
  const open = () =>
    openMemory({ profile: { ...profiles.support, upkeep: [] }, store, clock: () => clock.now, ...options })
  const memory = await open()
  for (const word of ['one', 'two', 'three', 'four', 'five']) await appendUser(memory, 'acme:phone', word)
  await memory.setMetadata(phone, { metadata: { channel: 'phone' }, idle: 2 * day })
  await memory.forget({ key: 'acme:phone', messageId: 'm3' })
  await memory.forget({ key: 'acme:phone', messageId: 'm5' })
  const { revision, epoch, expiresAt } = await inner.readHead(phone, 0)
  await inner.commit({
    key: phone,
    at: start,
    epoch,
    base: revision,
    append: [],
    put: [fact, summary],
    drop: [],
    expiresAt,
  })
  await inner.appendRecord(phone, record, 10)
  await inner.commit({
    key: branchKey(phone, 1),
    at: start,
    epoch: 0,
    append: [stored('of phone:1')],
    put: [],
    drop: [],
    expiresAt: noExpiry,
  })
  return { memory, open, clock, inner, left }
}

/** Asserts the state after a finished transfer. */
async function expectMoved(memory: Memory, inner: ReturnType<typeof ramStore>): Promise<void> {
  const head = await inner.readHead(chat, 9)
  expect(head.recent.map(({ id, sequence, offset, content }) => [id, sequence, offset, content])).toEqual([
    ['m1', 1, 0, 'one'],
    ['m2', 2, expect.any(Number), 'two'],
    ['m4', 4, expect.any(Number), 'four'],
  ])
  expect([head.lastSequence, head.gaps, head.startedAt]).toEqual([
    5,
    [
      [3, 3],
      [5, 5],
    ],
    start,
  ])
  expect(head.derived.filter(({ kind }) => kind !== 'about')).toEqual([fact, summary])
  expect(await memory.metadata('acme:chat')).toEqual({
    ...{
      kind: 'about',
      id: 'about',
      at: expect.any(Number),
      idle: 2 * day,
      metadata: { channel: 'phone' },
      sources: [],
    },
  })
  expect((await inner.list({ scope: 'acme', limit: 99 })).map(({ key, messages }) => `${key.id} ${messages}`)).toEqual([
    'chat 3',
    'chat:1 1',
    'phone 0',
  ])
  expect(await inner.records(chat, { limit: 9 })).toEqual([{ ...record, number: 1 }])
  expect(await inner.records(phone, { limit: 9 })).toEqual([])
}

describe('transfer', () => {
  verifies('T-17', 'moves messages with their numbers, derived entries and auxiliary data', async () => {
    const { memory, inner } = await openTestMemory()
    await memory.transfer('acme:phone', 'acme:chat')
    await expectMoved(memory, inner)
    expect((await appendUser(memory, 'acme:chat', 'six')).map(({ id }) => id)).toEqual(['m6'])
    expect(new Set((await memory.search('acme', 'order 4471')).map(({ key }) => key))).toEqual(new Set(['acme:chat']))
    await memory.close()
  })

  it('rejects writes to the old key with the new one, until the old key expires', async () => {
    const ends: string[] = []
    const { memory, clock } = await openTestMemory({ onSessionEnd: (id) => void ends.push(id) })
    await memory.transfer('acme:phone', 'acme:chat')
    const moved = { code: 'moved', to: 'acme:chat', message: 'Session acme:phone was moved to acme:chat. Write there.' }
    await expect(appendUser(memory, 'acme:phone')).rejects.toMatchObject(moved)
    await expect(memory.setMetadata('acme:phone', { idle: day })).rejects.toMatchObject(moved)
    await expect(memory.transfer('acme:phone', 'acme:else')).rejects.toMatchObject(moved)
    expect(await ids(memory, 'acme:phone')).toEqual([])
    await memory.transfer('acme:phone', 'acme:chat')
    clock.now += 2 * day
    expect((await memory.sweep()).ended).toEqual(['acme:chat', 'acme:phone'])
    await appendUser(memory, 'acme:phone', 'another call')
    expect(await ids(memory, 'acme:phone')).toEqual(['m1 another call'])
    await memory.close()
    // No event for the old key, because the session continues.
    expect(ends).toEqual(['acme:chat'])
  })

  it('to a used key or to another scope throws', async () => {
    const { memory, clock } = await openTestMemory()
    await appendUser(memory, 'acme:bob')
    await expect(memory.transfer('acme:phone', 'acme:bob')).rejects.toMatchObject({ code: 'conflict' })
    expect(await memory.metadata('acme:bob')).toBeUndefined()
    await appendUser(memory, 'acme:phone', 'still here')
    for (const to of ['other:chat', 'acme', 'acme:phone'])
      await expect(memory.transfer('acme:phone', to)).rejects.toMatchObject({ code: 'bad-option', param: 'to' })
    await expect(memory.transfer('acme:nobody', 'acme:chat')).rejects.toMatchObject({
      code: 'bad-option',
      param: 'from',
    })
    clock.now += 2 * day
    await expect(memory.transfer('acme:phone', 'acme:chat')).rejects.toMatchObject({
      code: 'bad-option',
      param: 'from',
    })
    await memory.close()
  })

  it('keeps secrets and the knowledge learnt from the session', async () => {
    const { memory } = await openTestMemory({ upkeep: false })
    await appendUser(memory, 'acme:phone', 'password: correct-horse-battery-9')
    await memory.remember('acme', { category: 'domain', key: 'order', value: '4471', session: 'phone' })
    await memory.transfer('acme:phone', 'acme:chat')
    expect((await memory.context('acme:chat', { budget: 4_000 })).text).toContain('correct-horse-battery-9')
    const receipt = await memory.forget({ key: 'acme:chat' })
    expect(receipt.sessions.map(({ key }) => key)).toEqual(['acme', 'acme:chat', 'acme:chat:1'])
    expect(await memory.search('acme', 'order 4471')).toEqual([])
    await memory.close()
  })

  for (const writtenKey of ['acme:phone', 'acme:chat']) {
    it(`interrupted at any write is completed by a write to ${writtenKey}`, async () => {
      let [isDone, resumedTransfers] = [false, 0]
      for (let writes = 0; !isDone; writes++) {
        const { memory, open, inner, left } = await openTestMemory()
        left.writes = writes
        isDone = await memory.transfer('acme:phone', 'acme:chat').then(
          () => true,
          () => false,
        )
        left.writes = Number.POSITIVE_INFINITY
        await memory.close()
        const next = await open()
        const [old, fresh] = [await next.metadata('acme:phone'), await next.metadata('acme:chat')]
        const hasStarted =
          writtenKey === 'acme:phone'
            ? old?.movedTo === 'chat'
            : fresh?.movedFrom === 'phone' || old?.movedTo === 'chat'
        // Before this point nothing has happened and both keys are unchanged.
        if (!hasStarted) continue
        resumedTransfers++
        if (writtenKey === 'acme:phone')
          await expect(appendUser(next, 'acme:phone')).rejects.toMatchObject({ code: 'moved', to: 'acme:chat' })
        const [last] = await appendUser(next, 'acme:chat', 'and on')
        expect(last?.id).toBe('m6')
        await next.forget({ key: 'acme:chat', messageId: 'm6' })
        // The sequence number of the forgotten message is not reused; everything else is the same.
        const head = await inner.readHead(chat, 9)
        expect(head.lastSequence).toBe(6)
        expect(head.recent.map(({ id }) => id)).toEqual(['m1', 'm2', 'm4'])
        expect(head.derived.filter(({ kind }) => kind !== 'about')).toEqual([fact, summary])
        expect(
          (await inner.list({ scope: 'acme', limit: 99 })).map(({ key, messages }) => `${key.id} ${messages}`),
        ).toEqual(['chat 3', 'chat:1 1', 'phone 0'])
        await next.close()
      }
      expect(resumedTransfers).toBeGreaterThan(6)
    })
  }

  it('with a reply that fills a slot after its neighbours were copied › moves it to the same slot', async () => {
    const { memory, open, inner, left } = await openTestMemory()
    // Reserves the new key (3 writes), redirects the old one (1) and copies two runs of messages (2).
    left.writes = 6
    await expect(memory.transfer('acme:phone', 'acme:chat')).rejects.toThrow('gone')
    await memory.close()
    expect((await inner.readHead(chat, 0)).lastSequence).toBeGreaterThanOrEqual(4)
    const { epoch, touchedAt, expiresAt } = await inner.readHead(phone, 0)
    const change = { key: phone, at: touchedAt, epoch, put: [], drop: [], expiresAt }
    await inner.commit({ ...change, append: [stored('late', { branch: 1 })], from: { sequence: 3 } })
    left.writes = Number.POSITIVE_INFINITY
    const next = await open()
    await appendUser(next, 'acme:chat', 'and on')
    expect(await ids(next, 'acme:chat')).toEqual(['m1 one', 'm2 two', 'm3 late', 'm4 four', 'm6 and on'])
    await next.close()
  })

  it('with concurrent appends to both keys loses no message', async () => {
    const { memory, inner } = await openTestMemory()
    const appends = (key: string, from: number) =>
      Array.from({ length: 20 }, (_, index) => appendUser(memory, key, `said ${from + index}`))
    const outcomes = await Promise.allSettled([
      ...appends('acme:phone', 0),
      memory.transfer('acme:phone', 'acme:chat'),
      ...appends('acme:phone', 20),
      ...appends('acme:chat', 40),
    ])
    const stored = outcomes.flatMap((outcome) =>
      outcome.status === 'fulfilled' && outcome.value !== undefined ? outcome.value.map(({ content }) => content) : [],
    )
    // Rejected writers have got an error; the next write to the old key moves late messages.
    await appendUser(memory, 'acme:phone').catch(() => undefined)
    const contents = (await memory.transcript('acme:chat')).map(({ content }) => content)
    expect(stored.filter((content) => !contents.includes(content))).toEqual([])
    expect(new Set(contents).size).toBe(contents.length)
    expect((await inner.readHead(phone, 0)).messages).toBe(0)
    await memory.close()
  })

  it('to a key that was reserved meanwhile is completed by a writer that found the key expired', async () => {
    const inner = ramStore()
    const about = { kind: 'about', id: 'about', at: start, movedFrom: 'phone', sources: [] } as const
    const change = { key: chat, at: start, base: 0, append: [], put: [], drop: [] }
    let isReserved = false
    // Reserves the key as soon as it is erased, as a transfer in another process would.
    const erase: typeof inner.erase = async (key, only) => {
      const erased = await inner.erase(key, only)
      if (key.id === 'chat' && !isReserved)
        await inner.commit({ ...change, epoch: 1, put: [about], expiresAt: noExpiry })
      isReserved ||= key.id === 'chat'
      return erased
    }
    const memory = await openMemory({
      profile: { ...profiles.support, upkeep: [] },
      store: { ...inner, erase },
      clock: () => start,
    })
    await appendUser(memory, 'acme:phone', 'one')
    await inner.commit({ ...change, epoch: 0, expiresAt: 0 })
    await appendUser(memory, 'acme:chat', 'two')
    expect([isReserved, await ids(memory, 'acme:chat')]).toEqual([true, ['m1 one', 'm2 two']])
    await memory.close()
  })

  it('with two processes moves late messages once', async () => {
    const inner = ramStore()
    const about = { kind: 'about', id: 'about', at: start, sources: [] } as const
    const change = { at: start, epoch: 0, append: [], put: [], drop: [], expiresAt: noExpiry }
    await inner.commit({ ...change, key: chat, append: [stored('one')], put: [{ ...about, movedFrom: 'phone' }] })
    await inner.commit({
      ...change,
      key: phone,
      append: [stored('one'), stored('late')],
      put: [{ ...about, movedTo: 'chat' }],
    })
    await inner.erase(phone, { entries: ['m1'] })
    const open = (store: typeof inner) =>
      openMemory({ profile: { ...profiles.support, upkeep: [] }, store, clock: () => start })
    const other = await open({ ...inner, close: async () => undefined })
    let isOpen = false
    // Another process opens the new key meanwhile, and a writer to the old key then moves the message too.

    const commit: typeof inner.commit = async (copied) => {
      const added = await inner.commit(copied)
      if (copied.key.id !== 'chat' || copied.append.length === 0 || isOpen) return added
      isOpen = true
      await inner.commit({ ...change, key: chat, drop: ['about'] })
      await expect(appendUser(other, 'acme:phone')).rejects.toMatchObject({ code: 'moved' })
      return added
    }
    const memory = await open({ ...inner, commit })
    await appendUser(memory, 'acme:chat', 'next')
    expect([isOpen, await ids(memory, 'acme:chat')]).toEqual([true, ['m1 one', 'm2 late', 'm3 next']])
    await memory.close()
  })
})
