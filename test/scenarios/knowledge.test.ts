import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { knowledgeCategories } from '../../src/domain/knowledge.ts'
import {
  type KnowledgeInput,
  type Memory,
  type MemoryOptions,
  openMemory,
  profiles,
  ramStore,
} from '../../src/index.ts'
import { isCampaign, seed } from '../context/campaign.ts'
import { replyWith, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { assistant, startServer, user } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'

const fresh = createTempPaths()
const day = 24 * 3_600_000
const start = Date.UTC(2026, 2, 2, 9)
let now = start

/** Opens a memory on a file and resets the clock. */
function open(options: MemoryOptions = {}): Promise<Memory> {
  now = start
  return openMemory({ store: 'ram:', clock: () => now, ...options })
}

const hours: KnowledgeInput = { category: 'domain', key: 'opening hours', value: 'nine to five' }
const learned: KnowledgeInput = { ...hours, origin: 'learned' }

const confidences = async (memory: Memory, scope = 'acme'): Promise<number[]> =>
  (await memory.upkeep.knowledge(scope)).map(({ confidence }) => confidence)

describe('knowledge', () => {
  verifies('A-02', 'is stored once per scope, category and key, also after reopening the file', async () => {
    const store = `sqlite:${fresh()}`
    const first = await open({ store })
    for (const scope of ['acme', 'other'])
      for (const category of knowledgeCategories)
        for (const key of ['opening hours', 'Opening hours'])
          for (const value of ['nine to five', `${scope} ${category} ${key}`])
            await first.remember(scope, { category, key, value })
    await first.close()
    await using memory = await open({ store })
    for (const scope of ['acme', 'other']) {
      const known = await memory.upkeep.knowledge(scope)
      const expected = knowledgeCategories.flatMap((category) =>
        ['opening hours', 'Opening hours'].map((key) => `${scope} ${category} ${key}`),
      )
      expect(known.map(({ value }) => value).sort()).toEqual(expected.sort())
      expect(new Set(known.map(({ confidence }) => confidence))).toEqual(new Set([0.6]))
      expect(new Set(known.map(({ id }) => id)).size).toBe(10)
    }
  })

  verifies('A-02', 'with an unknown category › is refused; there are five', async () => {
    await using memory = await open()
    expect(knowledgeCategories).toEqual([
      'domain',
      'execution_pattern',
      'user_preference',
      'website_knowledge',
      'error_pattern',
    ])
    const wrong = { ...hours, category: 'gossip' } as unknown as KnowledgeInput
    await expect(memory.remember('acme', wrong)).rejects.toMatchObject({ code: 'bad-option', param: 'category' })
    expect(await confidences(memory)).toEqual([])
  })

  verifies('A-02', 'stated concurrently by many sessions › is stored once', async () => {
    await using memory = await open()
    await Promise.all(
      Array.from({ length: 20 }, (_, at) => memory.remember('acme', { ...hours, session: `s${at % 4}` })),
    )
    // 0.5, plus 0.1 for each of the three other sessions.
    expect(await confidences(memory)).toEqual([0.8])
  })
})

describe('knowledge confidence', () => {
  verifies('A-03', 'starts at 0.5 or the given value and grows by 0.1 per statement up to 1', async () => {
    await using memory = await open()
    const statements: number[] = []
    for (let time = 0; time < 8; time++) statements.push((await memory.remember('acme', hours)).confidence)
    expect(statements).toEqual([0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1])
    expect((await memory.remember('acme', { ...hours, key: 'address', confidence: 0.9 })).confidence).toBe(0.9)
  })

  verifies('A-03', 'grows once per session, however often it repeats the statement', async () => {
    await using memory = await open()
    for (let time = 0; time < 100; time++) await memory.remember('acme', { ...hours, session: 'loop' })
    expect(await confidences(memory)).toEqual([0.5])
    for (let time = 0; time < 100; time++) await memory.remember('acme', { ...hours, session: 'other' })
    expect(await confidences(memory)).toEqual([0.6])
  })

  verifies(
    'A-03',
    'grows by 0.05 on the first reply of a session to a context that showed it, and on nothing else',
    async () => {
      await using memory = await open()
      const { id } = await memory.remember('acme', hours)
      await memory.remember('acme', { ...hours, key: 'secret recipe', value: 'salt', by: 'assistant' })
      for (const [session, expected] of [
        ['ann', 0.55],
        ['bob', 0.6],
        ['ann', 0.6],
      ] as const) {
        const key = `acme:${session}`
        await memory.append(key, [user('When do you open?')])
        const before = await confidences(memory)
        const { ledger } = await memory.context(key)
        expect(ledger.knowledge).toEqual([id])
        // Neither showing it nor replying to something else counts as a use.
        expect(await confidences(memory)).toEqual(before)
        await memory.append(key, [assistant('One moment.')])
        expect(await confidences(memory)).toEqual(before)
        await memory.append(key, [assistant('At nine.')], { answers: ledger })
        await memory.append(key, [assistant('At nine, as I said.')], { answers: ledger })
        expect(await confidences(memory)).toEqual([expected, 0.5])
      }
    },
  )

  verifies('A-03', 'grows by 0.05 on a model reply through the server, once per session', async () => {
    await using upstream = await startUpstream(replyWith('At nine.'))
    for (const profile of ['thread', 'support', 'agent'] as const) {
      now = start
      await using server = await startServer({
        upstream: upstream.url,
        memory: { profile, store: 'ram:', clock: () => now },
      })
      await server.memory.remember('acme', hours)
      for (const session of ['ann', 'ann', 'bob', 'ann'])
        await server
          .client(`acme:${session}`)
          .chat.completions.create({ model: 'any', messages: [user('When do you open?')] })
      expect([profile, await confidences(server.memory)]).toEqual([profile, [0.6]])
    }
  })

  verifies('A-03', 'loses 0.1 per 30 days without use, and the entry is archived below 0.1', async () => {
    await using memory = await open()
    const { id } = await memory.remember('acme', learned)
    const left: number[][] = []
    for (const days of [29, 30, 59, 60, 90, 120, 149, 150]) {
      now = start + days * day
      await memory.sweep(now)
      left.push(await confidences(memory))
    }
    expect(left).toEqual([[0.5], [0.4], [0.4], [0.3], [0.2], [0.1], [0.1], []])
    await memory.append('acme:ann', [user('When do you open?')])
    const { text, ledger } = await memory.context('acme:ann')
    expect(text).toBe('User: When do you open?')
    expect(ledger.lines.filter(({ entries }) => entries?.[0] === id)).toMatchObject([
      { verdict: 'dropped', why: 'archived after a long time without use', from: 'scope' },
    ])
    expect(await memory.search('acme', 'opening hours', { kinds: ['knowledge'] })).toEqual([])
  })

  verifies('A-03', 'does not depend on the sweep interval, nor on reopening the file', async () => {
    const sweepInterval = fc.array(fc.integer({ min: 1, max: 40 * 24 }), { minLength: 1, maxLength: 12 })
    const check = async (steps: readonly number[]): Promise<void> => {
      const store = `sqlite:${fresh()}`
      let memory = await open({ store })
      await memory.remember('acme', { ...learned, confidence: 0.9 })
      for (const [place, step] of steps.entries()) {
        now += (step * day) / 24
        await memory.sweep(now)
        const idle = Math.floor((now - start) / (30 * day))
        const expected = (90 - 10 * idle) / 100
        expect(await confidences(memory)).toEqual(expected < 0.1 ? [] : [expected])
        if (place % 4 !== 3) continue
        await memory.close()
        const before = now
        memory = await open({ store })
        now = before
      }
      await memory.close()
    }
    await fc.assert(fc.asyncProperty(sweepInterval, check), { seed, numRuns: isCampaign ? 1_000 : 12 })
  })

  verifies('A-03', 'starts to decay 30 days after the last use, not after the statement', async () => {
    await using memory = await open()
    await memory.remember('acme', learned)
    now = start + 20 * day
    await memory.append('acme:ann', [user('When do you open?')])
    const { ledger } = await memory.context('acme:ann')
    await memory.append('acme:ann', [assistant('At nine.')], { answers: ledger })
    const left: number[][] = []
    for (const days of [30, 49, 50]) {
      now = start + days * day
      await memory.sweep(now)
      left.push(await confidences(memory))
    }
    expect(left).toEqual([[0.55], [0.55], [0.45]])
  })
})

describe('permission to add knowledge', () => {
  verifies('A-02', 'follows the profile: users may, assistants may, must ask or may not, tools may not', async () => {
    const learnt: Record<string, string[]> = {}
    for (const name of ['thread', 'support', 'agent'] as const) {
      await using memory = await open({ profile: name })
      learnt[name] = await Promise.all(
        (['user', 'assistant', 'tool'] as const).map((by) =>
          memory.remember('acme', { ...hours, key: by, by }).then(
            ({ pending }) => (pending === true ? 'waits' : 'kept'),
            ({ code, param }) => `${code} ${param}`,
          ),
        ),
      )
    }
    expect(learnt).toEqual({
      thread: ['kept', 'waits', 'bad-option by'],
      support: ['kept', 'waits', 'bad-option by'],
      agent: ['kept', 'kept', 'bad-option by'],
    })
    const strict = { ...profiles.thread, knowledgePolicy: { user: 'ask', assistant: 'no', tool: 'no' } } as const
    await using memory = await open({ profile: strict })
    expect(await memory.remember('acme', hours)).toMatchObject({ pending: true })
    await expect(memory.remember('acme', { ...hours, by: 'assistant' })).rejects.toMatchObject({
      code: 'bad-option',
      param: 'by',
    })
  })

  verifies(
    'A-02',
    'when approval is required › pending knowledge is hidden until approved, and forgetting rejects it',
    async () => {
      const store = `sqlite:${fresh()}`
      const first = await open({ store })
      const waiting = await first.remember('acme', { ...hours, by: 'assistant', session: 'ann' })
      const other = await first.remember('acme', {
        ...hours,
        key: 'address',
        value: '1 Harbour Road',
        by: 'assistant',
        session: 'ann',
      })
      await first.append('acme:bob', [user('When do you open?')])
      const shown = async (memory: Memory): Promise<boolean> =>
        (await memory.context('acme:bob')).text.includes('nine to five')
      expect([waiting.pending, await shown(first)]).toEqual([true, false])
      expect(
        (await first.context('acme:bob')).ledger.lines.flatMap(({ why, entries }) =>
          why === 'waiting for approval' ? [entries] : [],
        ),
      ).toEqual([[waiting.id, other.id]])
      // A repeated statement by the assistant stays pending.
      expect((await first.remember('acme', { ...hours, by: 'assistant', session: 'bob' })).pending).toBe(true)
      await first.close()

      await using memory = await open({ store })
      expect(await memory.upkeep.approve('acme', waiting.id)).not.toHaveProperty('pending')
      expect(await shown(memory)).toBe(true)
      await memory.forget({ key: 'acme', messageId: other.id })
      expect((await memory.upkeep.knowledge('acme')).map(({ id }) => id)).toEqual([waiting.id])
      await expect(memory.upkeep.approve('acme', other.id)).rejects.toMatchObject({ code: 'bad-option', param: 'id' })
    },
  )

  verifies(
    ['A-02', 'X-09'],
    'when approval is required › an assistant neither changes nor strengthens what a user stated',
    async () => {
      await using memory = await open()
      const statement = await memory.remember('acme', hours)
      for (let time = 0; time < 10; time++)
        await memory.remember('acme', { ...hours, value: 'never', by: 'assistant', confidence: 1, session: `s${time}` })
      expect(await memory.upkeep.knowledge('acme')).toEqual([statement])
      // A user's statement approves the pending one.
      await memory.remember('acme', { ...hours, key: 'address', value: 'claimed', by: 'assistant' })
      expect(await memory.remember('acme', { ...hours, key: 'address', value: '1 Harbour Road' })).toMatchObject({
        value: '1 Harbour Road',
      })
      await memory.append('acme:ann', [user('What is your address?')])
      expect((await memory.context('acme:ann')).text).toContain('address: 1 Harbour Road')
    },
  )
})

const key = 'acme:ann'

describe('knowledge that cannot be written or is not approved', () => {
  verifies('A-03', 'when counting a use fails › the reply is still stored', async () => {
    const ram = ramStore()
    const disk = { isFull: false }
    const store: typeof ram = {
      ...ram,
      commit: async (change) =>
        disk.isFull && change.key.id === '' ? Promise.reject(new Error('full')) : ram.commit(change),
    }
    await using memory = await openMemory({ store, clock: () => start })
    await memory.remember('acme', { category: 'domain', key: 'vat', value: '19 %' })
    await memory.append(key, [user('How much is the VAT?')])
    const { ledger } = await memory.context(key)
    disk.isFull = true
    const [stored] = await memory.append(key, [assistant('Hi.')], { answers: ledger })
    expect([ledger.knowledge.length, stored?.id, (await memory.transcript(key)).map(({ content }) => content)]).toEqual(
      [1, 'm2', ['How much is the VAT?', 'Hi.']],
    )
  })

  verifies('X-09', 'claimed by a model › is not found by search until it is approved', async () => {
    await using memory = await openMemory({ store: 'ram:', clock: () => start })
    const { id, pending } = await memory.remember('acme', {
      category: 'domain',
      key: 'vat',
      value: 'claimed by a model',
      by: 'assistant',
    })
    const found = async (): Promise<string[]> =>
      (await memory.search('acme', 'vat claimed')).map(({ entry }) => entry.id)
    expect([pending, await found()]).toEqual([true, []])
    await memory.upkeep.approve('acme', id)
    expect(await found()).toEqual([id])
  })
})
