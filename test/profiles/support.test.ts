import { readFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import type { DerivedEntry } from '../../src/domain/entry.ts'
import { type Key, parseKey } from '../../src/domain/key.ts'
import type { Store } from '../../src/domain/ports.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { type Memory, openMemory, profiles, ramStore } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'

const fresh = createTempPaths()
const key = 'acme:ann'

/** Appends messages of a customer and an agent, in turns. */
async function appendMessages(memory: Memory, contents: readonly string[]): Promise<void> {
  for (const [index, content] of contents.entries())
    await memory.append(key, [{ role: index % 2 === 0 ? 'user' : 'assistant', content }])
}

const numbered = (count: number): string[] => Array.from({ length: count }, (_, index) => `Message ${index + 1}.`)

describe('support', () => {
  verifies('T-08', 'while nothing is summarised › shows the newest 100 messages and stores all', async () => {
    await using memory = await openMemory({ profile: 'support', upkeep: false })
    const contents = numbered(150)
    await appendMessages(memory, contents)
    const { messages, ledger } = await memory.context(key)
    const recent = ledger.lines.filter(({ band }) => band === 'recent')
    expect(messages.map(({ content }) => content)).toEqual(expect.arrayContaining(contents.slice(-100)))
    expect(recent.reduce((sum, { count }) => sum + count, 0)).toBe(100)
    expect(await memory.transcript(key)).toHaveLength(150)
  })

  verifies(
    'T-12',
    'with 10 MB in a session › evicts messages at the first byte beyond, the first one excepted',
    async () => {
      const profile = { ...profiles.support, tokenizer: 'chars-4' as const, secrets: 'keep' as const }
      await using memory = await openMemory({ profile, upkeep: false })
      const append = async (bytes: number) => memory.append(key, [{ role: 'user', content: 'x '.repeat(bytes / 2) }])
      const ids = async () => (await memory.transcript(key)).map(({ id }) => id)
      await append(2)
      for (let count = 0; count < 5; count++) await append(1_999_998)
      await append(8)
      expect(await ids()).toEqual(['m1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7'])
      await append(2)
      expect(await ids()).toEqual(['m1', 'm3', 'm4', 'm5', 'm6', 'm7', 'm8'])
    },
  )

  verifies('T-12', 'with a session more than 100 in a tenant › evicts the least recently used', async () => {
    let now = 0
    await using memory = await openMemory({ profile: 'support', upkeep: false, clock: () => now })
    for (; now < 100; now++) await memory.append(`acme:user${now}`, [{ role: 'user', content: 'Hello.' }])
    expect(await memory.transcript('acme:user0')).toHaveLength(1)
    await memory.append('acme:new', [{ role: 'user', content: 'Hello.' }])
    const counts = await Promise.all(['user0', 'user1', 'new'].map((id) => memory.transcript(`acme:${id}`)))
    expect(counts.map(({ length }) => length)).toEqual([0, 1, 1])
  })

  verifies('T-12', 'with a session in daily use › ends it after 7 days', async () => {
    const day = 86_400_000
    let now = 0
    await using memory = await openMemory({ profile: 'support', upkeep: false, clock: () => now })
    for (; now < 7 * day; now += day / 2) await memory.append(key, [{ role: 'user', content: 'Hello.' }])
    now = 7 * day - 1
    expect((await memory.sweep()).ended).toEqual([])
    now = 7 * day + 1
    expect((await memory.sweep()).ended).toEqual([key])
  })

  verifies('T-08', 'after 1,000 messages › keeps the first and the newest of them', async () => {
    await using memory = await openMemory({ profile: 'support', upkeep: false })
    await appendMessages(memory, numbered(1_003))
    const stored = (await memory.transcript(key)).map(({ content }) => content)
    expect([stored.length, stored[0], stored[1], stored.at(-1)]).toEqual([
      1_000,
      'Message 1.',
      'Message 5.',
      'Message 1003.',
    ])
  })

  verifies(
    'T-03',
    'once a message has left the tail › shows its preferences as facts of the session, in RAM only',
    async () => {
      const file = fresh()
      const memory = await openMemory({ profile: 'support', store: `sqlite:${file}` })
      await memory.remember('acme', { category: 'domain', key: 'returns', value: 'within 30 days' })
      await appendMessages(memory, ['I prefer e-mail over phone calls.', 'Noted.', ...numbered(58)])
      await memory.append('acme:bob', [{ role: 'user', content: 'Hello' }])
      await memory.upkeep.whenIdle()
      const facts = (await memory.upkeep.facts(key)).map(({ value }) => value).join()
      const { text, messages } = await memory.context(key)
      expect(facts).toContain('e-mail')
      expect(text).toMatch(/\[KNOWN ABOUT THIS USER\][^[]*e-mail/)
      expect(messages.filter(({ role }) => role !== 'system').map(({ content }) => content)).not.toContain(
        'I prefer e-mail over phone calls.',
      )
      expect((await memory.context('acme:bob')).text).not.toContain('e-mail')
      expect((await memory.search('acme', 'e-mail', { session: '' })).map(({ key: found }) => found)).toEqual([])
      await memory.close()
      expect([readFileSync(file).includes('30 days'), readFileSync(file).includes('e-mail')]).toEqual([true, false])
    },
  )

  verifies(
    'T-13',
    'without a question › shows the knowledge of highest confidence, then the newest, at most eight',
    async () => {
      const store = ramStore()
      await using memory = await openMemory({ profile: 'support', store, upkeep: false })
      // Ids in the order in which they are shown, and the confidence and time of each.
      const expected = [
        ['d', 0.9, 1],
        ['c', 0.8, 3],
        ['a', 0.8, 2],
        ['b', 0.8, 2],
        ['e', 0.7, 9],
        ['f', 0.6, 9],
        ['g', 0.5, 9],
        ['h', 0.5, 8],
        ['i', 0.4, 9],
        ['j', 0.3, 9],
        ['k', 0.2, 9],
      ] as const
      const entries = [...expected]
        .sort(([one], [other]) => (one < other ? 1 : -1))
        .map(([id, confidence, at]) => ({
          kind: 'knowledge' as const,
          ...{
            id,
            at,
            confidence,
            usedAt: at,
            category: 'domain' as const,
            key: id,
            value: `value of ${id}`,
            sources: [],
          },
        }))
      const { epoch } = await store.readHead(parseKey('acme'), 0)
      await store.commit({
        key: parseKey('acme'),
        at: 1,
        epoch,
        append: [],
        put: entries,
        drop: [],
        expiresAt: noExpiry,
      })
      await memory.append(key, [{ role: 'user', content: 'Hello.' }])
      const shownFor = async (query: string, budget?: number) => {
        const { text } = await memory.context(key, { query, ...(budget === undefined ? {} : { budget }) })
        return Array.from(text.matchAll(/value of (\w)/g), ([, id]) => id)
      }
      const all = expected.map(([id]) => id)
      expect(await shownFor(' ')).toEqual(all.slice(0, 8))
      expect(await shownFor('What is the value of each?')).toHaveLength(8)
      // At most 30 % of the budget.
      expect(await shownFor(' ', 400)).toHaveLength(8)
      expect(await shownFor(' ', 150)).toEqual(all.slice(0, 1))
    },
  )

  /** Stores a summary of messages before the conversation, a fact of the user, and knowledge of the tenant. */
  async function storeDerived(store: Store, tokensEach: number, factTokens = 0): Promise<void> {
    const words = (word: string, tokens = tokensEach) => `${word} refunds. `.repeat(tokens / 3)
    const put = async (at: Key, entries: readonly DerivedEntry[]) => {
      const { epoch } = await store.readHead(at, 0)
      await store.commit({ key: at, at: 1, epoch, append: [], put: entries, drop: [], expiresAt: noExpiry })
    }
    const shared = { at: 1, sources: [] }
    await put(parseKey(key), [
      {
        ...shared,
        kind: 'summary',
        id: 's1',
        tier: 'hour',
        text: words('Earlier'),
        covers: [0, 0],
        endOffset: 0,
        version: 1,
        by: 'builtin',
        lossyRanges: [],
      },
      ...(factTokens === 0
        ? []
        : [
            {
              ...shared,
              ...{ kind: 'fact' as const, id: 'f1', field: 'preferences', key: 'refunds' },
              ...{ value: words('Wants', factTokens), importance: 5 },
            },
          ]),
    ])
    await put(
      parseKey('acme'),
      ['one', 'two'].map((name) => ({
        ...shared,
        kind: 'knowledge' as const,
        id: name,
        category: 'domain' as const,
        key: name,
        value: words(name),
        confidence: 0.9,
        usedAt: 1,
      })),
    )
  }

  verifies(
    'T-13',
    'in a small budget › spends it on the session first, then on its summary, then on the tenant',
    async () => {
      const budget = 1_000
      const store = ramStore()
      await using memory = await openMemory({ profile: 'support', store, upkeep: false })
      await appendMessages(
        memory,
        Array.from({ length: 41 }, (_, at) => `${at}: how long do refunds take for me here?`),
      )
      await storeDerived(store, 0.12 * budget)
      const { lines } = (await memory.context(key, { budget })).ledger
      const shown = lines.flatMap(({ entries, verdict }) =>
        entries === null ? [] : [`${entries.join('–')} ${verdict}`],
      )
      // Both entries of the tenant fit into its share of 30 %, and one into the budget that the others leave.
      expect(shown).toEqual(['m1–m40 whole', 'm41–m41 whole', 's1–s1 whole', 'one–one whole', 'two–two dropped'])
    },
  )

  verifies('T-13', 'with facts of the user › shows them beside the summary, and before older messages', async () => {
    const shownAfter = async (contents: readonly string[], budget: number) => {
      const store = ramStore()
      await using memory = await openMemory({ profile: 'support', store, upkeep: false })
      await appendMessages(memory, contents)
      await storeDerived(store, 150, 45)
      const { lines } = (await memory.context(key, { budget })).ledger
      return lines.flatMap(({ entries, verdict }) => (entries === null ? [] : [`${entries[0]} ${verdict}`]))
    }
    const question = 'Where are my refunds? '
    expect(await shownAfter([question.repeat(140)], 1_000)).toEqual(
      expect.arrayContaining(['s1 whole', 'f1 whole', 'one dropped']),
    )
    expect(await shownAfter([question.repeat(160)], 1_000)).toEqual(expect.arrayContaining(['s1 whole', 'f1 dropped']))
    const history = Array.from({ length: 181 }, (_, at) => `${at}: how long do refunds take for me here?`)
    expect(await shownAfter(history, 2_000)).toEqual(expect.arrayContaining(['m1 dropped', 'f1 whole']))
  })
})
