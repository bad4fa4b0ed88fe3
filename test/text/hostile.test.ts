import { describe, expect, it } from 'vitest'
import { runSync } from '../../src/domain/work.ts'
import { findAnchors } from '../../src/text/anchors.ts'
import { clip, clipMiddle } from '../../src/text/clip.ts'
import { stripComments } from '../../src/text/comments.ts'
import { compress, squeezeSpace } from '../../src/text/compress.ts'
import { batchDigest, digest, extractFactTexts } from '../../src/text/digest.ts'
import { splitFencedLines } from '../../src/text/fences.ts'
import { compactJson, repairJson } from '../../src/text/json.ts'
import { findSecrets } from '../../src/text/secrets.ts'
import { selectSentences } from '../../src/text/selectSentences.ts'
import { isQuestion, splitSentences } from '../../src/text/sentences.ts'
import { findValues } from '../../src/text/values.ts'
import { extractTerms, isStopword, splitWords, stem } from '../../src/text/words.ts'
import { extractFacts } from '../../src/upkeep/extract/extract.ts'
import { findClaimFaults } from '../../src/upkeep/summarise/claims.ts'
import { cleanModelText } from '../../src/upkeep/summarise/modelText.ts'
import { indexSource } from '../../src/upkeep/summarise/sourceIndex.ts'
import { summarise } from '../../src/upkeep/summarise/summarise.ts'
import { isCampaign } from '../context/campaign.ts'
import { measureCpu } from './hostileTexts.ts'

/** Characters of the longest texts. */
const maxCharacters = isCampaign ? 1_000_000 : 250_000

/** Repeated to build a text. */
const units = {
  'one letter': 'a',
  spaces: ' ',
  newlines: '\n',
  'carriage returns': '\r',
  'line separators': '\u2028',
  stops: '.',
  'letters and stops': 'a.',
  URLs: 'http://',
  'at signs': '@',
  'letters and at signs': 'a@',
  digits: '7',
  'digits and commas': '1,',
  'comment openings': '/*',
  'empty comments': 'a/**/',
  quotes: '"',
  backslashes: '\\',
  underscores: '_',
  fences: '```\n',
  'markup comments': '<!--',
  errors: 'Error:',
  failures: 'failed to ',
  attributes: 'id="',
  selectors: 'selector:"',
  addresses: '1.1.1.',
  colons: '::',
  'list items': '5. a ',
  humps: 'aB',
  templates: '`${',
  emoji: '👍',
  families: '👩\u200d',
  flags: '🇩',
  'combining marks': '\u0301',
  ideographs: '東',
  prose: 'I paid 300 for it. "Why?" She (Ana) did not say! see src/a_b.ts\n',
}

const functions: Readonly<Record<string, (text: string) => unknown>> = {
  wordsOf: splitWords,
  stem,
  isStopword,
  termsOf: extractTerms,
  clip: (text) => clip(text, text.length >> 1),
  clipMiddle: (text) => clipMiddle(text, text.length >> 2, text.length >> 2),
  linesOf: splitFencedLines,
  sentencesOf: splitSentences,
  squeezeSpace,
  stripComments: (text) => stripComments(`\`\`\`ts\n${text}`),
  extractFactTexts,
  digest: (text) => digest(text, 'user'),
  batchDigest: (text) => batchDigest([{ role: 'user', content: text }]),
  selectSentences: (text) => selectSentences(text, (candidate) => candidate.length <= 8_000),
  compactJson,
  'compactJson of a string': (text) => compactJson(`{ "a": "${text}" }`),
  isQuestion,
  compress: (text) => compress(text, 2_000, (candidate) => candidate.length / 4),
}

/** Functions that interpret text. */
const interpreters: Readonly<Record<string, (text: string) => unknown>> = {
  findSecrets,
  anchorsIn: findAnchors,
  findValues,
  cleanModelText,
  findClaimFaults: (text) =>
    runSync(
      findClaimFaults(
        'Not 7 of 300.',
        runSync(indexSource([{ id: 'm1', sequence: 1, role: 'user', content: text, at: 0 }], 'a 5')),
      ),
    ),
  repairJson,
  extractFacts: (text) => extractFacts([{ id: 'm1', role: 'user', content: text, at: 0 }]),
  summarise: (text) =>
    summarise([{ id: 'm1', sequence: 1, role: 'user', content: text, at: 0 }], undefined, { words: [100, 150] }),
}
/** Beginnings of constructs that the interpreters look for. */
const beginnings = {
  assignments: 'token=',
  tokens: '-eyJ',
  keys: '-----BEGIN PRIVATE KEY-----A: ',
  brackets: '{"a":[',
  preferences: 'I prefer ',
  paths: 'a/b',
  negations: "don't ",
  'long values': `my x is ${'a'.repeat(400)}\n`,
}

