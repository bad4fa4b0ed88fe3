import { describe, expect, it, vi } from 'vitest'
import type { Knowledge } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { runSync } from '../../src/domain/work.ts'
import { openMemory } from '../../src/index.ts'
import { ScopeIndex } from '../../src/search/scopeIndex.ts'
import { textAnalysis } from '../../src/stores/textAnalysis.ts'
import { verifies } from '../requirements/verifies.ts'

const key = 'acme:ann'
const user = (content: string, at = 0) => ({ role: 'user' as const, content, at })
const assistant = (content: string, at = 0) => ({ role: 'assistant' as const, content, at })
const fillers = (count: number) =>
  Array.from({ length: count }, (_, at) => user(`On day ${at} the weather was grey and nothing happened at work.`, at))
const longAnswer = (middle: string) =>
  [
    ...Array.from({ length: 12 }, (_, at) => `Step ${at}: compare the offers of several providers before you decide.`),
    middle,
    ...Array.from({ length: 12 }, (_, at) => `Hint ${at}: write every promise down and keep the letters in one place.`),
  ].join('\n\n')

const openWith = async (messages: readonly ReturnType<typeof user | typeof assistant>[]) => {
  const memory = await openMemory({ upkeep: false })
  await memory.append(key, messages)
  return memory
}

describe('recall', () => {
  verifies('K-06', 'of a long message › shows the passage that matters, not the whole message', async () => {
    const answer = longAnswer('The landlord Mr Okafor must repair the boiler within fourteen days.')
    await using memory = await openWith([...fillers(80), assistant(answer), ...fillers(80)])
    const { text, ledger } = await memory.context(key, { query: 'When must the boiler be repaired?', budget: 600 })
    expect(text).toContain('The landlord Mr Okafor must repair the boiler within fourteen days.')
    expect(text).not.toContain('Step 0:')
    const line = ledger.lines.find(({ entries }) => entries?.[0] === 'm81')
    expect([line?.verdict, line?.why]).toEqual(['shortened', 'relevant to the question; the passages that matter most'])
  })

  verifies(
    'K-06',
    'several passages of a message › joins them in their order, with a mark where text is left out',
    async () => {
      const parts = ['The boiler was built in 1987.', 'The boiler is serviced by Kessler.']
      const answer = `${longAnswer(parts[0] as string)}\n\n${longAnswer(parts[1] as string)}`
      await using memory = await openWith([...fillers(40), assistant(answer), ...fillers(40)])
      const { text } = await memory.context(key, { query: 'What about the boiler?', budget: 1_200 })
      const line = text.split('\n').findIndex((each) => each.startsWith('Assistant: …'))
      expect(line).toBeGreaterThan(0)
      expect(parts.map((part) => text.indexOf(part) > 0)).toEqual([true, true])
      expect(text.indexOf(parts[0] as string)).toBeLessThan(text.indexOf(parts[1] as string))
      expect(text.split('Assistant: ')).toHaveLength(2)
    },
  )

  verifies('K-06', 'a stored question › never ranks above the statement that answers it', async () => {
    await using memory = await openWith([
      user('What is my cat called?'),
      assistant('I do not know yet.'),
      user('My cat is called Miso.'),
      user('What is my cat called?'),
      user('What is my cat called?'),
    ])
    const found = await memory.search('acme', 'What is my cat called?', { limit: 3 })
    expect(found[0]?.entry).toMatchObject({ content: 'My cat is called Miso.' })
  })

  verifies('K-06', 'texts that say the same › returns one of them', async () => {
    await using memory = await openWith([
      user('My cat is called Miso.'),
      user('my cat is called Miso'),
      user('My cat is called Miso!'),
    ])
    expect(await memory.search('acme', 'cat')).toHaveLength(1)
  })

  it('words of related meaning › finds a message without a common word', async () => {
    await using memory = await openWith([...fillers(60), user('Our children start school in August.'), ...fillers(60)])
    const [best] = await memory.search('acme', 'kids', { limit: 1 })
    expect(best?.entry).toMatchObject({ content: 'Our children start school in August.' })
    expect(await memory.search('acme', 'zzyzx')).toEqual([])
  })

  it('a question about the present › prefers the later of two messages', async () => {
    await using memory = await openWith([
      user('The deadline of the report is 14 March.', 0),
      ...fillers(30),
      user('The deadline of the report is 21 March.', 40 * 86_400_000),
    ])
    const latest = await memory.search('acme', 'What is the current deadline of the report?', { limit: 1 })
    expect(latest[0]?.entry).toMatchObject({ content: 'The deadline of the report is 21 March.' })
  })

  it('a question in two parts › shows the answers to both', async () => {
    await using memory = await openWith([
      ...fillers(90),
      user('Grandma keeps the spare key under the blue flowerpot.'),
      ...fillers(90),
      user('The plumber charged four hundred francs for the sink.'),
      ...fillers(90),
    ])
    const { text } = await memory.context(key, {
      query: 'Where is the spare key of grandma and how much did the plumber charge?',
      budget: 500,
    })
    expect([text.includes('flowerpot'), text.includes('four hundred francs')]).toEqual([true, true])
  })
})

