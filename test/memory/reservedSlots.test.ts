import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { type Memory, openMemory, profiles, ramStore } from '../../src/index.ts'

const key = 'acme:ann'
const ask = (content: string) => ({ role: 'user' as const, content })
const answer = (content: string) => ({ role: 'assistant' as const, content })
const transcript = async (memory: Memory) => (await memory.transcript(key)).map(({ id, content }) => `${id} ${content}`)

describe('append › with reserve', () => {
  it('leaves numbers that replies fill in any order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 6 }),
        fc.infiniteStream(fc.nat(99)),
        async (reserves, order) => {
          await using memory = await openMemory()
          const expected: string[] = []
          const slots: number[] = []
          let last = 0
          for (const reserve of reserves) {
            for (let slot = last + 1; slot <= last + reserve; slot++) {
              slots.push(slot)
              expected.push(`m${slot} reply ${slot}`)
            }
            const [stored] = await memory.append(key, [ask(`question ${last + reserve + 1}`)], { reserve })
            last += reserve + 1
            expect(stored?.sequence).toBe(last)
            expected.push(`m${last} question ${last}`)
          }
          while (slots.length > 0) {
            const [sequence = 0] = slots.splice((order.next().value as number) % slots.length, 1)
            await memory.append(key, [answer(`reply ${sequence}`)], { sequence })
          }
          expect(await transcript(memory)).toEqual(expected)
        },
      ),
      { numRuns: 60 },
    )
  })

  it('and concurrent writers › stores all messages and shares no slot', async () => {
    const store = ramStore()
    await using memory = await openMemory({ store })
    const results = await Promise.all(
      Array.from({ length: 12 }, (_, index) => memory.append(key, [ask(`q${index}`)], { reserve: index % 3 })),
    )
    const { gaps, messages, lastSequence } = await store.readHead(parseKey(key), 0)
    expect([messages, lastSequence]).toEqual([12, 24])
    expect(new Set(results.map(([stored]) => stored?.sequence)).size).toBe(12)
    expect(gaps.reduce((sum, [first, last]) => sum + last - first + 1, 0)).toBe(12)
  })

  it('at the message limit › evicts as many messages as it adds', async () => {
    const profile = {
      ...profiles.thread,
      lifetime: { ...profiles.thread.lifetime, messages: 3, whenFull: 'evict' as const },
    }
    await using memory = await openMemory({ profile })
    await memory.append(key, [ask('1'), ask('2'), ask('3')])
    await memory.append(key, [ask('6'), ask('7')], { reserve: 2 })
    expect(await transcript(memory)).toEqual(['m1 1', 'm6 6', 'm7 7'])
    await memory.append(key, [answer('5')], { sequence: 5 })
    expect(await transcript(memory)).toEqual(['m1 1', 'm5 5', 'm7 7'])
    await memory.append(key, ['11', '12', '13', '14', '15'].map(ask), { reserve: 3 })
    expect(await transcript(memory)).toEqual(['m1 1', 'm14 14', 'm15 15'])
  })

  it('keeps the limit of bytes, in which payloads count', async () => {
    const profile = {
      ...profiles.thread,
      lifetime: { ...profiles.thread.lifetime, bytes: 400, whenFull: 'evict' as const },
    }
    await using memory = await openMemory({ profile })
    const payload = { protocol: 'chat', items: ['x'.repeat(100)] }
    for (let turn = 0; turn < 6; turn++) {
      const [asked] = await memory.append(key, [{ ...ask(`q${turn}`), payload }], { reserve: 1 })
      await memory.append(key, [answer(`a${turn}`)], { sequence: (asked?.sequence ?? 0) - 1 })
    }
    const kept = await memory.transcript(key)
    const bytes = kept.reduce((sum, { content, packedPayload = '' }) => sum + content.length + packedPayload.length, 0)
    expect(bytes).toBeLessThanOrEqual(400)
    expect(kept.length).toBeGreaterThan(2)
  })
})

