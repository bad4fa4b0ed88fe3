import { describe, expect, it } from 'vitest'
import { branchKey, filesKey, parseKey } from '../../src/domain/key.ts'
import type { Lifetime } from '../../src/domain/profile.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { type Memory, type MemoryOptions, openMemory, profiles, ramStore } from '../../src/index.ts'
import { newMessage as stored } from '../../src/stores/conformance/fixtures.ts'
import { encryptedStore, parseKeyring } from '../../src/stores/encrypted.ts'
import { verifies } from '../requirements/verifies.ts'
import { appendUser } from './fixtures.ts'

const start = 1_800_000_000_000
const hour = 3_600_000
const day = 24 * hour

/** Opens a memory with the support profile and the given limits, and a manual clock. */
async function openTestMemory(lifetime: Partial<Lifetime> = {}, options: MemoryOptions = {}) {
  const clock = { now: start }
  const ends: string[] = []
  const profile = { ...profiles.support, lifetime: { ...profiles.support.lifetime, ...lifetime } }
  const onSessionEnd: MemoryOptions['onSessionEnd'] = (id, _, { reason }) => void ends.push(`${id} ${reason}`)
  const memory = await openMemory({ profile, clock: () => clock.now, onSessionEnd, ...options })
  return { memory, clock, ends }
}

const contents = async (memory: Memory, key: string) => (await memory.transcript(key)).map(({ content }) => content)

describe('session lifetime', () => {
  verifies('T-06', 'is 24 hours after the last turn, and at most seven days', async () => {
    const { memory, clock } = await openTestMemory()
    await appendUser(memory, 'acme:ann')
    clock.now += day - 1
    await appendUser(memory, 'acme:ann', 'again')
    clock.now += day
    expect(await contents(memory, 'acme:ann')).toEqual([])
    await appendUser(memory, 'acme:ann', 'anew')
    const startedAt = clock.now
    for (let turns = 0; turns < 13; turns++) {
      clock.now += day / 2
      await appendUser(memory, 'acme:ann', `${turns}`)
    }
    clock.now = startedAt + 7 * day - 1
    expect((await contents(memory, 'acme:ann'))[0]).toBe('anew')
    clock.now++
    expect(await contents(memory, 'acme:ann')).toEqual([])
    expect((await memory.sweep()).ended).toEqual(['acme:ann'])
    await memory.close()
  })

  const reads: Record<string, (memory: Memory) => Promise<unknown>> = {
    context: (memory) => memory.context('acme:ann'),
    transcript: (memory) => memory.transcript('acme:ann'),
    search: (memory) => memory.search('acme', 'hello', { session: 'ann' }),
  }
  for (const [name, read] of Object.entries(reads)) {
    verifies('T-06', `restarts with each ${name}, up to seven days`, async () => {
      const { memory, clock, ends } = await openTestMemory()
      await appendUser(memory, 'acme:ann')
      for (let hours = 0; hours < 7 * 24 - 20; hours += 20) {
        clock.now += 20 * hour
        await read(memory)
        expect((await memory.sweep()).ended).toEqual([])
      }
      clock.now = start + 7 * day
      expect((await memory.sweep()).ended).toEqual(['acme:ann'])
      await memory.close()
      expect(ends).toEqual(['acme:ann expired'])
    })
  }

  verifies('T-06', 'ends a day after the last read, and a search of the whole tenant is no read', async () => {
    const { memory, clock } = await openTestMemory()
    await appendUser(memory, 'acme:ann')
    clock.now += 20 * hour
    await memory.context('acme:ann')
    clock.now += 20 * hour
    await memory.search('acme', 'hello')
    clock.now += 4 * hour - 1
    expect((await memory.sweep()).ended).toEqual([])
    clock.now++
    expect((await memory.sweep()).ended).toEqual(['acme:ann'])
    await memory.close()
  })

  verifies('T-06', 'is not written again for reads in quick succession', async () => {
    const sessions = ramStore()
    const { memory, clock } = await openTestMemory({}, { sessions })
    await appendUser(memory, 'acme:ann')
    clock.now += hour
    await memory.context('acme:ann')
    const { revision, touchedAt } = await sessions.readHead(parseKey('acme:ann'), 0)
    for (let reads = 0; reads < 5; reads++) {
      clock.now += 10_000
      await memory.context('acme:ann')
    }
    expect([touchedAt, (await sessions.readHead(parseKey('acme:ann'), 0)).revision]).toEqual([start + hour, revision])
    await memory.close()
  })

  verifies('T-17', 'set for one session replaces that of the profile, shorter or longer', async () => {
    const { memory, clock, ends } = await openTestMemory({ age: 30 * day })
    await memory.setMetadata('acme:short', { idle: hour })
    await appendUser(memory, 'acme:short')
    await appendUser(memory, 'acme:long')
    await memory.setMetadata('acme:long', { idle: 10 * day, age: 20 * day })
    await appendUser(memory, 'acme:usual')
    clock.now += hour
    expect((await memory.sweep()).ended).toEqual(['acme:short'])
    clock.now += day
    expect((await memory.sweep()).ended).toEqual(['acme:usual'])
    clock.now = start + 9 * day
    await appendUser(memory, 'acme:long')
    clock.now = start + 18 * day
    await appendUser(memory, 'acme:long')
    clock.now = start + 20 * day
    expect((await memory.sweep()).ended).toEqual(['acme:long'])
    await memory.close()
    expect(ends).toEqual(['acme:short expired', 'acme:usual expired', 'acme:long expired'])
  })
})

