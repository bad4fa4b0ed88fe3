import fc from 'fast-check'
import cl100k from 'gpt-tokenizer/bpeRanks/cl100k_base'
import o200k from 'gpt-tokenizer/bpeRanks/o200k_base'
import { describe, expect, it } from 'vitest'
import { cl100kMerges, o200kMerges, pairs, triples } from '../../src/text/frequentWords.ts'
import { commonWords, symbolTokens, upperBound } from '../../src/text/upperBound.ts'
import { countBpeTokens, createRankIndex, toByteString } from '../../src/tokenizers/bytePairs.ts'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { isCampaign } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { hostileText, measureCpu, megabytes, rareWord, wordWithNeighbours } from './hostileTexts.ts'

const exact = [await exactTokenizer('cl100k_base'), await exactTokenizer('o200k_base')]
const maxExactCount = (text: string): number => Math.max(...exact.map((tokenizer) => tokenizer.count(text)))
const countBytes = (text: string): number => new TextEncoder().encode(text).length

const englishConversation = `Hi there! I booked a small cabin near the lake for the second weekend of October, and I'm not sure what to pack.

That sounds lovely. Nights are cold in autumn, so bring warm layers, a raincoat and sturdy boots. Does the cabin have a stove?

It does, and the owner told me there's firewood behind the shed. My sister is coming too; she's vegetarian and allergic to walnuts.

Then I'd plan two simple dinners: a lentil curry on Friday and baked potatoes with mushrooms on Saturday. For breakfast, oats and apples keep well without a fridge. Shall I write a shopping list for two people and three days?

Yes, please. We'd like to hike on Saturday, but my knee has been hurting since I fell off my bicycle in August, so nothing steep. I also promised Dad that we'd be back before dark on Sunday, because he worries about deer on the road.

Understood: flat trails only, and you should leave by half past three. The path around the northern shore is about seven miles long and mostly gravel. There's a bench every mile, a lighthouse, and a bakery that stays open until noon. Would you rather rent a canoe?

Maybe! How much does it cost? Our budget is 250 dollars for everything except petrol, and the cabin was already 140.

A canoe costs around 25 dollars for two hours, which leaves roughly 85 for groceries and coffee. I'd suggest checking the forecast on Thursday evening: if it's windy, skip the water and visit the pottery museum instead. Children and students get in for free.`

