import { extractTerms } from '../../text/words.ts'
import type { Work } from '../work.ts'
import type { Piece } from './pieces.ts'

/** Pieces compared on each side of a possible boundary. */
const windowPieces = 6
/** A segment has at least this many pieces. */
const minSegmentPieces = 5

/**
 * Assigns pieces to topic segments: a new one starts on another day, and where the words before and after have least in
 * common. Returns the number of the segment of each piece.
 */
export function* findSegments(pieces: readonly Piece[]): Work<readonly number[]> {
  const terms: (readonly string[])[] = []
  for (const { text } of pieces) {
    terms.push([...new Set(extractTerms(text))])
    yield text.length
  }
  const cohesion = pieces.map((_, at) => measureCohesion(terms, at))
  const inner = cohesion.slice(minSegmentPieces, -minSegmentPieces)
  const mean = inner.reduce((sum, value) => sum + value, 0) / Math.max(1, inner.length)
  const segments: number[] = []
  let [segment, start] = [0, 0]
  for (const [at, { day }] of pieces.entries()) {
    const isLow = (cohesion[at] ?? 1) <= Math.min(mean / 2, cohesion[at - 1] ?? 1, cohesion[at + 1] ?? 1)
    const isNewDay = at > 0 && day !== pieces[at - 1]?.day
    if (isNewDay || (isLow && at - start >= minSegmentPieces)) {
      segment++
      start = at
    }
    segments.push(segment)
  }
  return segments
}

/** Share of the terms after a position that also occur before it. */
function measureCohesion(terms: readonly (readonly string[])[], at: number): number {
  const before = new Set(terms.slice(Math.max(0, at - windowPieces), at).flat())
  const after = new Set(terms.slice(at, at + windowPieces).flat())
  let shared = 0
  for (const term of after) if (before.has(term)) shared++
  return shared / Math.max(1, Math.min(before.size, after.size))
}
