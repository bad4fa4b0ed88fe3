import type { Work } from '../../domain/work.ts'
import { type Anchor, findAnchors } from '../../text/anchors.ts'
import { isStopword } from '../../text/words.ts'
import { isNameable, mentionWeight } from './coverage.ts'
import { findInjections } from './injectionCheck.ts'
import { itemJoint, type Piece, pieceWork } from './pieces.ts'
import { collapseWhitespace, type NamedEntity } from './summary.ts'

/** A name or number with the words around it that say what it is. */
export type Detail = NamedEntity & { readonly name: string }

type DetailCandidate = { readonly detail: Detail; readonly mentions: number }

/** Sum of the weights of mentions of a name from code: once by a person, or several times by an assistant. */
const minMentions = 3
const isCodeName = (name: string): boolean => /^[\w$.@-]*[A-Za-z_]$/.test(name)
const referenceFactor = 2
/** Words of context on each side of a name. */
const wordsBefore = 4
const wordsAfter = 2

/** Ranks the names and numbers in prose, each with its context, by importance for their length. */
export function* rankDetails(pieces: readonly Piece[]): Work<readonly Detail[]> {
  const candidates = new Map<string, DetailCandidate>()
  const add = (detail: Detail, mention: number): void => {
    const known = candidates.get(detail.name)
    // The newest context is kept: it has the last state of an order or a ticket.
    candidates.set(detail.name, { detail, mentions: (known?.mentions ?? 0) + mention })
  }
  for (const piece of pieces) {
    if (piece.isFiller || piece.kind === 'output') continue
    for (const anchor of findAnchors(piece.text)) {
      if (!isNameable(anchor) || year.test(anchor.text) || /^[A-Za-z]+(?:[-/][A-Za-z]+)+$/.test(anchor.text)) continue
      const text = piece.kind === 'detail' ? piece.text : withContext(piece.text, anchor)
      // A bare name says nothing.
      if (text !== anchor.text && text !== undefined)
        add({ text, name: anchor.text, sources: sourcesOf(piece, anchor) }, weigh(piece))
    }
    yield pieceWork(piece)
  }
  return [...candidates.values()]
    .filter(({ detail, mentions }) => mentions >= (isCodeName(detail.name) ? minMentions : 1))
    .sort((left, right) => score(right) - score(left))
    .map(({ detail }) => detail)
}

/** Returns the source of an anchor: each item of a series has its own, and a detail must have one. */
function sourcesOf({ kind, text, sources }: Piece, { start }: Anchor): Piece['sources'] {
  const isItemised = kind === 'series' && sources.length === text.split(itemJoint).length
  const item = text.slice(0, start).split(itemJoint).length - 1
  return isItemised ? sources.slice(item, item + 1) : sources
}

const weigh = ({ isPerson }: Piece): number => mentionWeight({ role: isPerson ? 'user' : 'assistant' })
const score = ({ detail, mentions }: DetailCandidate): number =>
  ((reference.test(detail.name) ? referenceFactor : 1) * Math.log(2 + mentions)) / (12 + detail.text.length)

/** Boundaries of a clause: context does not cross them. */
const boundary = /[,;:!?()[\]{}"“”|—–]|\.(?=\s|$)|\s-\s/

/** Returns a name with the words of its clause next to it; undefined if there are none. */
function withContext(text: string, { start, end, text: name }: Anchor): string | undefined {
  const left = (
    text
      .slice(Math.max(0, start - 80), start)
      .split(boundary)
      .at(-1) ?? ''
  ).split(/\s+/)
  const right = (text.slice(end, end + 60).split(boundary)[0] ?? '').split(/\s+/)
  // The outermost word may be cut.
  if (start > 80 && left.length > 1) left.shift()
  const before = left.slice(-wordsBefore - 1)
  const after = right.slice(0, wordsAfter + 1)
  while (before.length > 1 && isWeak(before[0] ?? '')) before.shift()
  while (after.length > 1 && isWeak(after.at(-1) ?? '')) after.pop()
  const snippet = collapseWhitespace((before.join(' ') + name + after.join(' ')).replaceAll('`', ''))
    .replace(/^\s*[-*•]+\s/, '')
    .trim()
  const rest = snippet.replace(name, '')
  return /\p{L}{3}/u.test(rest) && !snippet.includes('; ') && findInjections(snippet).length === 0 ? snippet : undefined
}

const isWeak = (word: string): boolean => isStopword(word.toLowerCase()) || !/[\p{L}\p{N}]/u.test(word)
/** Order, ticket and part numbers. */
const reference = /^#?[A-Z]{1,6}-?\d{2,}/
const year = /^(?:19|20)\d\d$/
