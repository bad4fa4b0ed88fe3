import { type Anchor, findAnchors } from '../../text/anchors.ts'
import type { Work } from '../work.ts'
import { isNameable, mentionWeight } from './coverage.ts'
import { findInjections } from './injectionCheck.ts'
import type { Piece } from './pieces.ts'
import { collapseWhitespace, type NamedEntity } from './summary.ts'

/** A name or number with the words around it that say what it is. */
export type Detail = NamedEntity & { readonly name: string }

type DetailCandidate = { readonly detail: Detail; readonly mentions: number }

/** Sum of the weights of mentions: once by a person, or several times by an assistant. */
const minMentions = 3
/** Words of context on each side of a name. */
const wordsBefore = 4
const wordsAfter = 2

/** Ranks the names and numbers in prose, each with its context, by importance for their length. */
export function* rankDetails(pieces: readonly Piece[], earlier: readonly NamedEntity[]): Work<readonly Detail[]> {
  const candidates = new Map<string, DetailCandidate>()
  const add = (detail: Detail, mention: number): void => {
    const known = candidates.get(detail.name)
    // The newest context is kept: it has the last state of an order or a ticket.
    candidates.set(detail.name, { detail, mentions: (known?.mentions ?? 0) + mention })
  }
  for (const item of earlier)
    for (const anchor of findAnchors(item.text)) if (isNameable(anchor)) add({ ...item, name: anchor.text }, 3)
  for (const piece of pieces) {
    if (piece.isFiller || piece.kind === 'output') continue
    for (const anchor of findAnchors(piece.text)) {
      if (!isNameable(anchor) || /^[A-Za-z]+(?:[-/][A-Za-z]+)+$/.test(anchor.text)) continue
      const text = withContext(piece.text, anchor)
      if (text !== undefined) add({ text, name: anchor.text, sources: piece.sources.slice(0, 1) }, weigh(piece))
    }
    yield piece.text.length
  }
  return [...candidates.values()]
    .filter(({ mentions }) => mentions >= minMentions)
    .sort((left, right) => score(right) - score(left))
    .map(({ detail }) => detail)
}

const weigh = ({ isPerson }: Piece): number => mentionWeight({ role: isPerson ? 'user' : 'assistant' })
const score = ({ detail, mentions }: DetailCandidate): number => Math.log(2 + mentions) / (12 + detail.text.length)

/** Boundaries of a clause: context does not cross them. */
const boundary = /[,;:!?()[\]{}"“”|—–]|\.(?=\s|$)|\s-\s/

/** Returns a name with the words of its clause next to it; undefined if there are none. */
function withContext(text: string, { start, end, text: name }: Anchor): string | undefined {
  const before = (
    text
      .slice(Math.max(0, start - 80), start)
      .split(boundary)
      .at(-1) ?? ''
  ).split(/\s+/)
  const after = (text.slice(end, end + 60).split(boundary)[0] ?? '').split(/\s+/)
  // The outermost word may be cut, except at the start or end of the text.
  if (start > 80 && before.length > wordsBefore) before.shift()
  const left = before.slice(-wordsBefore - 1).join(' ')
  const right = after.slice(0, wordsAfter + 1).join(' ')
  const snippet = collapseWhitespace((left + name + right).replaceAll('`', ''))
    .replace(/^\s*[-*•]+\s/, '')
    .replace(/^\s*(?:(?:the|a|an|to|of|and|or|in|is|it|that|with|for|on|at|my|your|i)\s)+(?=\S+\s\S)/i, '')
    .replace(/\s(?:the|a|an|to|of|and|or|in|is|it|that|with|for|on|at|my|your|i)$/i, '')
    .trim()
  const rest = snippet.replace(name, '')
  return /\p{L}{3}/u.test(rest) && !snippet.includes('; ') && findInjections(snippet).length === 0 ? snippet : undefined
}
