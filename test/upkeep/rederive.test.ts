import { describe, expect } from 'vitest'
import type { DerivedEntry, Fact, Knowledge, Message, Summary } from '../../src/domain/entry.ts'
import { type Payload, packPayload } from '../../src/domain/payload.ts'
import type { Profile } from '../../src/domain/profile.ts'
import { runSync } from '../../src/domain/work.ts'
import { profiles } from '../../src/profiles/index.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { containsText, findAffected, rederive } from '../../src/upkeep/rederive.ts'
import { verifies } from '../requirements/verifies.ts'

const message = (sequence: number, content: string, more: Partial<Message> = {}): Message => ({
  kind: 'message',
  id: `m${sequence}`,
  sequence,
  ...{ at: sequence, offset: 0, role: 'user', content, tokenizer: 'none', weight: 1, lineTokens: 1 },
  tokens: chars4.count(content),
  ...more,
})
const summary = (covers: readonly [number, number], more: Partial<Summary> = {}): Summary => ({
  kind: 'summary',
  id: `s${covers[0]}`,
  ...{ at: 1, tier: 'progressive', text: 'Old text.', covers, endOffset: 9, version: 1, by: 'gpt', sources: [] },
  lossyRanges: [],
  ...more,
})
const fact = (more: Partial<Fact> = {}): Fact => ({
  kind: 'fact',
  id: 'f1',
  ...{ at: 1, field: 'preferences', key: 'cat', value: 'Miso', importance: 5, sources: [{ message: 'm1' }] },
  ...more,
})
const ids = (entries: readonly DerivedEntry[]): readonly string[] => entries.map(({ id }) => id)

describe('findAffected', () => {
  const derived = [
    summary([1, 3]),
    summary([4, 6]),
    fact({ id: 'own', sources: [{ message: 'm9' }, { message: 'm5' }] }),
    fact({ id: 'other', sources: [{ message: 'm5', session: 'bob' }] }),
    fact({ id: 'none', sources: [] }),
  ]
  const affected = (session: string, gone: ReadonlySet<string> | 'all', by = session) =>
    ids(findAffected(derived, session, new Map([[by, gone]])))

  verifies('X-05', 'finds entries that cite a deleted message, and summaries of a range that included one', () => {
    expect(affected('ann', new Set(['m5']))).toEqual(['s4', 'own'])
    expect(affected('ann', new Set(['m4']))).toEqual(['s4'])
    expect(affected('ann', new Set(['m6']))).toEqual(['s4'])
    expect(affected('ann', new Set(['m7', 'm3']))).toEqual(['s1'])
    expect(affected('ann', new Set(['m1']))).toEqual(['s1'])
    expect(affected('ann', new Set(['m7']))).toEqual([])
    expect(affected('ann', new Set(['k1', 'x']))).toEqual([])
    expect(affected('ann', 'all')).toEqual(['s1', 's4', 'own'])
  })

  verifies('X-05', 'finds entries of other sessions only by what they cite', () => {
    expect(affected('ann', new Set(['m5']), 'bob')).toEqual(['other'])
    expect(affected('ann', 'all', 'bob')).toEqual(['other'])
    expect(affected('ann', new Set(['m9']), 'bob')).toEqual([])
    expect(affected('ann', 'all', 'eve')).toEqual([])
  })
})

