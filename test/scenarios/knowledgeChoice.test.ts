import { describe, expect } from 'vitest'
import type { Knowledge } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import type { LedgerLine } from '../../src/domain/ledger.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { type Memory, type MemoryOptions, openMemory, profiles } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { replyWith, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { assistant, startServer, user } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { policyQuestions } from './policyQuestions.ts'

const fresh = createTempPaths()
const profileNames = ['thread', 'support', 'agent'] as const
const farewell = 'Thank you, bye!'
const day = 24 * 3_600_000
const start = Date.UTC(2026, 2, 2, 9)

/** Opens a memory that knows all policies. */
async function openWithPolicies(profile: (typeof profileNames)[number], options: MemoryOptions = {}): Promise<Memory> {
  const memory = await openMemory({ profile, store: 'ram:', clock: () => start, ...options })
  for (const { key, value } of policyQuestions) await memory.remember('acme', { category: 'domain', key, value })
  return memory
}

/** Keys of the policies that a text contains. */
const findPolicies = (text: string): readonly string[] =>
  policyQuestions.flatMap(({ key, value }) => (text.includes(value) ? [key] : []))

async function askNew(memory: Memory, session: string, ...turns: readonly string[]): Promise<readonly string[]> {
  for (const [at, turn] of turns.entries())
    await memory.append(`acme:${session}`, at === 0 ? [user(turn)] : [assistant('One moment.'), user(turn)])
  return findPolicies((await memory.context(`acme:${session}`)).text)
}

/** Checks the policies shown for each question: nearly always the right one, and few others. */
function checkShown(shown: readonly (readonly string[])[]): void {
  const missed = policyQuestions.filter(({ key }, at) => !shown[at]?.includes(key)).map(({ key }) => key)
  expect(missed.length, `not shown: ${missed}`).toBeLessThanOrEqual(1)
  expect(shown.flat().length / shown.length).toBeLessThanOrEqual(5)
}