const fill = (unit: string, length: number): string => `${unit.repeat(Math.floor(length / unit.length))}x`

/** Largest growth of the cost when the text grows by a factor of 8. Linear functions grow by 8, quadratic ones by 64. */
const maxGrowth = 27
/** CPU time in milliseconds below which growth is not judged: small times are mostly noise and garbage collection. */
const minMeasuredMs = 5
const attempts = 4

/** CPU time of one pass of a regular expression with many attempts over a long prose text: the unit of the cost limit. */
const referenceMs = Math.min(
  ...Array.from({ length: attempts }, () => {
    const prose = fill(units.prose, maxCharacters)
    return measureCpu(() => prose.replace(/\b[a-z]{1,20}\b|\d{1,4}/gi, (match) => match.toUpperCase()))
  }),
)
/** Limit for functions that are linear but too slow. */
const maxReferencePasses = 60

/**
 * Tells whether the cost of a function grows faster than linearly, or exceeds the cost limit. Compares CPU times at sizes
 * that differ by a factor of 8, and repeats a measurement that looks bad, so that neither other processes nor a garbage
 * collection decide. Starts small and stops at the first failure, because nothing can interrupt a function that hangs.
 */
function isSlow(run: (text: string) => unknown, unit: string, length: number): boolean {
  let limit = maxReferencePasses * referenceMs
  for (const divisor of [512, 64, 8, 1]) {
    const text = fill(unit, length / divisor)
    let cost = Number.POSITIVE_INFINITY
    for (let attempt = 0; attempt < attempts && cost > limit; attempt++)
      cost = Math.min(
        cost,
        measureCpu(() => run(text)),
      )
    if (cost > limit) return true
    limit = Math.min(maxReferencePasses * referenceMs, maxGrowth * Math.max(cost, minMeasuredMs))
  }
  return false
}

describe('a long hostile text', () => {
  it.each(Object.entries(units))('of %s is processed in linear time', (_, unit) => {
    const slow = Object.entries(functions).filter(([, run]) => isSlow(run, unit, maxCharacters))
    expect(slow.map(([name]) => name)).toEqual([])
  })

  it.each(Object.entries({ ...units, ...beginnings }))('of %s is interpreted in linear time', (_, unit) => {
    const slow = Object.entries(interpreters).filter(([, run]) => isSlow(run, unit, maxCharacters / 4))
    expect(slow.map(([name]) => name)).toEqual([])
  })

  it.each(['js', 'java', 'css', 'sh', 'py', 'sql', 'lua', 'haskell', 'html'])(
    'in %s loses its comments in linear time',
    (language) => {
      const hostile = [...Object.values(units), ' #', "'# ", '--', '=/[', '<//</', '{-', '--[[', '$(', '<a', "'"]
      const strip = (text: string): string => stripComments(text, language)
      expect(hostile.filter((unit) => isSlow(strip, unit, maxCharacters / 4))).toEqual([])
    },
  )
})

describe('isSlow', () => {
  it('detects quadratic growth and too much work, and accepts linear growth', () => {
    /** Uses CPU time, however fast the machine is. */
    const work = (milliseconds: number): void => {
      const start = process.threadCpuUsage()
      for (let spent = 0; spent < milliseconds; ) {
        const { user, system } = process.threadCpuUsage(start)
        spent = (user + system) / 1_000
      }
    }
    const shareOf = (text: string): number => text.length / maxCharacters
    expect(isSlow((text) => work(200 * shareOf(text) ** 2), 'a', maxCharacters)).toBe(true)
    expect(isSlow(() => work(1.1 * maxReferencePasses * referenceMs), 'a', maxCharacters)).toBe(true)
    expect(isSlow((text) => work(20 * shareOf(text)), 'a', maxCharacters)).toBe(false)
  })
})