describe('a search of derived entries', () => {
  it('after some were removed › gives the same scores as if they had never been there', async () => {
    const index = new ScopeIndex(textAnalysis)
    const other = new ScopeIndex(textAnalysis)
    const where = parseKey('acme:ann')
    const knowledge = (id: string, value: string): Knowledge => ({
      ...{ kind: 'knowledge', id, at: 0, category: 'domain', key: id, value, confidence: 1, usedAt: 0, sources: [] },
    })
    const kept = [knowledge('k1', 'refunds take nine days'), knowledge('k2', 'the office is closed on Friday')]
    index.setDerived(where, [...kept, knowledge('k3', 'refunds need a receipt'), knowledge('k4', 'refunds in cash')])
    index.search({ text: 'refunds', limit: 9 })
    index.setDerived(where, kept)
    other.setDerived(where, kept)
    expect(index.search({ text: 'refunds', limit: 9 })).toEqual(other.search({ text: 'refunds', limit: 9 }))
  })
})

describe('a session in another language', () => {
  const german = [
    'Ich habe gestern mit meiner Schwester über den Umzug nach Leipzig gesprochen.',
    'Der Arzt hat mir neue Tabletten gegen den Heuschnupfen verschrieben.',
    'Wir feiern den Geburtstag meiner Mutter am Wochenende im Garten.',
    'Die alten Häuser am Fluss werden im Herbst verkauft.',
  ]

  it('is searched with its own word forms, beside English sessions of the scope', async () => {
    await using memory = await openMemory({ upkeep: false })
    await memory.append(
      'acme:de',
      german.map((content) => user(content)),
    )
    await memory.append('acme:en', [user('The houses by the lake were painted by my uncle.'), ...fillers(9)])
    const best = async (query: string) => (await memory.search('acme', query, { limit: 1 }))[0]?.entry
    expect(await best('Welches Haus wird verkauft?')).toMatchObject({ content: german[3] })
    expect(await best('Wer verschreibt Tabletten?')).toMatchObject({ content: german[1] })
    expect(await best('Who painted a house?')).toMatchObject({
      content: 'The houses by the lake were painted by my uncle.',
    })
  })

  it('whose first messages do not tell › is indexed again once they do', async () => {
    await using memory = await openMemory({ upkeep: false })
    await memory.append('acme:de', [user('Hallo!')])
    await memory.search('acme', 'Hallo')
    await memory.append(
      'acme:de',
      german.map((content) => user(content)),
    )
    expect((await memory.search('acme', 'Welches Haus wird verkauft?', { limit: 1 }))[0]?.entry).toMatchObject({
      content: german[3],
    })
  })
})

describe('a work session', () => {
  const change = (at: number) =>
    assistant(
      `I changed \`src/billing/invoice${at}.ts\`:\n\`\`\`diff\n- const total = sumLines(order${at})\n+ const total = sumLines(order${at}, { vat: 0.${at + 10} })\n\`\`\`\nThe helper formatCents${at} stays in src/billing/format.ts.`,
    )

  it('at a small budget › shows lines of old messages that name files, and the newest text', async () => {
    const turns = Array.from({ length: 40 }, (_, at) => [
      user(`Now fix src/billing/invoice${at}.ts`),
      change(at),
    ]).flat()
    await using memory = await openWith(turns)
    const { text, ledger } = await memory.context(key, { query: 'Rename formatCents3 everywhere', budget: 1_000 })
    expect(text).toContain('formatCents3 stays in src/billing/format.ts')
    expect(text).toContain('invoice39.ts')
    expect(ledger.lines.some(({ why }) => why.startsWith('names what the work is about'))).toBe(true)
    expect(ledger.spent).toBeLessThanOrEqual(1_000)
  })

  it('asked about the past › is recalled by the question', async () => {
    const turns = Array.from({ length: 40 }, (_, at) => [
      user(`Now fix src/billing/invoice${at}.ts`),
      change(at),
    ]).flat()
    await using memory = await openWith([user('The client is called Bergström AB.'), ...turns])
    const { text, ledger } = await memory.context(key, {
      query: 'What was the client called, did I mention it?',
      budget: 800,
    })
    expect(text).toContain('Bergström AB')
    expect(ledger.lines.some(({ why }) => why.startsWith('names what the work is about'))).toBe(false)
  })
})

verifies('R-03', 'an index of terms that no word table has › is restored in steps', () => {
  const table = textAnalysis.wordTable?.()
  if (table === undefined) expect.fail('There is no word table.')
  const analysis = { ...textAnalysis, wordTable: () => table }
  const terms = Array.from({ length: 90_000 }, (_, at) => `${String.fromCharCode(97 + (at % 26))}qx${at}zv`)
  const index = new ScopeIndex(analysis)
  const message = { sequence: 1, at: 1, role: 'user', lineTokens: 1, content: terms.join(' ') } as const
  index.addMessages(parseKey(key), [message])
  const snapshot = runSync(index.snapshotInSteps())
  const lookUp = vi.spyOn(table, 'rowOf')
  let longest = 0
  for (const _ of new ScopeIndex(analysis).restore(snapshot)) {
    longest = Math.max(longest, lookUp.mock.calls.length)
    lookUp.mockClear()
  }
  longest = Math.max(longest, lookUp.mock.calls.length)
  lookUp.mockRestore()
  expect([longest > 1_000, longest <= 4_096]).toEqual([true, true])
})
