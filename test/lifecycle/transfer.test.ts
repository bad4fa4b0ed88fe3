import { describe, expect, it } from 'vitest'
import type { Fact, Summary } from '../../src/domain/entry.ts'
import { branchKey, parseKey, receiptsKey } from '../../src/domain/key.ts'
import { never } from '../../src/domain/session.ts'
import { type Memory, type MemoryOptions, openMemory, profiles, ramStore } from '../../src/index.ts'
import { said as stored } from '../../src/stores/conformance/stage.ts'
import { verifies } from '../requirements/verifies.ts'

const start = 1_800_000_000_000
const day = 86_400_000
const [phone, chat] = [parseKey('acme:phone'), parseKey('acme:chat')]

const say = (memory: Memory, key: string, content = 'Hello') => memory.append(key, [{ role: 'user', content }])
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
  ...{ covers: [1, 2], reach: 10, version: 1, by: 'builtin', sources: [], lost: [] },
}

/** A store in which a process is gone after so many writes. */
function failing(inner: ReturnType<typeof ramStore>) {
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

/** A memory with a session worth moving: messages with a gap, what was made of them, receipts and a branch. */
async function opened(more: MemoryOptions = {}) {
  const clock = { now: start }
  const inner = ramStore()
  const { store, left } = failing(inner)
  const open = () =>
    openMemory({ profile: { ...profiles.support, upkeep: [] }, store, clock: () => clock.now, ...more })
  const memory = await open()
  for (const word of ['one', 'two', 'three', 'four', 'five']) await say(memory, 'acme:phone', word)
  await memory.describe(phone, { metadata: { channel: 'phone' }, idle: 2 * day })
  await memory.forget({ key: 'acme:phone', messageId: 'm3' })
  await memory.forget({ key: 'acme:phone', messageId: 'm5' })
  const { revision, epoch, expiresAt } = await inner.head(phone, 0)
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
  for (const key of [receiptsKey(phone), branchKey(phone, 1)]) {
    await inner.commit({
      key,
      at: start,
      epoch: 0,
      append: [stored(`of ${key.id}`)],
      put: [],
      drop: [],
      expiresAt: never,
    })
  }
  return { memory, open, clock, inner, left }
}

/** What a finished transfer leaves. */
async function expectMoved(memory: Memory, inner: ReturnType<typeof ramStore>): Promise<void> {
  const head = await inner.head(chat, 9)
  expect(head.recent.map(({ id, sequence, offset, content }) => [id, sequence, offset, content])).toEqual([
    ['m1', 1, 0, 'one'],
    ['m2', 2, expect.any(Number), 'two'],
    ['m4', 4, expect.any(Number), 'four'],
  ])
  expect([head.last, head.gaps, head.startedAt]).toEqual([
    5,
    [
      [3, 3],
      [5, 5],
    ],
    start,
  ])
  expect(head.derived.filter(({ kind }) => kind !== 'about')).toEqual([fact, summary])
  expect(await memory.about('acme:chat')).toEqual({
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
    'chat:receipts 1',
    'phone 0',
  ])
  expect((await inner.page(receiptsKey(chat), { limit: 9 })).map(({ content }) => content)).toEqual([
    'of phone:receipts',
  ])
}

describe('a session that goes on under another key', () => {
  verifies(
    'T-17',
    'keeps what was said under the same numbers, what was made of it and what is kept beside it',
    async () => {
      const { memory, inner } = await opened()
      await memory.transfer('acme:phone', 'acme:chat')
      await expectMoved(memory, inner)
      expect((await say(memory, 'acme:chat', 'six')).map(({ id }) => id)).toEqual(['m6'])
      expect(new Set((await memory.search('acme', 'order 4471')).map(({ key }) => key))).toEqual(new Set(['acme:chat']))
      await memory.close()
    },
  )

  it('refuses writers under the old one, and says where to go, until that is over', async () => {
    const ends: string[] = []
    const { memory, clock } = await opened({ onSessionEnd: (id) => void ends.push(id) })
    await memory.transfer('acme:phone', 'acme:chat')
    const moved = { code: 'moved', to: 'acme:chat', message: 'Session acme:phone goes on as acme:chat. Write there.' }
    await expect(say(memory, 'acme:phone')).rejects.toMatchObject(moved)
    await expect(memory.describe('acme:phone', { idle: day })).rejects.toMatchObject(moved)
    await expect(memory.transfer('acme:phone', 'acme:else')).rejects.toMatchObject(moved)
    expect(await ids(memory, 'acme:phone')).toEqual([])
    await memory.transfer('acme:phone', 'acme:chat')
    clock.now += 2 * day
    expect((await memory.sweep()).ended).toEqual(['acme:chat', 'acme:phone'])
    await say(memory, 'acme:phone', 'another call')
    expect(await ids(memory, 'acme:phone')).toEqual(['m1 another call'])
    await memory.close()
    // The old one has not ended: it went on.
    expect(ends).toEqual(['acme:chat'])
  })

  it('needs a key of the same scope that nobody has used', async () => {
    const { memory, clock } = await opened()
    await say(memory, 'acme:bob')
    await expect(memory.transfer('acme:phone', 'acme:bob')).rejects.toMatchObject({ code: 'conflict' })
    expect(await memory.about('acme:bob')).toBeUndefined()
    await say(memory, 'acme:phone', 'still here')
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

  it('has its secrets, and what the scope has learnt from it', async () => {
    const { memory } = await opened({ upkeep: false })
    await say(memory, 'acme:phone', 'password: correct-horse-battery-9')
    await memory.remember('acme', { category: 'domain', key: 'order', value: '4471', session: 'phone' })
    await memory.transfer('acme:phone', 'acme:chat')
    expect((await memory.context('acme:chat', { budget: 4_000 })).text).toContain('correct-horse-battery-9')
    const receipt = await memory.forget({ key: 'acme:chat' })
    expect(receipt.sessions.map(({ key }) => key)).toEqual(['acme', 'acme:chat', 'acme:chat:1', 'acme:chat:receipts'])
    expect(await memory.search('acme', 'order 4471')).toEqual([])
    await memory.close()
  })

  for (const meet of ['acme:phone', 'acme:chat']) {
    it(`is whole wherever the transfer was interrupted, once somebody writes to ${meet}`, async () => {
      let [isDone, begun] = [false, 0]
      for (let writes = 0; !isDone; writes++) {
        const { memory, open, inner, left } = await opened()
        left.writes = writes
        isDone = await memory.transfer('acme:phone', 'acme:chat').then(
          () => true,
          () => false,
        )
        left.writes = Number.POSITIVE_INFINITY
        await memory.close()
        const next = await open()
        const [old, fresh] = [await next.about('acme:phone'), await next.about('acme:chat')]
        const isBegun =
          meet === 'acme:phone' ? old?.movedTo === 'chat' : fresh?.movedFrom === 'phone' || old?.movedTo === 'chat'
        // Up to there nothing has happened: either key is what it was.
        if (!isBegun) continue
        begun++
        if (meet === 'acme:phone')
          await expect(say(next, 'acme:phone')).rejects.toMatchObject({ code: 'moved', to: 'acme:chat' })
        const [last] = await say(next, 'acme:chat', 'and on')
        expect(last?.id).toBe('m6')
        await next.forget({ key: 'acme:chat', messageId: 'm6' })
        // The number of what was forgotten is not given again: that is the only difference.
        const head = await inner.head(chat, 9)
        expect(head.last).toBe(6)
        expect(head.recent.map(({ id }) => id)).toEqual(['m1', 'm2', 'm4'])
        expect(head.derived.filter(({ kind }) => kind !== 'about')).toEqual([fact, summary])
        expect(
          (await inner.list({ scope: 'acme', limit: 99 })).map(({ key, messages }) => `${key.id} ${messages}`),
        ).toEqual(['chat 3', 'chat:1 1', 'chat:receipts 1', 'phone 0'])
        await next.close()
      }
      expect(begun).toBeGreaterThan(6)
    })
  }

  it('loses nothing that is said to either key meanwhile', async () => {
    const { memory, inner } = await opened()
    const saying = (key: string, from: number) =>
      Array.from({ length: 20 }, (_, place) => say(memory, key, `said ${from + place}`))
    const outcomes = await Promise.allSettled([
      ...saying('acme:phone', 0),
      memory.transfer('acme:phone', 'acme:chat'),
      ...saying('acme:phone', 20),
      ...saying('acme:chat', 40),
    ])
    const kept = outcomes.flatMap((outcome) =>
      outcome.status === 'fulfilled' && outcome.value !== undefined ? outcome.value.map(({ content }) => content) : [],
    )
    // Who was refused knows so; whoever comes next brings over what came last.
    await say(memory, 'acme:phone').catch(() => undefined)
    const contents = (await memory.transcript('acme:chat')).map(({ content }) => content)
    expect(kept.filter((content) => !contents.includes(content))).toEqual([])
    expect(new Set(contents).size).toBe(contents.length)
    expect((await inner.head(phone, 0)).messages).toBe(0)
    await memory.close()
  })

  it('is brought to its end first by who finds the new key over, and then reserved', async () => {
    const inner = ramStore()
    const about = { kind: 'about', id: 'about', at: start, movedFrom: 'phone', sources: [] } as const
    const change = { key: chat, at: start, base: 0, append: [], put: [], drop: [] }
    let isReserved = false
    // Whoever transfers goes on as soon as the key is free.
    const erase: typeof inner.erase = async (key, only) => {
      const gone = await inner.erase(key, only)
      if (key.id === 'chat' && !isReserved) await inner.commit({ ...change, epoch: 1, put: [about], expiresAt: never })
      isReserved ||= key.id === 'chat'
      return gone
    }
    const memory = await openMemory({
      profile: { ...profiles.support, upkeep: [] },
      store: { ...inner, erase },
      clock: () => start,
    })
    await say(memory, 'acme:phone', 'one')
    await inner.commit({ ...change, epoch: 0, expiresAt: 0 })
    await say(memory, 'acme:chat', 'two')
    expect([isReserved, await ids(memory, 'acme:chat')]).toEqual([true, ['m1 one', 'm2 two']])
    await memory.close()
  })

  it('brings what was said at the last moment over once, though two do so at the same time', async () => {
    const inner = ramStore()
    const about = { kind: 'about', id: 'about', at: start, sources: [] } as const
    const change = { at: start, epoch: 0, append: [], put: [], drop: [], expiresAt: never }
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
    // Who was done before it was said opens the new key meanwhile, and who comes to the old one then brings it over too.
    const commit: typeof inner.commit = async (copied) => {
      const added = await inner.commit(copied)
      if (copied.key.id !== 'chat' || copied.append.length === 0 || isOpen) return added
      isOpen = true
      await inner.commit({ ...change, key: chat, drop: ['about'] })
      await expect(say(other, 'acme:phone')).rejects.toMatchObject({ code: 'moved' })
      return added
    }
    const memory = await open({ ...inner, commit })
    await say(memory, 'acme:chat', 'next')
    expect([isOpen, await ids(memory, 'acme:chat')]).toEqual([true, ['m1 one', 'm2 late', 'm3 next']])
    await memory.close()
  })
})