describe('append › with sequence', () => {
  it('that is taken, unknown or not reserved › appends at the end', async () => {
    await using memory = await openMemory()
    await memory.append(key, [ask('one')])
    await memory.append(key, [ask('three')], { reserve: 1 })
    for (const sequence of [1, 3, 9]) await memory.append(key, [answer(`not ${sequence}`)], { sequence })
    await Promise.all([
      memory.append(key, [answer('a')], { sequence: 2 }),
      memory.append(key, [answer('b')], { sequence: 2 }),
    ])
    expect((await transcript(memory)).map((line) => line.slice(0, 8))).toEqual([
      'm1 one',
      'm2 a',
      'm3 three',
      'm4 not 1',
      'm5 not 3',
      'm6 not 9',
      'm7 b',
    ])
  })

  it('and a repeated operationId › stores the message once', async () => {
    await using memory = await openMemory()
    await memory.append(key, [ask('two')], { reserve: 1 })
    for (const sequence of [1, 2]) {
      const options = { sequence, operationId: `op ${sequence}` }
      const once = await memory.append(key, [answer('reply')], options)
      expect(await memory.append(key, [answer('reply')], options)).toEqual(once)
    }
    expect(await transcript(memory)).toEqual(['m1 reply', 'm2 two', 'm3 reply'])
  })

  it('with several messages or other invalid options › is rejected', async () => {
    await using memory = await openMemory()
    for (const [options, param] of [
      [{ sequence: 1.5 }, 'sequence'],
      [{ sequence: 1, reserve: 1 }, 'sequence'],
      [{ reserve: -1 }, 'reserve'],
      [{ branch: 0 }, 'branch'],
    ] as const)
      await expect(memory.append(key, [ask('x')], options)).rejects.toMatchObject({ code: 'bad-option', param })
    await expect(memory.append(key, [ask('x'), ask('y')], { sequence: 1 })).rejects.toMatchObject({ param: 'sequence' })
    expect(await transcript(memory)).toEqual([])
  })
})

describe('append › with branch', () => {
  it('new or a number › marks the messages with the first number of their conversation', async () => {
    await using memory = await openMemory()
    await memory.append(key, [ask('one')])
    await memory.append(key, [ask('three'), ask('four')], { branch: 'new', reserve: 1 })
    await memory.append(key, [answer('two')], { sequence: 2 })
    await memory.append(key, [answer('five')], { branch: 3 })
    const branches = (await memory.transcript(key)).map(({ sequence, branch }) => [sequence, branch])
    expect(branches).toEqual([
      [1, undefined],
      [2, undefined],
      [3, 3],
      [4, 3],
      [5, 3],
    ])
  })

  it('new and concurrent writers › always carries the number of its first message', async () => {
    await using memory = await openMemory()
    const results = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        memory.append(key, [ask(`q${index}`)], index % 2 === 0 ? { branch: 'new' } : {}),
      ),
    )
    for (const [index, [stored]] of results.entries())
      expect(stored?.branch).toBe(index % 2 === 0 ? stored?.sequence : undefined)
    expect((await memory.transcript(key)).length).toBe(12)
  })
})

describe('transfer', () => {
  it('of a session with payloads, branches and filled slots › keeps everything', async () => {
    const store = ramStore()
    await using memory = await openMemory({ profile: 'support', store })
    const payload = { protocol: 'chat', items: [{ text: 'hidden' }] }
    await memory.append(key, [ask('one')])
    await memory.append(key, [{ ...ask('four'), payload }], { branch: 'new', reserve: 2 })
    await memory.append(key, [answer('two')], { sequence: 2 })
    // The offsets of six and seven overlap, because six is stored last.
    await memory.append(key, [ask('five')])
    await memory.append(key, [ask('seven')], { reserve: 1 })
    await memory.append(key, [answer('six')], { sequence: 6 })
    const before = await memory.transcript(key)
    const { gaps } = await store.readHead(parseKey(key), 0)
    await memory.transfer(parseKey(key), parseKey('acme:bob'))
    expect(await memory.transcript('acme:bob')).toEqual(before)
    expect((await store.readHead(parseKey('acme:bob'), 0)).gaps).toEqual(gaps)
    await memory.append('acme:bob', [answer('three')], { sequence: 3 })
    expect((await memory.transcript('acme:bob')).map(({ content }) => content)).toEqual([
      ...['one', 'two', 'three', 'four', 'five', 'six', 'seven'],
    ])
  })
})
