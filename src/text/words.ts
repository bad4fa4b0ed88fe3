import { stem } from './stem.ts'

export { stem }

/** Longer words, such as keys and blobs, are cut to this length. */
const maxWordCharacters = 128

const unknown = 0
const gap = 1
const letter = 2
/** Combining mark: belongs to the letter before it. */
const mark = 3
/** Joins the letters on both sides into one identifier: `src/a.ts`, `well-known`, `don't`. */
const joiner = 4
/** Letter of a script without spaces: every character and every pair of neighbours is a word. */
const dense = 5

/** Kind of every UTF-16 code unit; outside ASCII it is determined on first use. */
const kinds = new Uint8Array(0x10000)
for (let code = 0; code < 128; code++) kinds[code] = /\w/.test(String.fromCharCode(code)) ? letter : gap
for (const character of "./-@'’") kinds[character.charCodeAt(0)] = joiner
for (const invisible of '\u00ad\u200c\u200d') kinds[invisible.charCodeAt(0)] = mark

const isDense =
  /(?:\p{scx=Han}|\p{scx=Hira}|\p{scx=Kana}|\p{scx=Hang}|\p{scx=Thai}|\p{scx=Laoo}|\p{scx=Khmr}|\p{scx=Mymr})/u

function classify(character: string): number {
  if (/\p{M}/u.test(character)) return mark
  if (!/[\p{L}\p{N}]/u.test(character)) return gap
  return isDense.test(character) ? dense : letter
}

function kindAt(text: string, at: number): number {
  const code = text.charCodeAt(at)
  const kind = kinds[code] ?? gap
  if (kind !== unknown) return kind
  // A low surrogate continues the character that its high surrogate began.
  if (code >= 0xdc00 && code <= 0xdfff) return mark
  const found = classify(String.fromCodePoint(text.codePointAt(at) ?? code))
  const isHighSurrogate = code >= 0xd800 && code <= 0xdbff
  if (!isHighSurrogate) kinds[code] = found
  return found
}

/**
 * Splits a text into words, in lower case and without accents. An identifier gives itself, followed by its parts.
 *
 * @example
 * splitWords("Don't touch src/userName.ts") // ["don't", 'touch', 'src/username.ts', 'src', 'username', 'user', 'name', 'ts']
 */
export function splitWords(text: string): string[] {
  const words: string[] = []
  let at = 0
  while (at < text.length) {
    const kind = kindAt(text, at)
    if (kind === letter) at = takeWord(text, at, words)
    else if (kind === dense) at = takeDense(text, at, words)
    else at++
  }
  return words
}

function takeWord(text: string, start: number, words: string[]): number {
  let at = start
  let plain = true
  let compound = false
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at)
    const kind = code < 128 ? kinds[code] : kindAt(text, at)
    if (kind === joiner) {
      if (at + 1 >= text.length || kindAt(text, at + 1) !== letter) break
      compound = true
    } else if (kind !== letter && kind !== mark) break
    if (code > 127) plain = false
    else if (code === 95 || (code >= 65 && code <= 90 && at > start)) compound = true
  }
  const word = text.slice(start, at)
  if (compound) takeParts(word, plain, words)
  else words.push(fold(word, plain))
  return at
}

const joinerPattern = /[./\-@]|['’](?=[^'’]{3})/
const camelCaseBoundary = /_+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})/

function takeParts(word: string, plain: boolean, words: string[]): void {
  const pieces = word.split(joinerPattern)
  if (pieces.length > 1 && word.length <= maxWordCharacters) words.push(fold(word, plain))
  for (const piece of pieces) {
    const parts = piece.split(camelCaseBoundary).filter((part) => part !== '')
    if (parts.length > 1) words.push(fold(piece, plain).replace(/^_+|(?<!_)_+$/g, ''))
    for (const part of parts) words.push(fold(part, plain))
  }
}

function takeDense(text: string, start: number, words: string[]): number {
  let at = start
  let before = ''
  while (at < text.length && kindAt(text, at) === dense) {
    let end = at + 1
    while (end < text.length && end - at < maxWordCharacters && kindAt(text, end) === mark) end++
    const character = text.slice(at, end)
    words.push(character)
    if (before !== '') words.push(before + character)
    before = character
    at = end
  }
  return at
}

/** Lower-cases a word and removes accents. */
function fold(word: string, plain: boolean): string {
  const cut = word.length > maxWordCharacters ? word.slice(0, maxWordCharacters) : word
  if (plain) return cut.toLowerCase()
  const folded = cut
    .normalize('NFKD')
    // Some letters, such as ﷺ, decompose into several words; removing the spaces keeps them as one.
    .replace(/[\u0300-\u036f\u00ad\u200c\u200d]|\s|[\ud800-\udbff]$/g, '')
    .replace(/’/g, "'")
    .normalize('NFC')
    .toLowerCase()
  return folded === '' ? cut : folded
}

const stopwords = new Set(
  `a about after again all also am an and any are aren't as at be because been before being but by can can't could couldn't did didn't do does doesn't
  doing don't down each few for from further had hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself him himself his
  how how's i i'd i'll i'm i've if in into is isn't it it'd it'll it's its itself just let's me more most my myself no nor not now of off ok okay on once only or
  other our ours ourselves out over own please really same shall she she'd she'll she's should shouldn't so some such than that that's the their theirs them
  themselves then there there's these they they'd they'll they're they've this those through to too under until up us very was wasn't we we'd we'll we're
  we've were weren't what what's when when's where where's which while who who's whom whose why why's will with won't would wouldn't yeah yes you you'd
  you'll you're you've your yours yourself yourselves`.split(/\s+/),
)

/** Tells whether a lower-case English word is too common to distinguish texts. */
export const isStopword = (word: string): boolean => stopwords.has(word)

/** Extracts the search terms of a text: the stems of its words without stopwords. */
export function extractTerms(text: string): string[] {
  const terms: string[] = []
  for (const word of splitWords(text)) if (!stopwords.has(word)) terms.push(stem(word))
  return terms
}

/** Characters looked at first, since natural text has some words in them, and at most. */
const [firstTermsCharacters, maxTermsCharacters] = [1_024, 32_768]

/**
 * Tells whether the beginning of a text has at least `count` search terms. Reads no more of it than needed: white space
 * ends every word, so that the terms before it are those of the whole text.
 */
export function hasTerms(text: string, count: number): boolean {
  const longest = Math.min(text.length, maxTermsCharacters)
  for (let length = firstTermsCharacters; length < longest; length *= 4) {
    const end = text.slice(0, length).search(/\s\S*$/)
    if (end > 0 && extractTerms(text.slice(0, end)).length >= count) return true
  }
  return extractTerms(text.slice(0, longest)).length >= count
}