describe('knowledge of a tenant with 25 policies', () => {
  for (const profile of profileNames) {
    verifies('K-01', `in ${profile} › is shown to a question about it, and none to a farewell`, async () => {
      await using memory = await openWithPolicies(profile)
      const shown: (readonly string[])[] = []
      for (const [at, { question }] of policyQuestions.entries()) shown.push(await askNew(memory, `s${at}`, question))
      checkShown(shown)
      expect(await askNew(memory, 'bye', 'When do I get my refund?', farewell)).toEqual([])
    })

    verifies(
      'K-01',
      `in ${profile} over HTTP › is sent with a question about it, and none with a farewell`,
      async () => {
        await using upstream = await startUpstream(replyWith('Certainly.'))
        await using server = await startServer({
          upstream: upstream.url,
          memory: { profile, store: 'ram:' },
        })
        for (const { key, value } of policyQuestions)
          await server.requestJson('POST /api/scopes/acme/knowledge', { category: 'domain', key, value })
        const send = async (session: string, ...turns: readonly string[]): Promise<readonly string[]> => {
          const messages = turns.flatMap((turn, at) =>
            at === 0 ? [user(turn)] : [assistant('Certainly.'), user(turn)],
          )
          await server.client(`acme:${session}`).chat.completions.create({ model: 'any', messages })
          return findPolicies(JSON.stringify(upstream.requests.at(-1)?.body))
        }
        const shown: (readonly string[])[] = []
        for (const [at, { question }] of policyQuestions.entries()) shown.push(await send(`s${at}`, question))
        checkShown(shown)
        // The client resends its conversation.
        await send('bye', 'When do I get my refund?')
        expect(await send('bye', 'When do I get my refund?', farewell)).toEqual([])
      },
    )
  }

  verifies('K-01', 'acknowledgements, greetings and other subjects › are shown nothing', async () => {
    await using memory = await openWithPolicies('support')
    const turns = [
      'Hello.',
      'Good morning!',
      'ok great, that works',
      'Thanks a lot for your help, have a nice day',
      'Can you help me please?',
      'What is the weather like in Paris today?',
      'Merci, au revoir !',
      'Quelle est la capitale du Pérou ?',
      '???',
    ]
    const shown = await Promise.all(turns.map(async (turn, at) => [turn, await askNew(memory, `s${at}`, turn)]))
    expect(shown).toEqual(turns.map((turn) => [turn, []]))
  })

  verifies('K-01', 'not shown › has a true reason in the ledger', async () => {
    await using memory = await openWithPolicies('support')
    await memory.append('acme:ann', [user('Can I pay with PayPal?')])
    const { ledger } = await memory.context('acme:ann')
    const reasons = (lines: readonly LedgerLine[]) =>
      new Set(lines.flatMap(({ verdict, why }) => (verdict === 'dropped' ? [why] : [])))
    expect(reasons(ledger.lines)).toEqual(
      new Set(['not relevant to the question', 'less relevant to the question than the entries shown']),
    )
    await memory.append('acme:bob', [user(farewell)])
    const { lines } = (await memory.context('acme:bob')).ledger
    expect(lines.filter(({ from }) => from === 'scope')).toMatchObject([
      { count: 25, verdict: 'dropped', why: 'not relevant to the question' },
    ])
  })

  verifies('K-01', 'a short turn that refers to an earlier one › is shown what that asked for', async () => {
    await using memory = await openWithPolicies('thread')
    const [cards, valid] = ['Do you have gift cards?', 'And how long are they valid?']
    const [warranty, duration] = ['Is there a warranty on the blender?', 'And how long is it?']
    expect(await askNew(memory, 'one', cards, valid)).toContain('gift cards')
    expect(await askNew(memory, 'two', warranty, duration)).toContain('warranty')
    expect(await askNew(memory, 'three', warranty, duration, 'Tell me more.')).toContain('warranty')
    expect(await askNew(memory, 'four', duration)).not.toContain('warranty')
    expect(await askNew(memory, 'five', warranty, duration, farewell)).toEqual([])
  })

  verifies('K-01', 'with an embedder › is also shown to a question in another language', async () => {
    const topics = ['warrant', 'refund', 'track']
    const translations: Readonly<Record<string, string>> = {
      garantie: 'warrant',
      remboursement: 'refund',
      colis: 'track',
    }
    const embed = (text: string): Float32Array => {
      const english = text.toLowerCase().replace(/[a-z]+/g, (word) => translations[word] ?? word)
      return Float32Array.from([1, ...topics.map((topic) => (english.includes(topic) ? 2 : 0))])
    }
    const embedder = { name: 'topics', embed: async (texts: readonly string[]) => texts.map(embed) }
    await using memory = await openWithPolicies('support', { embedder })
    await memory.embeddingProgress({ settled: true })
    expect(await askNew(memory, 'one', 'Quelle est la garantie ?')).toEqual(['warranty'])
    expect(await askNew(memory, 'two', 'Quand vient le remboursement ?')).toEqual(['refunds'])
    expect(await askNew(memory, 'three', 'Quelle est la capitale du Pérou ?')).toEqual([])
  })

  verifies('K-01', 'without a question › is shown by confidence', async () => {
    await using memory = await openWithPolicies('thread')
    await memory.remember('acme', { category: 'domain', key: 'motto', value: 'Always kind.', confidence: 1 })
    await memory.append('acme:ann', [assistant('Welcome.')])
    const { ledger, text } = await memory.context('acme:ann')
    expect(ledger.knowledge).toHaveLength(8)
    expect(text).toContain('Known from other sessions:\ndomain, motto: Always kind.\n')
  })

  verifies(['K-01', 'X-02'], 'replayed from a trace › is chosen as it was', async () => {
    await using memory = await openWithPolicies('support')
    await memory.append('acme:ann', [user('Can I pay with PayPal?')])
    const trace = JSON.parse(JSON.stringify(await memory.trace('acme:ann')))
    const { messages, text, ledger } = memory.replay(trace, profiles.support)
    expect({ messages, text, ledger }).toEqual(await memory.context('acme:ann'))
    expect(findPolicies(text)).toContain('payment methods')
  })

  verifies(['K-01', 'X-11'], 'of another question › leaves the prompt before the newest turn unchanged', async () => {
    for (const profile of ['support', 'agent'] as const) {
      await using memory = await openWithPolicies(profile)
      await memory.append('acme:ann', [user('Can I pay with PayPal?')])
      const first = await memory.context('acme:ann')
      expect(first.messages.at(-2)?.content).toContain('We accept Visa')
      await memory.append('acme:ann', [assistant('Yes.'), user('Do you ship to Canada?')])
      const { messages } = await memory.context('acme:ann')
      expect(messages.slice(0, 2)).toEqual([user('Can I pay with PayPal?'), assistant('Yes.')])
      expect(messages.at(-2)?.content).toContain('We ship to all countries')
    }
  })
})

