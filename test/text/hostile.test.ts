import { describe, expect, it } from 'vitest'
import { anchorsIn } from '../../src/text/anchors.ts'
import { clip, clipMiddle } from '../../src/text/clip.ts'
import { compress } from '../../src/text/compress.ts'
import { batchDigest, digest, preservedFacts } from '../../src/text/digest.ts'
import { linesOf } from '../../src/text/fences.ts'
import { compactJson } from '../../src/text/json.ts'
import { isQuestion } from '../../src/text/question.ts'
import { repairJson } from '../../src/text/repair.ts'
import { findSecrets } from '../../src/text/secrets.ts'
import { selectSentences } from '../../src/text/sections.ts'
import { sentencesOf } from '../../src/text/sentences.ts'
import { squeezeSpace, stripComments } from '../../src/text/squeeze.ts'
import { isStopword, stem, termsOf, wordsOf } from '../../src/text/words.ts'
import { extractFacts } from '../../src/upkeep/extract/extract.ts'
import { summarise } from '../../src/upkeep/summarise/summarise.ts'

const megabyte = 1_000_000
const seconds = 1_000

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
  compactJson,
  'compactJson of a string': (text) => compactJson(`{ "a": "${text}" }`),
  isQuestion,
  compress: (text) => compress(text, 2_000, (candidate) => candidate.length / 4),
}

/** What looks for a meaning, and what begins to have one. */
const readers: Readonly<Record<string, (text: string) => unknown>> = {
  findSecrets,
  anchorsIn,
  repairJson,
  extractFacts: (text) => extractFacts([{ id: 'm1', role: 'user', content: text, at: 0 }]),
  summarise: (text) =>
    summarise([{ id: 'm1', sequence: 1, role: 'user', content: text, at: 0 }], undefined, { words: [100, 150] }),
}
const signs = {
  assignments: 'token=',
  tokens: '-eyJ',
  keys: '-----BEGIN PRIVATE KEY-----A: ',
  brackets: '{"a":[',
  preferences: 'I prefer ',
  paths: 'a/b',
  negations: "don't ",
}

const filled = (unit: string, length: number): string => `${unit.repeat(Math.floor(length / unit.length))}x`

function time(run: (text: string) => unknown, text: string): number {
  const start = performance.now()
  run(text)
  return performance.now() - start
}

/**
 * Whether a function is slow, or eight times the text takes it more than 27 times the time: three doublings that each more
 * than triple it. Over one doubling a busy collector looks like a square; over three it does not, for a square would take
 * 64 times the time. It starts small and stops at the first fault, because nothing can interrupt a function that hangs.
 */
function isSlow(run: (text: string) => unknown, unit: string, length: number): boolean {
  let most = seconds / 2
  for (const part of [64, 8, 1]) {
    const text = filled(unit, length / part)
    let took = time(run, text)
    // The machine may have been busy with something else.
    for (let chance = 0; chance < 2 && took > most && took < 3 * seconds; chance++)
      took = Math.min(took, time(run, text))
    if (took > most) return true
    // A tenth of a second of grace: small times are noise.
    most = Math.min(3 * seconds, 27 * took + 100)
  }
  return false
}

describe('a megabyte of hostile text', () => {
  it.each(Object.entries(units))('of %s is dealt with in linear time', (_, unit) => {
    const slow = Object.entries(functions).filter(([, run]) => isSlow(run, unit, megabyte))
    expect(slow.map(([name]) => name)).toEqual([])
  })

  it.each(Object.entries({ ...units, ...signs }))('of %s is understood in linear time', (_, unit) => {
    const slow = Object.entries(readers).filter(([, run]) => isSlow(run, unit, megabyte / 4))
    expect(slow.map(([name]) => name)).toEqual([])
  })

  it.each(['js', 'java', 'css', 'sh', 'py', 'sql', 'lua', 'haskell', 'html'])(
    'written in %s loses its comments in time',
    (language) => {
      const hostile = [...Object.values(units), ' #', "'# ", '--', '=/[', '<//</', '{-', '--[[', '$(', '<a', "'"]
      const strip = (text: string): string => stripComments(text, language)
      expect(hostile.filter((unit) => isSlow(strip, unit, megabyte / 4))).toEqual([])
    },
  )
})