describe('assumptions of the upper bound hold in both rank tables', () => {
  const tables = [createRankIndex(cl100k), createRankIndex(o200k)]
  const countPiece = (piece: string): number =>
    Math.max(...tables.map((ranks) => countBpeTokens(toByteString(piece), ranks)))
  const capitalise = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)
  const wordsIn = (...places: readonly number[]): string[] =>
    [...commonWords].flatMap(([word, place]) => (places.includes(place) ? [word] : []))
  const contractions = ["'s", "'t", "'m", "'d", "'ll", "'ve", "'re"]
  const maxTokens = (pieces: readonly string[]): number =>
    pieces.reduce((top, piece) => Math.max(top, countPiece(piece)), 0)

  it('a common word after a space is one token, two with a contraction', () => {
    expect(commonWords.size).toBeGreaterThan(9_000)
    const afterSpace = [...wordsIn(0, 1, 2, 4, 5), ...wordsIn(0, 1, 3, 4, 5).map(capitalise)].map((word) => ` ${word}`)
    expect(maxTokens(afterSpace)).toBe(1)
    expect(maxTokens(afterSpace.flatMap((word) => contractions.map((ending) => word + ending)))).toBe(2)
  })

  it('a common word without a space is one token, two with a contraction, and a symbol before it costs at most its bytes', () => {
    const bare = [...wordsIn(0), ...wordsIn(0, 4).map(capitalise)]
    const starts = [...bare, ...wordsIn(5).map(capitalise)]
    expect(maxTokens(starts)).toBe(1)
    expect(maxTokens(starts.flatMap((word) => contractions.map((ending) => word + ending)))).toBe(2)
    const symbols = [...Array(128).keys()]
      .map((code) => String.fromCharCode(code))
      .filter((symbol) => /[^A-Za-z0-9 \r\n']/.test(symbol))
    for (const symbol of [...symbols, ...'‘’“”–—…'])
      expect(maxTokens(bare.map((word) => symbol + word))).toBeLessThanOrEqual(1 + countBytes(symbol))
  }, 60_000)

  it('each listed pair and triple of letters is a token', () => {
    const lowercase = [...'abcdefghijklmnopqrstuvwxyz']
    const symbols = [' ', ...lowercase.map((letter) => letter.toUpperCase()), ...lowercase]
    const expand = (firsts: readonly string[], rows: string) =>
      rows.split(',').flatMap((row, index) => [...row].map((last) => firsts[index] + last))
    const two = expand(symbols, pairs)
    const three = expand(
      [' ', ...lowercase].flatMap((first) => lowercase.map((second) => first + second)),
      triples,
    )
    expect([two.length, three.length]).toEqual([1494, 3020])
    expect(maxTokens([...two, ...three])).toBe(1)
    expect([...two, ...three].filter((token) => /[a-z][A-Z]/.test(token))).toEqual([])
  })

  it('each listed symbol, and a contraction after a typographic apostrophe, is one token', () => {
    expect(symbolTokens.size).toBeGreaterThan(400)
    expect(maxTokens([...symbolTokens, ...contractions.map((ending) => ending.replace("'", '’'))])).toBe(1)
  })

  it('the merges are all tokens below a rank with their characters, in order', () => {
    const encodings = [
      [cl100kMerges, cl100k],
      [o200kMerges, o200k],
    ] as const
    for (const [merges, table] of encodings) {
      const known = table
        .slice(0, 1_500)
        .flatMap((token) => (typeof token === 'string' && /^(?: ?[!-/:-~]+\n*|\n+)$/.test(token) ? token : []))
      expect(merges.split('\t')).toEqual(known.filter(({ length }) => length > 1))
      // The pieces that are merged have no other characters, so other tokens cannot take part.
      expect(known.some((token) => /[^ -~\n]/.test(token))).toBe(false)
    }
    expect(o200kMerges).not.toMatch(/[a-z][A-Z]/)
  })

  it('up to 3 digits, 79 spaces and 10 line ends are one token', () => {
    const digits = [...Array(1000).keys()].flatMap((number) =>
      [1, 2, 3].map((length) => String(number).padStart(length, '0')),
    )
    expect(maxTokens(digits)).toBe(1)
    expect(maxTokens([...Array(79).keys()].map((length) => ' '.repeat(1 + length)))).toBe(1)
    expect(maxTokens([...Array(10).keys()].map((length) => '\n'.repeat(1 + length)))).toBe(1)
  })
})

describe('upperBound', () => {
  verifies('X-01', 'is never below the exact count in either encoding, for any text', () => {
    fc.assert(
      fc.property(hostileText, (text) => {
        expect(upperBound.count(text)).toBeGreaterThanOrEqual(maxExactCount(text))
      }),
      { numRuns: isCampaign ? 3_000 : 1_000 },
    )
  })

  verifies('X-01', 'is never below the exact count for single words with any neighbours', () => {
    fc.assert(
      fc.property(wordWithNeighbours, (text) => {
        expect(upperBound.count(text)).toBeGreaterThanOrEqual(maxExactCount(text))
      }),
      { numRuns: isCampaign ? 10_000 : 3_000 },
    )
  })

  verifies('X-01', 'is never below the exact count for rare words', () => {
    fc.assert(
      fc.property(rareWord, (text) => {
        expect(upperBound.count(text)).toBeGreaterThanOrEqual(maxExactCount(text))
      }),
      { numRuns: isCampaign ? 10_000 : 3_000, examples: [["'therng"], ['ritys'], [' ractiaind'], [' ronameel']] },
    )
  })

  verifies('X-01', 'is never below the exact count for arbitrary Unicode with lone surrogates', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        expect(upperBound.count(text)).toBeGreaterThanOrEqual(maxExactCount(text))
        expect(upperBound.count(text)).toBeLessThanOrEqual(countBytes(text))
      }),
      { numRuns: 1_000 },
    )
  })

  it('counts common words, digits and white space as tokens, and everything else as bytes', () => {
    const counts = (text: string): [bound: number, exact: number] => [upperBound.count(text), maxExactCount(text)]
    expect(counts('')).toEqual([0, 0])
    expect(counts('The weather in the city is good today')).toEqual([8, 8])
    expect(counts("I think it's time, and they don't.")).toEqual([11, 11])
    expect(counts('Call 1234567 (home)')).toEqual([8, 8])
    expect(counts('She said: “It’s late.”')).toEqual([8, 8])
    for (const role of ['user', 'assistant', 'system', 'tool']) expect(counts(role)).toEqual([1, 1])
    expect(counts('one\n\n    two')).toEqual([4, 4])
    expect(counts('你好')).toEqual([6, 2])
    expect(counts('🌍')).toEqual([4, 3])
    expect(counts('\ud800')).toEqual([3, 1])
    expect(counts('antidisestablishmentarianism')).toEqual([12, 6])
  })

  it('does not count a common word as one token when its neighbour may be part of it', () => {
    expect(upperBound.count(' world')).toBe(1)
    expect(upperBound.count(' worldé')).toBeGreaterThan(3)
    expect(upperBound.count('éworld')).toBeGreaterThan(3)
    expect(upperBound.count("'time")).toBeGreaterThan(2)
    expect(upperBound.count('é(é')).toBeGreaterThan(4)
  })

  verifies('X-01', 'is at most 1/0.85 of the tokens of English conversations in o200k_base', () => {
    const tokens = exact[1]?.count(englishConversation) ?? 0
    expect(tokens / upperBound.count(englishConversation)).toBeGreaterThanOrEqual(0.85)
  })

  it('declares itself an upper bound', () => {
    expect([upperBound.name, upperBound.kind, upperBound.isExact('Hello')]).toEqual(['upper-bound', 'bound', false])
    expect(upperBound.overhead).toEqual(exact[0]?.overhead)
  })

  for (const [kind, text] of Object.entries(megabytes)) {
    verifies('X-01', `takes linear time for a megabyte of ${kind}`, () => {
      const eighth = measureCpu(() => upperBound.count(text.slice(0, text.length / 8)))
      const whole = measureCpu(() => upperBound.count(text))
      // Linear growth gives a factor of 8, quadratic growth 64; 20 ms allow for noise in small times.
      expect(whole).toBeLessThan(27 * Math.max(eighth, 20))
    })
  }
})
