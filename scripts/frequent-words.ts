/**
 * Writes src/text/frequentWords.ts from the rank tables of cl100k_base and o200k_base: everything the upper bound knows
 * about them. Run it with `npx node scripts/frequent-words.ts`.
 */
import { writeFileSync } from 'node:fs'
import cl100k from 'gpt-tokenizer/bpeRanks/cl100k_base'
import o200k from 'gpt-tokenizer/bpeRanks/o200k_base'
import { countMerged, readRanks, toBytes } from '../src/tokenizers/bytePairs.ts'

const largest = 13_900
const target = new URL('../src/text/frequentWords.ts', import.meta.url)
const [old, young] = [readRanks(cl100k), readRanks(o200k)]
const lower = [...'abcdefghijklmnopqrstuvwxyz']
const letters = [...lower.map((letter) => letter.toUpperCase()), ...lower]

const isToken = (text: string): boolean => old.get(text) !== undefined && young.get(text) !== undefined
const rankOf = (text: string): number => Math.max(old.get(text) ?? 0, young.get(text) ?? 0)
const capitalised = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`
const most = (text: string): number => Math.max(countMerged(toBytes(text), old), countMerged(toBytes(text), young))

/** What may stand before a word and be taken into its first token; each costs its bytes in the bound. */
const glue = [
  ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)).filter((char) =>
    /[^A-Za-z0-9 \r\n']/.test(char),
  ),
  ...'‘’“”–—…',
]
const contractions = ["'s", "'t", "'m", "'d", "'ll", "'ve", "'re"]

const holdsAfterSpace = (form: string): boolean =>
  isToken(` ${form}`) && contractions.every((ending) => most(` ${form}${ending}`) <= 2)
const holdsAlone = (form: string): boolean =>
  isToken(form) &&
  contractions.every((ending) => most(form + ending) <= 2) &&
  glue.every((char) => most(char + form) <= 1 + toBytes(char).length)

/** Of the shortest tokens, those that are words rather than beginnings of words. */
const short = new Set('a i am an as at be by do go he hi if in is it me my no of oh ok on or so to up us we'.split(' '))

type Word = { readonly text: string; readonly alone: boolean; readonly rank: number }

/** Words from the most common on: the tables are in the order of how often a token was met. */
function candidates(): readonly Word[] {
  const words: Word[] = []
  for (const token of old.keys()) {
    const text = token.slice(1)
    if (!/^ [a-z]+$/.test(token) || (text.length < 3 && !short.has(text))) continue
    const forms = [text, capitalised(text)]
    if (!forms.every(holdsAfterSpace)) continue
    words.push({ text, alone: forms.every(holdsAlone), rank: rankOf(token) })
  }
  return words.sort((one, other) => one.rank - other.rank)
}

/** Sorted, each word without what it shares with the one before; the sign between says how much that is and where it holds. */
function packed(words: readonly Word[]): string {
  let before = ''
  return [...words]
    .sort((one, other) => (one.text < other.text ? -1 : 1))
    .map(({ text, alone }) => {
      let shared = 0
      while (shared < 9 && shared < text.length - 1 && before[shared] === text[shared]) shared++
      before = text
      return `${(alone ? '0123456789' : 'ABCDEFGHIJ')[shared]}${text.slice(shared)}`
    })
    .join('')
}

const followers = (first: string, among: readonly string[]): string =>
  among.filter((letter) => isToken(first + letter)).join('')
const pairs = [' ', ...letters].map((first) => followers(first, letters)).join(',')
const triples = [' ', ...lower]
  .flatMap((first) => lower.map((second) => (isToken(first + second) ? followers(first + second, lower) : '')))
  .join(',')

const render = (
  words: readonly Word[],
): string => `// Written by scripts/frequent-words.ts from the tables of cl100k_base and o200k_base.

/**
 * Common words in alphabetical order, each without the letters it shares with the one before. The sign before it tells
 * how many those are: 0–9 for a word that is one token in both encodings with or without a space before it and with or
 * without a capital, A–J for one that is so only after a space.
 */
export const words =
  '${packed(words)}'

/** For space, A–Z and a–z in this order: the letters that make a token of both encodings together with it. */
export const pairs =
  '${pairs}'

/** The same for every pair of space or a small letter with a small letter. */
export const triples =
  '${triples}'
`

const all = candidates()
let count = all.length
while (render(all.slice(0, count)).length > largest) count -= count > 4000 ? 500 : 5
writeFileSync(target, render(all.slice(0, count)))
console.log(`${count} words, ${all.slice(0, count).filter((word) => word.alone).length} of them anywhere`)
