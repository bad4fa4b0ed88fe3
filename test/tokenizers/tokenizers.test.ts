import fc from 'fast-check'
import { countTokens as countCl100k, encode as encodeCl100k } from 'gpt-tokenizer/encoding/cl100k_base'
import { countTokens as countO200k, encode as encodeO200k } from 'gpt-tokenizer/encoding/o200k_base'
import { describe, expect, it } from 'vitest'
import { measureMessage } from '../../src/context/measureMessage.ts'
import { utf8Length } from '../../src/domain/entry.ts'
import { upperBound } from '../../src/text/upperBound.ts'
import { countBpeTokens, createRankIndex, RankIndex, toByteString } from '../../src/tokenizers/bytePairs.ts'
import { splitPatterns } from '../../src/tokenizers/splitPatterns.ts'
import {
  encodingFor,
  exactTokenizer,
  TokenCounter,
  tokenizerFor,
  tokenizerNamed,
} from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { hostileText, megabytes } from '../text/hostileTexts.ts'

const cl100k = await exactTokenizer('cl100k_base')
const o200k = await exactTokenizer('o200k_base')
const options = { disallowedSpecial: new Set<string>() }
const encodings = [
  { tokenizer: cl100k, reference: (text: string) => countCl100k(text, options) },
  { tokenizer: o200k, reference: (text: string) => countO200k(text, options) },
]

/** Characters for which gpt-tokenizer differs from OpenAI: it treats U+FEFF as white space and drops it, U+0085 not as white space, and lacks 'ſ. */
const referenceDiffers = /[\ufeff\u0085\u017f]/

/** Rank index that counts the lookups of pairs, the inner loop of byte pair encoding. */
class CountingRankIndex extends RankIndex {
  pairLookups = 0

  override rankOfPair(left: number, right: number, bytes: string, start: number, end: number): number {
    this.pairLookups++
    return super.rankOfPair(left, right, bytes, start, end)
  }
}

describe('count', () => {
  verifies('C-01', "returns the counts of OpenAI's tokenizer", () => {
    const counts = (text: string) => [cl100k.count(text), o200k.count(text)]
    expect(counts('')).toEqual([0, 0])
    expect(counts('antidisestablishmentarianism')).toEqual([6, 6])
    expect(counts('2 + 2 = 4')).toEqual([7, 7])
    expect(counts('お誕生日おめでとう')).toEqual([9, 8])
    expect(counts('tiktoken is great!')).toEqual([6, 6])
    expect(counts('\ufeff')).toEqual([1, 1])
    expect(counts('\ud800')).toEqual([1, 1])
    expect(encodeCl100k('tiktoken is great!')).toEqual([83, 1609, 5963, 374, 2294, 0])
    expect(encodeO200k('お誕生日おめでとう')).toHaveLength(8)
  })

  verifies('C-01', 'with any text returns the count of gpt-tokenizer', () => {
    fc.assert(
      fc.property(
        hostileText.filter((text) => !referenceDiffers.test(text)),
        (text) => {
          for (const { tokenizer, reference } of encodings) {
            expect(tokenizer.count(text)).toBe(reference(text))
            expect(tokenizer.isExact(text)).toBe(true)
          }
        },
      ),
      { numRuns: 2_000 },
    )
  })

  verifies('C-01', 'with special tokens in the text counts them as plain text', () => {
    const text = '<|endoftext|><|im_start|>system<|im_sep|><|fim_prefix|><|endofprompt|>'
    for (const { tokenizer, reference } of encodings) {
      expect(tokenizer.count('<|endoftext|>')).toBe(7)
      expect(tokenizer.count(text)).toBe(reference(text))
    }
  })

  verifies(
    'C-01',
    'with a text counted before, alone and inside other text, returns the same counts as the first time',
    () => {
      const edges = fc.constantFrom('', ' ', 'User: ', 'a', 'a ', "'s", '\n', '\n\n', '.\n', ' and', 'É', '\u0301')
      const words = fc.array(
        fc.constantFrom('now', 'Paris', 'USA', "don't", 'x,', 'y.', '12', 'naïve', '(so)', 'iPhone', '-', '中文'),
        { maxLength: 300 },
      )
      const texts = fc.oneof(
        hostileText.filter((text) => !referenceDiffers.test(text)),
        words.map((all) => all.join(' ')),
      )
      fc.assert(
        fc.property(texts, edges, edges, (text, before, after) => {
          for (const { tokenizer, reference } of encodings)
            for (const variant of [text, before + text + after, text, text + after, before + text])
              expect(tokenizer.count(variant)).toBe(reference(variant))
        }),
        { numRuns: 1_000 },
      )
    },
  )

  it('with runs of one character returns the count of gpt-tokenizer, also when cached', () => {
    const runs = fc.tuple(fc.constantFrom(' ', '=', '-', '*', '\n', '\t', 'a', 'é'), fc.integer({ min: 1, max: 900 }))
    fc.assert(
      fc.property(runs, fc.constantFrom('', 'x', '|\n'), ([character, length], after) => {
        const text = character.repeat(length) + after
        for (const { tokenizer, reference } of encodings)
          for (let time = 0; time < 2; time++) expect(tokenizer.count(text)).toBe(reference(text))
      }),
      { numRuns: 500 },
    )
  })
})