describe('session limits', () => {
  verifies('T-12', 'with too many messages drop the oldest except the first', async () => {
    const { memory } = await openTestMemory({ messages: 3 })
    for (const word of ['seed', 'two', 'three', 'four', 'five']) await appendUser(memory, 'acme:ann', word)
    expect(await contents(memory, 'acme:ann')).toEqual(['seed', 'four', 'five'])
    await memory.close()
  })

  verifies(
    ['T-08', 'T-12'],
    'with too many UTF-8 bytes drop as many of the oldest messages except the first as necessary',
    async () => {
      const { memory } = await openTestMemory({ bytes: 100 })
      await appendUser(memory, 'acme:ann', 's'.repeat(30))
      await appendUser(memory, 'acme:ann', 'ä'.repeat(15))
      await appendUser(memory, 'acme:ann', 'b'.repeat(40))
      expect((await memory.transcript('acme:ann')).map(({ id }) => id)).toEqual(['m1', 'm2', 'm3'])
      await appendUser(memory, 'acme:ann', 'c'.repeat(10))
      expect((await memory.transcript('acme:ann')).map(({ id }) => id)).toEqual(['m1', 'm3', 'm4'])
      await appendUser(memory, 'acme:ann', 'd'.repeat(21))
      expect((await memory.transcript('acme:ann')).map(({ id }) => id)).toEqual(['m1', 'm4', 'm5'])
      await expect(appendUser(memory, 'acme:ann', 'e'.repeat(71))).rejects.toMatchObject({
        code: 'full',
        param: 'lifetime.bytes',
      })
      await memory.append('acme:ann', [
        {
          role: 'assistant',
          content: '',
          tool_calls: [{ id: 'call', function: { name: 'look', arguments: '9'.repeat(60) } }],
        },
      ])
      expect((await memory.transcript('acme:ann')).map(({ id }) => id)).toEqual(['m1', 'm6'])
      await memory.close()
    },
  )

  it('count messages of earlier processes, and not forgotten ones', async () => {
    const store = ramStore()
    const profile = { ...profiles.thread, lifetime: { bytes: 100, whenFull: 'refuse' as const } }
    const first = await openMemory({ profile, store })
    await appendUser(first, 'acme:ann', 'a'.repeat(60))
    const second = await openMemory({ profile, store })
    await expect(appendUser(second, 'acme:ann', 'b'.repeat(41))).rejects.toMatchObject({ code: 'full' })
    await appendUser(second, 'acme:ann', 'b'.repeat(40))
    await second.forget({ key: 'acme:ann', messageId: 'm1' })
    await appendUser(second, 'acme:ann', 'c'.repeat(60))
    await expect(appendUser(second, 'acme:ann', 'd')).rejects.toMatchObject({ code: 'full' })
    await first.close()
    await second.close()
  })

  it('that are reached still accept a repeated operationId', async () => {
    const { memory } = await openTestMemory({ bytes: 10, messages: 1_000, whenFull: 'refuse' })
    const [once] = await memory.append('acme:ann', [{ role: 'user', content: '0123456789' }], { operationId: 'one' })
    expect(await memory.append('acme:ann', [{ role: 'user', content: '0123456789' }], { operationId: 'one' })).toEqual([
      once,
    ])
    await expect(appendUser(memory, 'acme:ann', 'x')).rejects.toMatchObject({
      code: 'full',
      message:
        'Session acme:ann would exceed the 10 bytes its profile allows. Start a new session, send less, or raise lifetime.bytes.',
    })
    await memory.close()
  })

  verifies(
    'T-12',
    'with too many sessions in a scope evict the least recently used, also when many start at once',
    async () => {
      const { memory, clock, ends } = await openTestMemory({ sessionsPerScope: 3 })
      for (const name of ['a', 'b', 'c']) {
        clock.now++
        await appendUser(memory, `acme:${name}`)
      }
      clock.now++
      await appendUser(memory, 'acme:a')
      await appendUser(memory, 'other:z')
      clock.now++
      await appendUser(memory, 'acme:d')
      await memory.lifecycle.whenIdle()
      expect(ends).toEqual(['acme:b evicted'])
      clock.now++
      await Promise.all(['e', 'f', 'g', 'h'].map((name) => appendUser(memory, `acme:${name}`)))
      await memory.close()
      expect(ends.sort()).toEqual([
        'acme:a evicted',
        'acme:b evicted',
        'acme:c evicted',
        'acme:d evicted',
        'acme:e evicted',
      ])
    },
  )

  verifies('T-12', 'with whenFull refuse reject one session too many, until another one ends', async () => {
    const { memory, clock } = await openTestMemory({ sessionsPerScope: 3, whenFull: 'refuse' })
    await memory.remember('acme', { category: 'domain', key: 'hours', value: '9 to 5' })
    const outcomes = await Promise.allSettled(
      ['a', 'b', 'c', 'd', 'e'].map((name) => appendUser(memory, `acme:${name}`)),
    )
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
    ])
    await expect(appendUser(memory, 'acme:d')).rejects.toMatchObject({
      code: 'full',
      param: 'lifetime.sessionsPerScope',
      message: 'acme has 3 sessions and its profile allows 3. End one of them, or raise lifetime.sessionsPerScope.',
    })
    await expect(memory.setMetadata('acme:d', { person: 'ann' })).rejects.toMatchObject({ code: 'full' })
    await memory.end('acme:b')
    await appendUser(memory, 'acme:d')
    // Expired sessions do not count, even before a sweep.
    clock.now += day
    await appendUser(memory, 'acme:e')
    await memory.close()
  })

  it('do not count auxiliary keys', async () => {
    const store = ramStore()
    const { memory, ends } = await openTestMemory({ sessionsPerScope: 1 }, { sessions: store })
    const auxiliary = [filesKey('acme'), branchKey(parseKey('acme:a'), 1)]
    for (const key of auxiliary)
      await store.commit({ key, at: start, epoch: 0, append: [stored('x')], put: [], drop: [], expiresAt: noExpiry })
    await appendUser(memory, 'acme:a')
    expect(ends).toEqual([])
    await memory.close()
  })

  verifies('T-08', 'of the store evict the least recently used sessions', async () => {
    const sessions = ramStore({ maxBytes: 20_000 })
    const { memory, clock, ends } = await openTestMemory({}, { sessions })
    for (const name of ['a', 'b', 'c', 'd']) {
      clock.now++
      await appendUser(memory, `acme:${name}`, 'x'.repeat(6_000))
      await memory.lifecycle.whenIdle()
    }
    expect(ends).toEqual(['acme:a evicted', 'acme:b evicted'])
    expect(sessions.capabilities.memoryLimit.memoryUsage.usedBytes).toBeLessThanOrEqual(20_000)
    await memory.close()
  })
})

