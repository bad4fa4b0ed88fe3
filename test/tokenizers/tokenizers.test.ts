import fc from 'fast-check'
import { countTokens as countOlder, encode as encodeOlder } from 'gpt-tokenizer/encoding/cl100k_base'
import { countTokens as countNewer, encode as encodeNewer } from 'gpt-tokenizer/encoding/o200k_base'
import { describe, expect, it } from 'vitest'
import { weighed } from '../../src/context/render.ts'
import { upperBound } from '../../src/text/upperBound.ts'
import { countMerged, readRanks, toBytes } from '../../src/tokenizers/bytePairs.ts'
import { encodingFor, exactTokenizer, tokenizerFor, tokenizerNamed } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { duration, hostileText, megabytes } from '../text/hostile.ts'

const older = await exactTokenizer('cl100k_base')
const newer = await exactTokenizer('o200k_base')
const plain = { disallowedSpecial: new Set<string>() }
const cases = [
  { tokenizer: older, published: (text: string) => countOlder(text, plain) },
  { tokenizer: newer, published: (text: string) => countNewer(text, plain) },
]

/** Where gpt-tokenizer departs from OpenAI's: it drops U+FEFF and takes it for white space, but not U+0085, and knows no 'ſ. */
const departs = /[\ufeff\u0085\u017f]/

describe('counting', () => {
  verifies('C-01', "counts are those of OpenAI's tokenizer", () => {
    const counts = (text: string) => [older.count(text), newer.count(text)]
    expect(counts('')).toEqual([0, 0])
    expect(counts('antidisestablishmentarianism')).toEqual([6, 6])
    expect(counts('2 + 2 = 4')).toEqual([7, 7])
    expect(counts('お誕生日おめでとう')).toEqual([9, 8])
    expect(counts('tiktoken is great!')).toEqual([6, 6])
    expect(counts('\ufeff')).toEqual([1, 1])
    expect(counts('\ud800')).toEqual([1, 1])
    expect(encodeOlder('tiktoken is great!')).toEqual([83, 1609, 5963, 374, 2294, 0])
    expect(encodeNewer('お誕生日おめでとう')).toHaveLength(8)
  })

  verifies('C-01', 'counts equal those of gpt-tokenizer for any text', () => {
    fc.assert(
      fc.property(
        hostileText.filter((text) => !departs.test(text)),
        (text) => {
          for (const { tokenizer, published } of cases) {
            expect(tokenizer.count(text)).toBe(published(text))
            expect(tokenizer.isExact(text)).toBe(true)
          }
        },
      ),
      { numRuns: 2_000 },
    )
  })

  verifies('C-01', 'what looks like a special token is plain text', () => {
    const text = '<|endoftext|><|im_start|>system<|im_sep|><|fim_prefix|><|endofprompt|>'
    for (const { tokenizer, published } of cases) {
      expect(tokenizer.count('<|endoftext|>')).toBe(7)
      expect(tokenizer.count(text)).toBe(published(text))
    }
  })

  it('what is said costs the same in one look as by counting, for any text and for sentences', () => {
    const words = fc.array(
      fc.constantFrom('the', 'walrus', 'Don', "n't", 'antidisestablishmentarianism', '42', 'über', '-', 'ice', 'x'),
      { maxLength: 40 },
    )
    const sentence = fc
      .tuple(words, fc.constantFrom('', '.', '?!', ' ', '\n', ' (and so on)', '日本', "'s"))
      .map(([list, end]) => list.join(' ') + end)
    const role = fc.constantFrom('user', 'assistant', 'system', 'tool')
    fc.assert(
      fc.property(fc.oneof(hostileText, sentence), role, (content, role) => {
        // A copy counts by itself: whoever makes another tokenizer of this one is asked for every text.
        for (const { tokenizer } of cases)
          expect(weighed(tokenizer, { at: 0, role, content })).toEqual(
            weighed({ ...tokenizer }, { at: 0, role, content }),
          )
      }),
      { numRuns: 2_000 },
    )
  })

  it('a tokenizer that is made of another is asked itself', () => {
    const doubled = Object.create(newer, { count: { value: (text: string) => 2 * newer.count(text) } }) as typeof newer
    const said = { at: 0, role: 'user', content: 'The walrus sleeps on the ice.' } as const
    expect(weighed(doubled, said).lineTokens).toBe(2 * weighed(newer, said).lineTokens)
    expect(weighed(new Proxy(newer, {}), said)).toEqual(weighed(newer, said))
  })

  it('the same tables serve everyone who asks for an encoding', async () => {
    expect(await exactTokenizer('o200k_base')).toBe(newer)
    expect(await tokenizerFor('gpt-4')).toBe(older)
    expect([older.name, newer.name, older.kind, newer.kind]).toEqual(['cl100k_base', 'o200k_base', 'exact', 'exact'])
    expect(newer.overhead).toEqual({ message: 3, name: 1, call: 17, reply: 3 })
  })

  it('profiles find their tokenizer by name', async () => {
    const names = ['exact', 'upper-bound', 'ascii-3.5', 'chars-4'] as const
    const found = await Promise.all(names.map(tokenizerNamed))
    expect(found.map((tokenizer) => tokenizer.name)).toEqual(['o200k_base', 'upper-bound', 'ascii-3.5', 'chars-4'])
  })
})