describe('containsText', () => {
  const found = (entry: Message | DerivedEntry, texts: readonly string[]) =>
    texts.filter((text) => containsText(entry, text))

  verifies('X-05', 'searches the content, name, tool calls and original form of a message, in any case', () => {
    const toolCalls = [{ id: 'c1', name: 'findPet', arguments: '{"who":"Miso"}' }]
    expect(
      found(message(1, 'The Walrus', { name: 'Bo', toolCalls }), ['wALRUS', 'bo', 'miso', 'findpet']),
    ).toHaveLength(4)
    expect(found(message(1, 'The Walrus'), ['user', 'm1', 'none', 'cat'])).toEqual([])
    const items = [{ role: 'user', content: 'The Walrus', note: 'Kestrel' }]
    const packedPayload = packPayload({ protocol: 'chat', count: 1, items } as Payload, 'The Walrus')
    expect(found(message(1, 'The Walrus', { packedPayload }), ['kestrel', 'heron'])).toEqual(['kestrel'])
    expect(found(message(1, 'x', { packedPayload: 'damaged Kestrel' }), ['kestrel'])).toEqual(['kestrel'])
  })

  verifies('X-05', 'searches texts with quotes and line breaks as they were written', () => {
    const text = 'say "Hi"\nnow'
    const packedPayload = packPayload({ protocol: 'chat', count: 1, items: [{ note: text }] } as Payload, '')
    const known = { ...fact({ value: [text] }), kind: 'knowledge', category: 'domain' } as unknown as DerivedEntry
    for (const entry of [message(1, '', { packedPayload }), fact({ value: { a: [text] } }), known])
      expect(found(entry, ['"hi"\nnow', '\\n', 'a","b'])).toEqual(['"hi"\nnow'])
  })

  verifies('X-05', 'finds nothing in an entry without texts', () => {
    const about = { kind: 'about', id: 'about', at: 1, sources: [] } as DerivedEntry
    for (const entry of [message(1, ''), about]) expect(found(entry, [...'abcdefghijklmnopqrstuvwxyz '])).toEqual([])
  })

  verifies('X-05', 'searches keys and values of facts and knowledge, metadata, and the text of other entries', () => {
    expect(found(fact({ value: { name: ['Miso', 7] } }), ['cat', 'miso', 'name', '7', 'preferences', 'f1'])).toEqual([
      'cat',
      'miso',
      'name',
      '7',
    ])
    const known: Knowledge = {
      kind: 'knowledge',
      id: 'k1',
      ...{ at: 1, category: 'domain', key: 'hours', value: 'nine', confidence: 1, usedAt: 1, sources: [] },
    }
    expect(found(known, ['hours', 'NINE', 'domain', 'k1'])).toEqual(['hours', 'NINE'])
    const about = { kind: 'about' as const, id: 'about', at: 1, sources: [], metadata: { title: 'Pets' } }
    expect(found(about as DerivedEntry, ['pets', 'about'])).toEqual(['pets'])
    expect(found({ kind: 'about', id: 'about', at: 1, sources: [] } as DerivedEntry, ['about'])).toEqual([])
    expect(found(summary([1, 2], { text: 'A Walrus.' }), ['walrus', 'gpt', 's1'])).toEqual(['walrus'])
  })
})