describe('session metadata', () => {
  it('setMetadata › with up to 65,536 characters of JSON › stores it', async () => {
    await using memory = await openMemory()
    for (const metadata of [
      { text: 'a'.repeat(65_536 - '{"text":""}'.length) },
      { ids: Array.from({ length: 3_300 }, () => 0) },
      { flags: Array.from({ length: 10_000 }, (_, index) => index % 2 === 0) },
    ]) {
      await memory.setMetadata('acme:ann', { metadata })
      expect((await memory.metadata('acme:ann'))?.metadata).toEqual(metadata)
    }
  })

  it('setMetadata › with more than 65,536 characters of JSON › is refused by an error without the value', async () => {
    await using memory = await openMemory()
    for (const metadata of [
      { text: 'a'.repeat(65_537 - '{"text":""}'.length) },
      { text: '\u0001'.repeat(65_400) },
      { numbers: Array.from({ length: 40_000 }, () => 0) },
      Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`"name ${index}"`, 1])),
    ])
      await expect(memory.setMetadata('acme:ann', { metadata })).rejects.toMatchObject({
        code: 'bad-option',
        param: 'metadata',
        message: 'metadata has more than 65,536 characters as JSON. Store long texts as messages or rows.',
      })
    expect(await memory.metadata('acme:ann')).toBeUndefined()
  })

  it.each([
    ['with a list of empty texts', { list: Array(65_536).fill('') }],
    ['whose masks are longer than the secrets', { password: Array(9_000).fill('xq7Z') }],
  ])('setMetadata › %s that has more than 65,536 characters › is refused', async (_, metadata) => {
    await using memory = await openMemory()
    await expect(memory.setMetadata('acme:ann', { metadata })).rejects.toMatchObject({
      code: 'bad-option',
      param: 'metadata',
    })
  })

  verifies('T-17', 'is stored, updated per field, and not shown to models', async () => {
    const { memory } = await openTestMemory({}, { upkeep: false })
    expect(await memory.metadata('acme:ann')).toBeUndefined()
    await memory.setMetadata('acme:ann', { template: 'returns', person: 'ann', metadata: { channel: 'walrus phone' } })
    await appendUser(memory, 'acme:ann')
    await memory.setMetadata('acme:ann', { idle: hour, person: undefined })
    expect(await memory.metadata('acme:ann')).toEqual({
      kind: 'about',
      id: 'about',
      at: start,
      template: 'returns',
      idle: hour,
      metadata: { channel: 'walrus phone' },
      sources: [],
    })
    expect((await memory.context('acme:ann')).text).not.toMatch(/walrus|returns/)
    expect(await memory.search('acme', 'walrus phone')).toEqual([])
    expect(await memory.search('acme', 'walrus', { kinds: ['about'] })).toEqual([])
    expect((await memory.forget({ scope: 'acme', text: 'Walrus' })).sessions).toEqual([
      { key: 'acme:ann', entries: ['about'] },
    ])
    await memory.close()
  })

  it('is validated and masked', async () => {
    const { memory } = await openTestMemory()
    const described = await memory.setMetadata('acme:ann', { metadata: { password: 'hunter2-but-longer' } })
    expect(JSON.stringify(described)).not.toContain('hunter2')
    const bad = { code: 'bad-option' }
    await expect(memory.setMetadata('acme:ann', { idle: 0 })).rejects.toMatchObject({ ...bad, param: 'idle' })
    await expect(memory.setMetadata('acme:ann', { age: 1.5 })).rejects.toMatchObject({ ...bad, param: 'age' })
    await expect(memory.setMetadata('acme:ann', { template: '' })).rejects.toMatchObject({ ...bad, param: 'template' })
    await expect(memory.setMetadata('acme:ann', { movedTo: 'bob' } as object)).rejects.toMatchObject({
      ...bad,
      param: 'movedTo',
    })
    await expect(memory.setMetadata('acme:ann', { person: 'no one' })).rejects.toMatchObject({ code: 'bad-key' })
    await memory.close()
  })

  it('is exported, imported and encrypted', async () => {
    const key = parseKeyring('ab'.repeat(32), 'a test')
    const inner = ramStore()
    const profile = profiles.thread
    const first = await openMemory({ profile, store: { ...(await encryptedStore(inner, key)), durability: 'durable' } })
    await appendUser(first, 'acme:ann')
    const about = await first.setMetadata('acme:ann', {
      template: 'returns',
      idle: hour,
      metadata: { channel: 'phone' },
    })
    expect(JSON.stringify((await inner.readHead(parseKey('acme:ann'), 0)).derived)).not.toMatch(/returns|phone/)
    const bundle: Uint8Array[] = []
    for await (const bytes of first.export()) bundle.push(bytes)
    const second = await openMemory({ profile, store: { ...ramStore(), durability: 'durable' } })
    await second.import(async function* () {
      yield* bundle
    })
    expect(await second.metadata('acme:ann')).toEqual(about)
    await first.close()
    await second.close()
  })

  it('survives concurrent appends, and is erased with its session', async () => {
    const { memory, clock } = await openTestMemory()
    await Promise.all([
      appendUser(memory, 'acme:ann'),
      memory.setMetadata('acme:ann', { template: 'a' }),
      memory.setMetadata('acme:ann', { metadata: { b: 1 } }),
    ])
    expect(await memory.metadata('acme:ann')).toMatchObject({ template: 'a', metadata: { b: 1 } })
    clock.now += day
    expect(await memory.metadata('acme:ann')).toBeUndefined()
    await appendUser(memory, 'acme:ann')
    expect(await memory.metadata('acme:ann')).toBeUndefined()
    await memory.close()
  })
})