describe('weighed', () => {
  it('with the built-in tokenizers returns the same costs as the general path', () => {
    const words = fc.array(
      fc.constantFrom('the', 'walrus', 'Don', "n't", 'antidisestablishmentarianism', '42', 'über', '-', 'ice', 'x'),
      { maxLength: 40 },
    )
    const sentence = fc
      .tuple(words, fc.constantFrom('', '.', '?!', ' ', '\n', ' (and so on)', '日本', "'s"))
      .map(([list, end]) => list.join(' ') + end)
    const anyRole = fc.constantFrom('user', 'assistant', 'system', 'tool')
    fc.assert(
      fc.property(fc.oneof(hostileText, sentence), anyRole, (content, role) => {
        // A copy of a tokenizer has no fast counter.
        for (const { tokenizer } of encodings)
          expect(measureMessage(tokenizer, { at: 0, role, content })).toEqual(
            measureMessage({ ...tokenizer }, { at: 0, role, content }),
          )
      }),
      { numRuns: 2_000 },
    )
  })

  it('with a tokenizer that wraps a built-in one calls its own count', () => {
    const doubled = Object.create(o200k, { count: { value: (text: string) => 2 * o200k.count(text) } }) as typeof o200k
    const message = { at: 0, role: 'user', content: 'The walrus sleeps on the ice.' } as const
    expect(measureMessage(doubled, message).lineTokens).toBe(2 * measureMessage(o200k, message).lineTokens)
    expect(measureMessage(new Proxy(o200k, {}), message)).toEqual(measureMessage(o200k, message))
  })
})

describe('exactTokenizer', () => {
  it('with the same encoding returns the same tokenizer', async () => {
    expect(await exactTokenizer('o200k_base')).toBe(o200k)
    expect(await tokenizerFor('gpt-4')).toBe(cl100k)
    expect([cl100k.name, o200k.name, cl100k.kind, o200k.kind]).toEqual(['cl100k_base', 'o200k_base', 'exact', 'exact'])
    expect(o200k.overhead).toEqual({ message: 3, name: 1, call: 17, reply: 3 })
  })
})

describe('tokenizerNamed', () => {
  it('returns the tokenizer for each name a profile may use', async () => {
    const names = ['exact', 'upper-bound', 'ascii-3.5', 'chars-4'] as const
    const found = await Promise.all(names.map(tokenizerNamed))
    expect(found.map((tokenizer) => tokenizer.name)).toEqual(['o200k_base', 'upper-bound', 'ascii-3.5', 'chars-4'])
  })
})

describe('encodingFor', () => {
  verifies('C-01', 'with a model name returns its encoding', () => {
    const o200kModels =
      'gpt-4o gpt-4o-mini-2024-07-18 gpt-4.1-nano gpt-4.5-preview gpt-5 gpt-5.1-codex o1 o1-mini o3-pro o4-mini chatgpt-4o-latest gpt-oss-20b gpt-oss:20b claude-sonnet-4'
    const cl100kModels =
      'gpt-4 gpt-4-0613 gpt-4-turbo gpt-4-turbo-2024-04-09 gpt-4-32k gpt-3.5-turbo gpt-35-turbo text-embedding-3-small text-embedding-ada-002 GPT-4'
    for (const model of [...o200kModels.split(' '), '', 'constructor', '/', 'my-gpt-4'])
      expect([model, encodingFor(model)]).toEqual([model, 'o200k_base'])
    for (const model of cl100kModels.split(' ')) expect([model, encodingFor(model)]).toEqual([model, 'cl100k_base'])
  })

  verifies('C-01', 'with a provider prefix or a fine-tuned model finds the model name', () => {
    expect(encodingFor('openai/gpt-4o')).toBe('o200k_base')
    expect(encodingFor('openai/gpt-4-turbo')).toBe('cl100k_base')
    expect(encodingFor('openrouter/openai/gpt-4:free')).toBe('cl100k_base')
    expect(encodingFor('azure:gpt-35-turbo')).toBe('cl100k_base')
    expect(encodingFor('ft:gpt-4o-mini-2024-07-18:acme::abc123')).toBe('o200k_base')
    expect(encodingFor('ft:gpt-4o:acme:gpt-4:abc123')).toBe('o200k_base')
    expect(encodingFor('ft:gpt-3.5-turbo-0125:acme:help:abc123')).toBe('cl100k_base')
  })
})

