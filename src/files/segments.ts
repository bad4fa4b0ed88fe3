import { clip } from '../text/clip.ts'
import { splitFencedLines } from '../text/fences.ts'
import { findSecrets } from '../text/secrets.ts'
import { splitSentences } from '../text/sentences.ts'
import type { ParsedDocument } from './parseFile.ts'

/** Quality of a break: 0 inside a sentence, 1 after a sentence or line, 2 before a paragraph, 3 before a heading. */
export type BreakQuality = 0 | 1 | 2 | 3

/** A part of a text that is never divided. */
export type TextSegment = {
  readonly text: string
  /** Quality of a break before the segment. */
  readonly breakQuality: BreakQuality
  /** Headings and page above the segment, such as `Shop › Hours › page 2`. */
  readonly location: string
}

/** Text to be split. */
export type SplittableText = Omit<ParsedDocument, 'hasFields'>

type Break = { readonly offset: number; readonly breakQuality: BreakQuality; readonly location: string }

/** Longer sentences are divided. */
const maxSentenceChars = 800
/** Longer lines of tables and code are divided. */
const maxLineChars = 4_000
/** Distance before a secret in which its label is searched. */
const maxSecretLabelChars = 500
/** Limit of a segment that is kept whole because it contains a secret. */
const maxSegmentChars = 32_768
const maxHeadingChars = 80

/**
 * Splits a text at headings, pages, paragraphs, lines and sentences; the joined segments give the text. Secrets stay in
 * one segment with the line that labels them, because half a secret would not be recognised and masked.
 *
 * @example
 * [...splitDocument({ text: '# Pets\nMiso is a cat. She sleeps.', hasHeadings: true, pages: [] })].map(({ text }) => text)
 * // ['# Pets\n', 'Miso is a cat. ', 'She sleeps.']
 */
export function* splitDocument(document: SplittableText): Generator<TextSegment> {
  const { text } = document
  const breaks = withoutBreaksInSecrets(text, [...findBreaks(document)])
  for (const [index, { offset, breakQuality, location }] of breaks.entries()) {
    const end = breaks[index + 1]?.offset ?? text.length
    yield { text: text.slice(index === 0 ? 0 : offset, end), breakQuality, location }
  }
}

function* findBreaks({ text, hasHeadings, pages }: SplittableText): Generator<Break> {
  const headings: string[] = []
  let page = 0
  let afterBlank = true
  let afterSentence = true
  for (const { start, end, fence } of splitFencedLines(text)) {
    const line = text.slice(start, end)
    if (line.trim() === '' && fence !== 'inside') {
      afterBlank = true
      continue
    }
    const heading = hasHeadings && fence === 'none' ? parseHeading(line) : undefined
    const isHeading = heading !== undefined
    if (isHeading) setHeading(headings, heading.level, heading.title)
    const isNewPage = page < pages.length && (pages[page] as number) <= start
    while (page < pages.length && (pages[page] as number) <= start) page++
    const location = formatLocation(headings, page)
    const isRow = fence !== 'none' || rowPattern.test(line)
    const breakQuality = isHeading
      ? 3
      : isNewPage || afterBlank || fence === 'open'
        ? 2
        : isRow || afterSentence
          ? 1
          : 0
    yield { offset: start, breakQuality, location }
    const innerBreaks =
      isRow || isHeading ? divideLongRange(text, start, end, maxLineChars) : findSentenceBreaks(text, start, end)
    for (const inner of innerBreaks) yield { ...inner, location }
    afterBlank = fence === 'close'
    afterSentence = isRow || isHeading || /[.!?…:。！？]["'”’)\]]*\s*$/.test(line)
  }
}

type Heading = { readonly level: number; readonly title: string }

/** Parses a heading; undefined for another line. Reads each character once: lines may have any length. */
function parseHeading(line: string): Heading | undefined {
  const [, hashes, text] = /^ {0,3}(#{1,6})[ \t]+(\S.*)$/.exec(line) ?? []
  if (hashes === undefined || text === undefined) return undefined
  let end = text.length
  while (end > 0 && /[ \t#]/.test(text.charAt(end - 1))) end--
  return end === 0 ? undefined : { level: hashes.length, title: text.slice(0, end) }
}

/** Matches rows of tables and items of lists. */
const rowPattern = /^\s*(?:\||[-*+•] |\d{1,4}[.)] )/

/** Replaces the headings from `level` down; skipped levels become empty strings. */
function setHeading(headings: string[], level: number, title: string): void {
  const skipped = Array.from({ length: Math.max(0, level - 1 - headings.length) }, () => '')
  headings.splice(level - 1, headings.length, ...skipped, clip(title, maxHeadingChars, '…'))
}

const formatLocation = (headings: readonly string[], page: number): string =>
  [...headings.filter((heading) => heading !== ''), ...(page === 0 ? [] : [`page ${page}`])].join(' › ')

function* findSentenceBreaks(text: string, start: number, end: number): Generator<Omit<Break, 'location'>> {
  const starts = splitSentences(text.slice(start, end)).map((sentence) => start + sentence.start)
  for (const [index, offset] of starts.entries()) {
    if (index > 0) yield { offset, breakQuality: 1 }
    yield* divideLongRange(text, index === 0 ? start : offset, starts[index + 1] ?? end, maxSentenceChars)
  }
}

/** Divides a range into parts of at most `maxChars` without splitting a surrogate pair. */
function* divideLongRange(
  text: string,
  start: number,
  end: number,
  maxChars: number,
): Generator<Omit<Break, 'location'>> {
  for (let offset = start + maxChars; offset < end; offset += maxChars) {
    if (/[\udc00-\udfff]/.test(text.charAt(offset))) offset--
    yield { offset, breakQuality: 0 }
  }
}

/**
 * Removes breaks inside secrets and between a secret and its label, unless a segment would exceed `maxSegmentChars`.
 */
function withoutBreaksInSecrets(text: string, breaks: readonly Break[]): readonly Break[] {
  const ranges = findSecrets(text).map(({ start, end }) => ({ start: findLabelStart(text, start), end }))
  let index = 0
  let lastBreak = 0
  return breaks.filter(({ offset }) => {
    while ((ranges[index]?.end ?? Number.POSITIVE_INFINITY) <= offset) index++
    const isInside = (ranges[index]?.start ?? Number.POSITIVE_INFINITY) < offset
    if (isInside && offset - lastBreak < maxSegmentChars) return false
    lastBreak = offset
    return true
  })
}

/** Finds the start of the last non-empty line before a secret, which may be its only label. */
function findLabelStart(text: string, secretStart: number): number {
  const from = Math.max(0, secretStart - maxSecretLabelChars)
  const before = text.slice(from, secretStart).trimEnd()
  return from + before.lastIndexOf('\n') + 1
}
