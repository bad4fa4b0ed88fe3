import { describe, expect, it } from 'vitest'
import { clip, clipMiddle } from '../../src/text/clip.ts'
import { compress } from '../../src/text/compress.ts'
import { batchDigest, digest, preservedFacts } from '../../src/text/digest.ts'
import { linesOf } from '../../src/text/fences.ts'
import { selectSentences } from '../../src/text/sections.ts'
import { sentencesOf } from '../../src/text/sentences.ts'
import { squeezeSpace, stripComments } from '../../src/text/squeeze.ts'
import { isStopword, stem, termsOf, wordsOf } from '../../src/text/words.ts'

const megabyte = 1_000_000
const seconds = 1_000

const units = {
  'one letter': 'a',
  spaces: ' ',
  newlines: '\n',
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
  wordsOf,
  stem,
  isStopword,
  termsOf,
  clip: (text) => clip(text, text.length >> 1),
  clipMiddle: (text) => clipMiddle(text, text.length >> 2, text.length >> 2),
  linesOf,
  sentencesOf,
  squeezeSpace,
  stripComments: (text) => stripComments(`\`\`\`ts\n${text}`),
  preservedFacts,
  digest: (text) => digest(text, 'user'),
  batchDigest: (text) => batchDigest([{ role: 'user', content: text }]),
  selectSentences: (text) => selectSentences(text, (candidate) => candidate.length <= 8_000),
  compress: (text) => compress(text, 2_000, (candidate) => candidate.length / 4),
}

const filled = (unit: string, length: number): string => `${unit.repeat(Math.floor(length / unit.length))}x`

function time(run: (text: string) => unknown, text: string): number {
  const start = performance.now()
  run(text)
  return performance.now() - start
}

/**
 * Whether eight times the text takes more than 27 times the time: three doublings that each more than triple it. Over one
 * doubling a busy collector looks like a square; over three it does not, for a square would take 64 times the time. A
 * tenth of a second of grace, because small times are noise, and two more chances, because the machine may be busy.
 */
function growsTooFast(run: (text: string) => unknown, whole: string, eighth: string): boolean {
  for (let chance = 0; chance < 3; chance++) if (time(run, whole) <= 27 * time(run, eighth) + 100) return false
  return true
}

describe('a megabyte of hostile text', () => {
  it.each(Object.entries(units))('of %s is dealt with in linear time', (_, unit) => {
    const whole = filled(unit, megabyte)
    const eighth = filled(unit, megabyte / 8)
    const entries = Object.entries(functions)
    expect(entries.filter(([, run]) => time(run, whole) > 3 * seconds).map(([name]) => name)).toEqual([])
    expect(entries.filter(([, run]) => growsTooFast(run, whole, eighth)).map(([name]) => name)).toEqual([])
  })

  it.each(['js', 'java', 'css', 'sh', 'py', 'sql', 'lua', 'haskell', 'html'])('written in %s loses its comments in time', (language) => {
    const hostile = [...Object.values(units), ' #', "'# ", '--', '=/[', '<//</', '{-', '--[[', '$(', '<a', "'"]
    const strip = (text: string): string => stripComments(text, language)
    expect(hostile.filter((unit) => growsTooFast(strip, filled(unit, megabyte / 4), filled(unit, megabyte / 32)))).toEqual([])
  })
})
