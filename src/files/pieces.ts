import { clip } from '../text/clip.ts'
import { linesOf } from '../text/fences.ts'
import { findSecrets } from '../text/secrets.ts'
import { sentencesOf } from '../text/sentences.ts'
import type { Document } from './read.ts'

/** How good a place to cut is: inside a sentence, at the end of one or of a line, before a paragraph, before a heading. */
export type Cut = 0 | 1 | 2 | 3

/** A part of a text that stays in one piece. `cut` is about the place before it, `place` the headings and page it stands under. */
export type Piece = { readonly text: string; readonly cut: Cut; readonly place: string }

type Bound = { readonly at: number; readonly cut: Cut; readonly place: string }

/** Longer sentences, and lines of tables and code, are cut wherever they are that long. */
const longest = { sentence: 800, line: 4_000 }
/** So far before a secret is looked for what names it. */
const longestName = 500
/** Also with secrets in it, no piece is longer. */
const longestPiece = 32_768

/**
 * Takes a text apart where it may be cut: at headings, pages, paragraphs, lines and sentences. Joined, the pieces give the
 * text. A secret is not cut, nor cut off from what tells it for one: half of it would not be recognised.
 *
 * @example
 * [...piecesOf({ text: '# Pets\nMiso is a cat. She sleeps.', hasHeadings: true, pages: [] })].map(({ text }) => text)
 * // ['# Pets\n', 'Miso is a cat. ', 'She sleeps.']
 */
export function* piecesOf(document: Document): Generator<Piece> {
  const { text } = document
  const bounds = uncut(text, [...boundsOf(document)])
  for (const [number, { at, cut, place }] of bounds.entries()) {
    yield { text: text.slice(number === 0 ? 0 : at, bounds[number + 1]?.at ?? text.length), cut, place }
  }
}

function* boundsOf({ text, hasHeadings, pages }: Document): Generator<Bound> {
  const path: string[] = []
  let page = 0
  let [afterBlank, afterSentence] = [true, true]
  for (const { start, end, fence } of linesOf(text)) {
    const line = text.slice(start, end)
    if (line.trim() === '' && fence !== 'inside') {
      afterBlank = true
      continue
    }
    const [, signs, title] = (hasHeadings && fence === 'none' && heading.exec(line)) || []
    if (signs !== undefined)
      path.splice(signs.length - 1, path.length, ...levels(path, signs.length), clip(title as string, 80, '…'))
    const isNewPage = page < pages.length && (pages[page] as number) <= start
    while (page < pages.length && (pages[page] as number) <= start) page++
    const place = [...path.filter((part) => part !== ''), ...(page === 0 ? [] : [`page ${page}`])].join(' › ')
    const isRow = fence !== 'none' || row.test(line)
    const cut =
      signs !== undefined ? 3 : isNewPage || afterBlank || fence === 'open' ? 2 : isRow || afterSentence ? 1 : 0
    yield { at: start, cut, place }
    for (const within of isRow || signs !== undefined
      ? forced(text, start, end, longest.line)
      : sentenceBounds(text, start, end))
      yield { ...within, place }
    afterBlank = fence === 'close'
    afterSentence = isRow || signs !== undefined || /[.!?…:。！？]["'”’)\]]*\s*$/.test(line)
  }
}

const heading = /^ {0,3}(#{1,6})[ \t]+(.*?\S)[ \t#]*$/
/** A row of a table or an item of a list is a line of its own. */
const row = /^\s*(?:\||[-*+•] |\d{1,4}[.)] )/

/** A heading may skip levels; nothing stands for those in between. */
const levels = (path: readonly string[], depth: number): readonly string[] =>
  Array.from({ length: Math.max(0, depth - 1 - path.length) }, () => '')

function* sentenceBounds(text: string, start: number, end: number): Generator<Omit<Bound, 'place'>> {
  const starts = sentencesOf(text.slice(start, end)).map((sentence) => start + sentence.start)
  for (const [number, at] of starts.entries()) {
    if (number > 0) yield { at, cut: 1 }
    yield* forced(text, number === 0 ? start : at, starts[number + 1] ?? end, longest.sentence)
  }
}

/** Where something too long is cut for want of a better place; never inside a character. */
function* forced(text: string, start: number, end: number, most: number): Generator<Omit<Bound, 'place'>> {
  for (let at = start + most; at < end; at += most) {
    if (/[\udc00-\udfff]/.test(text.charAt(at))) at--
    yield { at, cut: 0 }
  }
}

/** Without the places inside a secret and between it and what it stands after; in the end everything is cut. */
function uncut(text: string, bounds: readonly Bound[]): readonly Bound[] {
  const whole = findSecrets(text).map(({ start, end }) => [beginningOf(text, start), end] as const)
  let [next, last] = [0, 0]
  return bounds.filter(({ at }) => {
    while ((whole[next]?.[1] ?? Number.POSITIVE_INFINITY) <= at) next++
    const isInside = (whole[next]?.[0] ?? Number.POSITIVE_INFINITY) < at
    if (isInside && at - last < longestPiece) return false
    last = at
    return true
  })
}

/** Where the line of what stands before a secret begins: that may be all that tells it for one. */
function beginningOf(text: string, secret: number): number {
  const from = Math.max(0, secret - longestName)
  const before = text.slice(from, secret).trimEnd()
  return from + before.lastIndexOf('\n') + 1
}
