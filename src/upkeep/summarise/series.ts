import type { Work } from '../../domain/work.ts'
import { itemJoint, type Piece, pieceWork } from './pieces.ts'
import { countWords } from './summary.ts'

/** Sentences with the same words and other figures are merged from this many on. */
const minSeriesPieces = 3
const maxSeriesChars = 240
/** Figures and the words between them may take up to this share of a sentence; otherwise it is told in full. */
const maxValueShare = 0.6

/** Merges short sentences that differ in figures only, such as readings of a meter, into lists of their values. */
export function* mergeSeries(pieces: readonly Piece[]): Work<readonly Piece[]> {
  const groups = new Map<string, Piece[]>()
  for (const piece of pieces) {
    const frame = frameOf(piece)
    yield pieceWork(piece)
    if (frame === undefined) continue
    const group = groups.get(frame)
    if (group === undefined) groups.set(frame, [piece])
    else group.push(piece)
  }
  const replaced = new Map<Piece, readonly Piece[]>()
  for (const group of groups.values()) {
    if (group.length < minSeriesPieces) continue
    for (const piece of group) replaced.set(piece, [])
    replaced.set(group[0] as Piece, buildSeries(group))
  }
  return replaced.size === 0 ? pieces : pieces.flatMap((piece) => replaced.get(piece) ?? [piece])
}

/** Sentence with its figures masked; undefined if it has none or is no candidate. */
function frameOf({ text, kind, sources, speaker, isFiller }: Piece): string | undefined {
  if (kind === 'series' || isFiller || sources.length !== 1 || text.length > 160 || text.includes(itemJoint))
    return undefined
  const value = valuePart(text)
  if (value === undefined || value.length > maxValueShare * text.length) return undefined
  return `${speaker}: ${text.replace(/\d+(?:[.,]\d+)*/g, '#')}`
}

/** Part of a sentence from its first to its last figure. */
const valuePart = (text: string): string | undefined => /\d(?:.*\d)?/s.exec(text)?.[0]

function buildSeries(group: readonly Piece[]): readonly Piece[] {
  const series: Piece[] = []
  let chunk: Piece[] = []
  let chars = 0
  const flush = (): void => {
    const [first] = chunk
    if (first === undefined) return
    const text = chunk
      .map((piece, at) => (at === 0 ? piece.text.replace(/[.!]$/, '') : valuePart(piece.text)))
      .join(itemJoint)
    series.push({
      ...first,
      text,
      kind: 'series',
      words: countWords(text),
      sources: chunk.flatMap(({ sources }) => sources),
      needsPrevious: false,
    })
    chunk = []
    chars = 0
  }
  for (const piece of group) {
    chunk.push(piece)
    chars += chunk.length === 1 ? piece.text.length : (valuePart(piece.text)?.length ?? 0) + itemJoint.length
    if (chars > maxSeriesChars) flush()
  }
  flush()
  return series
}