describe('count of long texts', () => {
  verifies('C-01', 'with an unbroken run is exact up to 4,096 characters, and a flagged upper bound beyond', () => {
    for (const { tokenizer, reference } of encodings) {
      for (const sign of ['a', 'x', '中', '=']) {
        const longest = sign.repeat(4_096)
        expect(tokenizer.isExact(longest)).toBe(true)
        expect(tokenizer.count(longest)).toBe(reference(longest))
        expect(tokenizer.isExact(`so: ${sign}${longest} !`)).toBe(false)
      }
      expect(tokenizer.isExact('two words '.repeat(1_000))).toBe(true)
      expect(tokenizer.count(`two words ${'z'.repeat(5_000)} and more`)).toBe(
        2 + upperBound.count(` ${'z'.repeat(5_000)}`) + 2,
      )
    }
  })

  verifies('C-01', 'with an unbroken run inside other text is never too low', () => {
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
        fc.pre(!referenceDiffers.test(text))
        for (const { tokenizer, reference } of encodings)
          expect(tokenizer.count(text)).toBeGreaterThanOrEqual(reference(text))
      }),
      { numRuns: 25 },
    )
  })

  verifies('C-01', 'with over 32,768 tokens bounds the rest by its bytes, and flags it', () => {
    for (const { tokenizer } of encodings) {
      expect(tokenizer.count(' hello'.repeat(32_000))).toBe(32_000)
      expect(tokenizer.isExact(' hello'.repeat(32_000))).toBe(true)
      expect(tokenizer.count(' hello'.repeat(33_000))).toBe(32_768 + 6 * 232)
      expect(tokenizer.count('привет, '.repeat(100_000))).toBeGreaterThan(14 * 80_000)
      expect(tokenizer.isExact(' hello'.repeat(33_000))).toBe(false)
      // Too long to be scanned.
      expect(tokenizer.count('é'.repeat(20_000_000))).toBe(60_000_000)
    }
  })

  verifies('C-01', 'with long and dense text is never too low', () => {
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
        fc.pre(once.length > 200 && !referenceDiffers.test(once))
        const text = once.repeat(Math.ceil(90_000 / once.length))
        for (const { tokenizer, reference } of encodings)
          expect(tokenizer.count(text)).toBeGreaterThanOrEqual(reference(text))
      }),
      { numRuns: 15 },
    )
  })

  verifies('C-01', 'with a text that cannot be split returns an upper bound', () => {
    const endless = '中'.repeat(20_000_000)
    expect(o200k.count(endless)).toBe(60_000_000)
    expect(o200k.isExact(endless)).toBe(false)
  })

  for (const [kind, text] of Object.entries(megabytes)) {
    verifies('C-01', `with a megabyte of ${kind} does linear work`, async () => {
      const tables = {
        cl100k_base: (await import('gpt-tokenizer/bpeRanks/cl100k_base')).default,
        o200k_base: (await import('gpt-tokenizer/bpeRanks/o200k_base')).default,
      }
      for (const encoding of ['cl100k_base', 'o200k_base'] as const) {
        const ranks = new CountingRankIndex(tables[encoding])
        const counter = new TokenCounter(splitPatterns[encoding], ranks)
        // One lookup per byte, and at most two per merge, of which there are fewer than bytes.
        for (const part of [text.slice(0, text.length / 2), text]) {
          ranks.pairLookups = 0
          counter.count(part)
          expect(ranks.pairLookups).toBeLessThanOrEqual(3 * utf8Length(part))
        }
      }
    })
  }
})

describe('countMerged', () => {
  it('with runs of any length returns the count of gpt-tokenizer', async () => {
    const { default: table } = await import('gpt-tokenizer/bpeRanks/o200k_base')
    const ranks = createRankIndex(table)
    const letters = fc.string({ unit: fc.constantFrom(...'aaaeeeiostrnlqzx'), minLength: 1, maxLength: 2_000 })
    const others = fc.string({ unit: fc.constantFrom(...'абвгд中文字あ한éß'), minLength: 1, maxLength: 300 })
    fc.assert(
      fc.property(fc.oneof(letters, others), (text) => {
        const run = text.toLowerCase()
        expect(countBpeTokens(toByteString(run), ranks)).toBe(countO200k(run))
      }),
      { numRuns: 150 },
    )
  })
})

describe('toBytes', () => {
  it('with any text returns its UTF-8 bytes as characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(toByteString(text)).toBe(Buffer.from(text, 'utf8').toString('latin1'))
      }),
    )
  })
})
