import type { Source } from '../../domain/entry.ts'
import type { Piece } from './pieces.ts'
import type { SummaryText } from './summary.ts'

/** A name or number of the source that is listed at the end because no piece shows it. */
export type NamedEntity = { readonly text: string; readonly sources: readonly Source[] }

const tailLabel = 'Also named: '
const speakerLine = /^([\p{L}\p{N}][^:\n]{0,39}): (.*)$/su

/** Renders one line per piece, with the speaker before the first line of a run, and a last line with the tail names. */
export function renderPieces(pieces: readonly Piece[], tail: readonly NamedEntity[]): string {
  const lines: string[] = []
  let speaker = ''
  for (const piece of pieces) {
    // A text that looks like a speaker line gets the label of its actual speaker.
    const isLabelled = piece.speaker !== '' && (piece.speaker !== speaker || speakerLine.test(piece.text))
    lines.push(isLabelled ? `${piece.speaker}: ${piece.text}` : piece.text)
    speaker = piece.speaker
  }
  if (tail.length > 0) lines.push(tailLabel + tail.map(({ text }) => text).join(', '))
  return lines.join('\n')
}

/** Renders a summary with one source per piece and name in their order, or with all distinct sources if a piece has several. */
export function buildSummaryText(pieces: readonly Piece[], tail: readonly NamedEntity[]): SummaryText {
  const all = [...pieces, ...tail].map(({ sources }) => sources)
  return {
    text: renderPieces(pieces, tail),
    sources: all.every(({ length }) => length === 1) ? all.flat() : uniqueSources(all.flat()),
  }
}

function uniqueSources(sources: readonly Source[]): readonly Source[] {
  return [
    ...new Map(
      sources.map((source) => [`${source.session ?? ''}\n${source.message}\n${source.span?.join('-') ?? ''}`, source]),
    ).values(),
  ]
}

/** Splits a rendered summary into its lines with their speakers, and the names at its end. */
export function parse(text: string): {
  readonly lines: readonly { readonly speaker: string; readonly text: string }[]
  readonly names: readonly string[]
} {
  const lines: { speaker: string; text: string }[] = []
  const names: string[] = []
  let speaker = ''
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    if (line.startsWith(tailLabel)) {
      names.push(...line.slice(tailLabel.length).split(', '))
      continue
    }
    const [, label, rest] = speakerLine.exec(line) ?? []
    speaker = label ?? speaker
    lines.push({ speaker, text: rest ?? line })
  }
  return { lines, names }
}