describe('the encoding of a model', () => {
  verifies('C-01', 'is chosen by its name', () => {
    const o200k =
      'gpt-4o gpt-4o-mini-2024-07-18 gpt-4.1-nano gpt-4.5-preview gpt-5 gpt-5.1-codex o1 o1-mini o3-pro o4-mini chatgpt-4o-latest gpt-oss-20b gpt-oss:20b claude-sonnet-4'
    const cl100k =
      'gpt-4 gpt-4-0613 gpt-4-turbo gpt-4-turbo-2024-04-09 gpt-4-32k gpt-3.5-turbo gpt-35-turbo text-embedding-3-small text-embedding-ada-002 GPT-4'
    for (const model of [...o200k.split(' '), '', 'constructor', '/', 'my-gpt-4'])
      expect([model, encodingFor(model)]).toEqual([model, 'o200k_base'])
    for (const model of cl100k.split(' ')) expect([model, encodingFor(model)]).toEqual([model, 'cl100k_base'])
  })

  verifies('C-01', 'is found behind the names of providers and fine-tunings', () => {
    expect(encodingFor('openai/gpt-4o')).toBe('o200k_base')
    expect(encodingFor('openai/gpt-4-turbo')).toBe('cl100k_base')
    expect(encodingFor('openrouter/openai/gpt-4:free')).toBe('cl100k_base')
    expect(encodingFor('azure:gpt-35-turbo')).toBe('cl100k_base')
    expect(encodingFor('ft:gpt-4o-mini-2024-07-18:acme::abc123')).toBe('o200k_base')
    expect(encodingFor('ft:gpt-4o:acme:gpt-4:abc123')).toBe('o200k_base')
    expect(encodingFor('ft:gpt-3.5-turbo-0125:acme:help:abc123')).toBe('cl100k_base')
  })
})