describe('rederive', () => {
  const facts = Array.from({ length: 30 }, (_, at) =>
    message(at + 1, `My project number ${at} is called Falcon${at} and its deadline is 2026-05-${10 + (at % 20)}.`),
  )
  const rebuild = <T extends DerivedEntry>(
    entry: T,
    remaining: readonly Message[],
    profile: Profile = profiles.summary,
  ) => runSync(rederive(entry, remaining, profile, chars4)) as T | undefined
  const wordsOf = (text = ''): number => text.split(/\s+/).length

  verifies('R-03', 'reads as much of a long message as before the deletion, and counts the rest as lost', () => {
    const filler = 'The weather was fine that day. '.repeat(2_200)
    const remaining = [message(1, `${filler}My cat is called Miso.`), message(2, 'My dog is called Rex.')]
    const rebuilt = rebuild(summary([1, 3]), remaining)
    expect([rebuilt?.text.includes('Miso'), rebuilt?.lossyRanges]).toEqual([false, [[1, 1]]])
    const cat = { field: 'important_facts', key: 'cat.miso', value: 'My cat is called Miso' } as const
    expect(rebuild(fact(cat), remaining)).toBeUndefined()
    expect(rebuild(fact(cat), [message(1, 'My cat is called Miso.')])?.sources).toEqual([
      { message: 'm1', span: [0, 21] },
    ])
  })

  verifies('X-05', 'returns nothing for an entry without remaining messages, and for one it has no rules for', () => {
    expect(rebuild(summary([1, 30]), [])).toBeUndefined()
    expect(rebuild(fact(), [])).toBeUndefined()
    const item = {
      kind: 'item',
      id: 'i1',
      at: 1,
      category: 'task',
      content: 'x',
      importance: 5,
    } as unknown as DerivedEntry
    expect(rebuild(item, facts)).toBeUndefined()
  })

  verifies('X-05', 'never rebuilds a batch summary, which the application wrote', () => {
    expect(rebuild(summary([1, 30], { tier: 'batch' }), facts)).toBeUndefined()
  })

  verifies(
    'X-05',
    'rebuilds a summary from the messages only, by the built-in rules, and reports what it lacks',
    () => {
      const rebuilt = rebuild(summary([1, 30], { lossyRanges: [[99, 99]] }), facts)
      expect(rebuilt).toMatchObject({ id: 's1', covers: [1, 30], endOffset: 9, version: 1, by: 'builtin' })
      expect(rebuilt?.text).toContain('Falcon')
      expect(rebuilt?.text).not.toContain('Old text')
      expect(rebuilt?.sources.length).toBeGreaterThan(0)
      expect(rebuilt?.lossyRanges.length).toBeGreaterThan(0)
      expect(rebuilt?.lossyRanges.every(([, last]) => last <= 30)).toBe(true)
    },
  )

  verifies('X-05', 'keeps something of messages in which the rules find nothing to summarise', () => {
    for (const content of ['ok', '?', '👍'])
      expect(rebuild(summary([1, 1]), [message(1, content)])?.text).toContain(content)
  })

  verifies('X-05', 'keeps within the band that shows summaries, and an hour summary within a third of it', () => {
    const sizeWith = (profile: Profile, tier: Summary['tier'], maxTokens: number): number => {
      const bands = profile.bands.map(({ maxShare: _, ...band }) => ({ ...band, maxTokens }))
      const rebuilt = rebuild(summary([1, 30], { tier, version: 3 }), facts, { ...profile, bands })
      return chars4.count(rebuilt?.text ?? '')
    }
    // The heading and the framing take 48 tokens.
    for (const maxTokens of [148, 300]) {
      const room = maxTokens - 48
      const [progressive, hour] = [
        sizeWith(profiles.summary, 'progressive', maxTokens),
        sizeWith(profiles.support, 'hour', maxTokens),
      ]
      expect([progressive <= room, hour <= room / 3]).toEqual([true, true])
      expect(Math.min(progressive / room, (3 * hour) / room)).toBeGreaterThan(0.5)
    }
  })

  verifies('X-05', 'keeps the size of the version of a progressive summary', () => {
    const many = Array.from({ length: 4 }, (_, copy) =>
      facts.map((one) => message(copy * 30 + one.sequence, one.content.replaceAll('Falcon', `Heron${copy}x`))),
    ).flat()
    const sizes = [1, 2, 3, 9].map((version) => wordsOf(rebuild(summary([1, 120], { version }), many)?.text))
    expect(sizes[0]).toBeLessThanOrEqual(150)
    expect(sizes[1]).toBeLessThanOrEqual(250)
    expect(sizes[1]).toBeGreaterThan(150)
    expect(sizes[2]).toBeLessThanOrEqual(350)
    expect(sizes[2]).toBeGreaterThan(250)
    expect(sizes[3]).toBeGreaterThan(350)
  })

  verifies(['X-05', 'T-04'], 'keeps the share of an hour summary, and its square for a session summary', () => {
    const share = (tier: Summary['tier']) => {
      const text = rebuild(summary([1, 30], { tier }), facts, profiles.support)?.text ?? ''
      return chars4.count(text) / facts.reduce((sum, { tokens }) => sum + tokens, 0)
    }
    expect(share('hour')).toBeLessThanOrEqual(0.2)
    expect(share('hour')).toBeGreaterThan(0.1)
    expect(share('session')).toBeLessThanOrEqual(0.04)
    expect(share('session')).toBeGreaterThan(0)
  })

  verifies('X-05', 'rebuilds a summary whose rule the profile no longer has in 150 words', () => {
    const { text } = rebuild(summary([1, 30]), facts, profiles.ephemeral) ?? {}
    expect(wordsOf(text)).toBeLessThanOrEqual(150)
    expect(wordsOf(text)).toBeGreaterThan(50)
  })

  verifies(
    ['X-05', 'X-10'],
    'keeps a fact that a remaining message states again, with that message as its source',
    () => {
      const stated = fact({ field: 'important_facts', key: 'cat.miso', value: 'My cat is called Miso' })
      const again = message(7, 'My cat is called Miso.')
      expect(rebuild(stated, [message(4, 'I like tea.'), again, message(8, 'Good night.')])).toEqual({
        ...stated,
        sources: [{ message: 'm7', span: [0, 21] }],
      })
      expect(rebuild(stated, [again, message(9, 'My cat is called Miso.')])?.sources).toMatchObject([{ message: 'm9' }])
      for (const content of ['My cat is called Bruno.', 'My dog is called Miso.', 'my cat is called Miso'])
        expect(rebuild(stated, [message(4, content)])).toBeUndefined()
      expect(rebuild({ ...stated, field: 'preferences' }, [again])).toBeUndefined()
      expect(rebuild({ ...stated, key: 'pet' }, [again])).toBeUndefined()
    },
  )

  verifies(['X-05', 'X-10'], 'keeps a changed fact under the name of the statement that it changed', () => {
    const moved = fact({ field: 'important_facts', key: 'address', value: 'I moved to Berlin' })
    expect(rebuild(moved, [message(7, 'I moved to Berlin.')])?.sources).toMatchObject([{ message: 'm7' }])
  })
})
