import { runSync, type Work } from '../domain/work.ts'
import { splitFencedLinesInSteps } from './fences.ts'

/** Sentence, or a line without one: `text.slice(start, end)` of the split text. */
export type Sentence = { readonly text: string; readonly start: number; readonly end: number }

/** Longer sentences are split at a space. */
const maxSentenceCharacters = 600

/**
 * Splits a text into sentences. A line break ends a sentence. Fenced code is split into lines with their indentation;
 * the fences themselves are dropped.
 *
 * @example
 * splitSentences('Dr. Wu came. Did she?').map((sentence) => sentence.text) // ['Dr. Wu came.', 'Did she?']
 */
export const splitSentences = (text: string): Sentence[] => runSync(splitSentencesInSteps(text))

/** Lines and sentences per step; they are cheap, so that a slice has many. */
const sentencesPerStep = 2_048

/** `splitSentences` as interruptible work. */
export function* splitSentencesInSteps(text: string): Work<Sentence[]> {
  const sentences: Sentence[] = []
  let stepEnd = sentencesPerStep
  for (const line of yield* splitFencedLinesInSteps(text)) {
    if (line.fence === 'open' || line.fence === 'close') continue
    if (line.fence === 'inside') addLine(text, line.start, line.end, sentences)
    else splitLine(text, line.start, line.end, sentences)
    if (sentences.length < stepEnd) continue
    stepEnd = sentences.length + sentencesPerStep
    yield 2 * sentencesPerStep
  }
  return sentences
}

function addLine(text: string, start: number, end: number, sentences: Sentence[]): void {
  const line = text.slice(start, end).trimEnd()
  if (line !== '') sentences.push({ text: line, start, end: start + line.length })
}

function splitLine(text: string, start: number, end: number, sentences: Sentence[]): void {
  let from = start
  let space = -1
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at)
    if (isSpace(code)) space = at
    let cut = -1
    if (isStop(code)) {
      const next = skipClosers(text, at + 1, end)
      if (endsSentence(text, from, at, next, end)) cut = next
      at = next - 1
    }
    if (cut < 0 && at - from >= maxSentenceCharacters && space > from) cut = space
    if (cut < 0) continue
    addSentence(text, from, cut, sentences)
    from = cut
    space = -1
  }
  addSentence(text, from, end, sentences)
}

function addSentence(text: string, from: number, to: number, sentences: Sentence[]): void {
  const found = text.slice(from, to)
  const start = from + (found.length - found.trimStart().length)
  const trimmed = found.trim()
  if (trimmed !== '') sentences.push({ text: trimmed, start, end: start + trimmed.length })
}

/** Recognises . ! ? … and their full-width forms. */
const isStop = (code: number): boolean =>
  code === 46 ||
  code === 33 ||
  code === 63 ||
  code === 0x2026 ||
  code === 0x3002 ||
  code === 0xff01 ||
  code === 0xff1f ||
  code === 0xff61
const isSpace = (code: number): boolean => code === 32 || (code >= 9 && code <= 13) || code === 0xa0 || code === 0x3000

/** Skips quotation marks, brackets and further stops: they belong to the sentence they close. */
function skipClosers(text: string, start: number, end: number): number {
  let next = start
  while (next < end && closers.has(text.charCodeAt(next))) next++
  return next
}

/** Tells whether the stop at `at`, with closers up to `next`, ends the sentence that began at `from`. */
function endsSentence(text: string, from: number, at: number, next: number, end: number): boolean {
  const code = text.charCodeAt(at)
  if (code > 0x2026) return true
  if (next < end && !isSpace(text.charCodeAt(next))) return false
  return (
    code !== 46 ||
    !(isAbbreviation(text, from, at) || continuesInLowerCase(text, next, end) || isDayOfMonth(text, at, next))
  )
}

const monthStart = /^\s{1,4}(?:jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|nov|dez)\p{Ll}{0,6}(?!\p{L})/iu

/** Recognises a German date such as `14. März`. */
const isDayOfMonth = (text: string, at: number, next: number): boolean =>
  /\d/.test(text.charAt(at - 1)) && monthStart.test(text.slice(next, next + 16))