describe('knowledge after 400 days', () => {
  verifies('K-01', "the operator's is there; what was learned is archived, listed and can come back", async () => {
    for (const profile of profileNames) {
      let now = start
      const store = `sqlite:${fresh()}`
      await using memory = await openMemory({ profile, store, clock: () => now })
      for (const { key, value } of policyQuestions) await memory.remember('acme', { category: 'domain', key, value })
      const heard = { category: 'domain', key: 'parking', value: 'Parking is behind the house.' } as const
      const { id } = await memory.remember('acme', { ...heard, session: 'ann' })
      await memory.remember('acme', {
        ...heard,
        key: 'lift',
        value: 'The lift is slow.',
        by: 'assistant',
        session: 'ann',
      })
      // Tenants behind `support` are aged by the profile of the tenant.
      await using tenant = await openMemory({
        profile: profile === 'agent' ? 'agent' : 'thread',
        store,
        clock: () => now,
      })
      for (; now <= start + 400 * day; now += 5 * day) await tenant.sweep(now)
      const keysOf = async (options = {}) => (await memory.upkeep.knowledge('acme', options)).map(({ key }) => key)
      const operators = policyQuestions.map(({ key }) => key)
      expect(await keysOf()).toEqual(operators)
      expect(await keysOf({ archived: true })).toEqual([...operators, 'parking', 'lift'])
      const found = async () =>
        (await memory.search('acme', 'parking', { kinds: ['knowledge'] })).map(({ entry }) => entry.id)
      expect(await found()).toEqual([])
      const askForParking = async (session: string) => {
        await memory.append(`acme:${session}`, [user('Is there parking at the house?')])
        return (await memory.context(`acme:${session}`)).text.includes(heard.value)
      }
      expect(await askForParking('s1')).toBe(false)
      expect(await memory.upkeep.restore('acme', id)).toMatchObject({ confidence: 0.5, usedAt: now })
      expect(await askForParking('s2')).toBe(true)
      expect(await found()).toEqual([id])
    }
  })

  verifies('K-01', 'archived › comes back when it is stated again, and is forgotten like any other', async () => {
    let now = start
    await using memory = await openMemory({ store: 'ram:', clock: () => now })
    const parking = { category: 'domain', key: 'parking', value: 'Behind the house.', session: 'ann' } as const
    for (const key of ['parking', 'garage', 'yard']) await memory.remember('acme', { ...parking, key })
    now += 400 * day
    await memory.sweep(now)
    const list = async (options = {}) =>
      (await memory.upkeep.knowledge('acme', options)).map(({ key, confidence }) => `${key} ${confidence}`)
    expect(await list()).toEqual([])
    expect(await memory.remember('acme', { ...parking, session: 'bob' })).not.toHaveProperty('archived')
    expect(await list()).toEqual(['parking 0.5'])
    expect(await list({ archived: true })).toEqual(['parking 0.5', 'garage 0', 'yard 0'])
    const garage = (await memory.upkeep.knowledge('acme', { archived: true })).find(({ key }) => key === 'garage')
    await memory.forget({ key: 'acme', messageId: garage?.id ?? '' })
    expect(await list({ archived: true })).toEqual(['parking 0.5', 'yard 0'])
    await memory.forget({ key: 'acme:ann' })
    expect(await list({ archived: true })).toEqual(['parking 0.5'])
  })
})

describe('knowledge of an earlier version, without an origin', () => {
  verifies('K-01', 'is learned if a session stated it, and otherwise the operator’s', async () => {
    const file = fresh()
    const store = sqliteStore(file)
    const entries = [[], [''], ['', 'ann'], ['ann']].map((sessions, at): Knowledge => {
      const sources = sessions.map((session) => ({ message: '', session }))
      const [category, confidence] = ['domain', 0.5]
      return {
        kind: 'knowledge',
        id: `k${at}`,
        at: start,
        category,
        key: `k${at}`,
        value: at,
        confidence,
        usedAt: start,
        sources,
      }
    })
    const change = {
      key: parseKey('acme'),
      at: start,
      epoch: 0,
      append: [],
      put: entries,
      drop: [],
      expiresAt: noExpiry,
    }
    await store.commit(change)
    await store.close()
    await using memory = await openMemory({ store: `sqlite:${file}`, clock: () => start })
    await memory.sweep(start + 400 * day)
    const known = await memory.upkeep.knowledge('acme', { archived: true })
    expect(known.map(({ id, confidence, archived }) => [id, confidence, archived])).toEqual([
      ['k0', 0.5, undefined],
      ['k1', 0.5, undefined],
      ['k2', 0.5, undefined],
      ['k3', 0, true],
    ])
  })
})

describe("an operator's entry", () => {
  verifies('K-01', 'keeps its value and origin, whatever a model or a session states', async () => {
    await using memory = await openMemory({ profile: 'agent', store: 'ram:' })
    const hours = { category: 'domain', key: 'hours', value: 'nine to five' } as const
    await memory.remember('acme', hours)
    await memory.remember('acme', { ...hours, value: 'never', by: 'assistant', session: 'ann' })
    expect(await memory.remember('acme', { ...hours, session: 'ann' })).toMatchObject({
      value: 'nine to five',
      origin: 'operator',
      confidence: 0.6,
    })
  })

  verifies('K-01', 'is also what an operator states again after a session did', async () => {
    await using memory = await openMemory({ store: 'ram:' })
    const hours = { category: 'domain', key: 'hours', value: 'nine to five' } as const
    expect(await memory.remember('acme', { ...hours, session: 'ann' })).toMatchObject({ origin: 'learned' })
    expect(await memory.remember('acme', hours)).toMatchObject({ origin: 'operator' })
    const wrong = { ...hours, origin: 'rumour' as 'learned' }
    await expect(memory.remember('acme', wrong)).rejects.toMatchObject({ code: 'bad-option', param: 'origin' })
  })
})