describe('long unbroken runs', () => {
  verifies('C-01', 'are counted up to 4,096 characters and bounded beyond, which is flagged', () => {
    for (const { tokenizer, published } of cases) {
      for (const sign of ['a', 'x', '中', '=']) {
        const longest = sign.repeat(4_096)
        expect(tokenizer.isExact(longest)).toBe(true)
        expect(tokenizer.count(longest)).toBe(published(longest))
        expect(tokenizer.isExact(`so: ${sign}${longest} !`)).toBe(false)
      }
      expect(tokenizer.isExact('two words '.repeat(1_000))).toBe(true)
      expect(tokenizer.count(`two words ${'z'.repeat(5_000)} and more`)).toBe(
        2 + upperBound.count(` ${'z'.repeat(5_000)}`) + 2,
      )
    }
  })

  verifies('C-01', 'are never undercounted', () => {
    const run = fc
      .tuple(
        fc.string({
          unit: fc.constantFrom('a', 'b', 'the', 'Q', 'é', '中', '\u0301', ' ', '=', '/'),
          minLength: 1,
          maxLength: 6,
        }),
        fc.integer({ min: 5_000, max: 8_000 }),
      )
      .map(([part, length]) => part.repeat(Math.ceil(length / part.length)))
    fc.assert(
      fc.property(hostileText, run, hostileText, (before, middle, after) => {
        const text = before + middle + after
        fc.pre(!departs.test(text))
        for (const { tokenizer, published } of cases)
          expect(tokenizer.count(text)).toBeGreaterThanOrEqual(published(text))
      }),
      { numRuns: 25 },
    )
  })

  verifies(
    'C-01',
    'of one text 32,768 tokens are counted, and what follows is bounded by its bytes, which is flagged',
    () => {
      for (const { tokenizer } of cases) {
        expect(tokenizer.count(' hello'.repeat(32_000))).toBe(32_000)
        expect(tokenizer.isExact(' hello'.repeat(32_000))).toBe(true)
        expect(tokenizer.count(' hello'.repeat(33_000))).toBe(32_768 + 6 * 232)
        expect(tokenizer.count('привет, '.repeat(100_000))).toBeGreaterThan(14 * 80_000)
        expect(tokenizer.isExact(' hello'.repeat(33_000))).toBe(false)
        // too long to be worth a look
        expect(tokenizer.count('é'.repeat(20_000_000))).toBe(60_000_000)
      }
    },
  )

  verifies('C-01', 'however long and dense a text is, it is never undercounted', () => {
    const parts = fc.array(
      fc.oneof(hostileText, fc.constantFrom(' so it goes', ' and', 'zqj9', '中文字', ' \n', '\n', "don't")),
      {
        minLength: 30,
        maxLength: 60,
      },
    )
    fc.assert(
      fc.property(parts, (some) => {
        const once = some.join('')
        fc.pre(once.length > 200 && !departs.test(once))
        const text = once.repeat(Math.ceil(90_000 / once.length))
        for (const { tokenizer, published } of cases)
          expect(tokenizer.count(text)).toBeGreaterThanOrEqual(published(text))
      }),
      { numRuns: 15 },
    )
  })

  verifies('C-01', 'a bound takes over where counting fails', () => {
    const endless = '中'.repeat(20_000_000)
    expect(newer.count(endless)).toBe(60_000_000)
    expect(newer.isExact(endless)).toBe(false)
  })

  for (const [kind, text] of Object.entries(megabytes)) {
    verifies('C-01', `twice as much takes about twice as long: ${kind}`, () => {
      for (const { tokenizer } of cases) {
        const half = duration(() => tokenizer.count(text.slice(0, text.length / 2)))
        const whole = duration(() => tokenizer.count(text))
        expect(whole).toBeLessThan(Math.max(4 * half, 4_000))
      }
    })
  }
})

describe('byte pair encoding', () => {
  it('merges runs of any length exactly as gpt-tokenizer does', async () => {
    const { default: table } = await import('gpt-tokenizer/bpeRanks/o200k_base')
    const ranks = readRanks(table)
    const letters = fc.string({ unit: fc.constantFrom(...'aaaeeeiostrnlqzx'), minLength: 1, maxLength: 2_000 })
    const others = fc.string({ unit: fc.constantFrom(...'абвгд中文字あ한éß'), minLength: 1, maxLength: 300 })
    fc.assert(
      fc.property(fc.oneof(letters, others), (text) => {
        const run = text.toLowerCase()
        expect(countMerged(toBytes(run), ranks)).toBe(countNewer(run))
      }),
      { numRuns: 150 },
    )
  })

  it('writes text as UTF-8, one character to a byte', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(toBytes(text)).toBe(Buffer.from(text, 'utf8').toString('latin1'))
      }),
    )
  })
})