const closers = new Set([...'.!?…)]}"\'”’»*_`。！？」』）'].map((character) => character.charCodeAt(0)))

const abbreviations = new Set(
  'mr mrs ms dr prof st jr sr vs etc e.g i.e cf al no nr fig approx dept est inc ltd co corp jan feb mar apr jun jul aug sep sept oct nov dec'.split(
    ' ',
  ),
)

/** Recognises `Dr.`, `e.g.`, an initial, or the number of a list item. */
function isAbbreviation(text: string, from: number, at: number): boolean {
  let start = at
  while (
    start > from &&
    at - start < 6 &&
    !isSpace(text.charCodeAt(start - 1)) &&
    !'("\'['.includes(text.charAt(start - 1))
  )
    start--
  const word = text.slice(start, at)
  if (/^[A-Z]$/.test(word) && word !== 'I') return true
  if (/^\d{1,3}$/.test(word)) return start - from < 40 && text.slice(from, start).trim() === ''
  if (/^(?:[A-Z]\.){1,3}[A-Z]$/.test(word)) return true
  // `ms` after a number is a unit.
  return word !== 'ms' && abbreviations.has(word.toLowerCase())
}

/** Tells whether a lower-case letter follows the stop, so that the sentence goes on. */
function continuesInLowerCase(text: string, start: number, end: number): boolean {
  let next = start
  while (next < end && next - start < 8 && isSpace(text.charCodeAt(next))) next++
  const code = text.charCodeAt(next)
  return next < end && code >= 97 && code <= 122
}

// Patterns that indicate how much a sentence matters.

/** Weekdays, months and relative dates. */
export const datePattern =
  /\b(?:jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|aug(?:ust)?|sept(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|(?:mon|tues|wednes|thurs|fri|satur|sun)day|yesterday|today|tomorrow|tonight|ago|weeks?|weekend|months?|years?)\b/gi
/** Numbers in digits or words. */
export const numberPattern =
  /\d+|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|once|twice|first|second|third|dozen)\b/gi
/** Capitalised words inside a sentence. */
export const namePattern = /(?<=[\p{Ll}\d,;] )\p{Lu}\p{Ll}/gu
export const firstPersonPattern = /\b(?:I|[Mm]y|[Mm]e|[Mm]ine|[Ww]e|[Oo]ur|us)\b/
/** Paths, members, URLs and code. */
export const identifierPattern = /\w[_/]\w|\w\.\w|[a-z][A-Z]|:\/\/|`/

/** Counts the matches of a global pattern, up to a limit. */
export function countMatches(limit: number, text: string, pattern: RegExp): number {
  let count = 0
  pattern.lastIndex = 0
  while (count < limit && pattern.test(text)) count++
  return count
}

const questionMark = /[?\u037e\u061f\uff1f][^?\u037e\u061f\uff1f\n]{0,120}$/u
const questionWord =
  /^\s*(?:what|when|where|who|whom|whose|which|why|how|did|do|does|is|are|was|were|has|have|had|can|could|would|will|should|am)\b/i
const orderWithDo = /^\s*do (?:it|this|that|so|not|the|them)\b/i

/** Tells whether a text asks a question rather than gives an order. Looks at its first line and its end. */
export function isQuestion(text: string): boolean {
  const [firstLine = ''] = text.slice(0, 200).trimStart().split('\n', 1)
  return (
    questionMark.test(text.slice(-400)) ||
    (questionWord.test(firstLine) && !orderWithDo.test(firstLine) && !/[.!:;]/.test(firstLine))
  )
}

/** A longer text is never nothing but a question. */
const maxQuestionCharacters = 400

/**
 * Tells whether a text states nothing: every sentence is a question that opens with a question word or an auxiliary
 * verb. "My cat is called Miso, isn't she?" states something.
 */
export function isInterrogative(text: string): boolean {
  if (text.length > maxQuestionCharacters || !/[?\uff1f]\s*$/u.test(text)) return false
  return splitSentences(text).every(
    ({ text: sentence }) => questionWord.test(sentence) && /[?\uff1f]\s*$/u.test(sentence),
  )
}
