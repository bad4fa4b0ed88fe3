import type { Source } from '../../domain/entry.ts'
import type { Piece } from './pieces.ts'
import type { Summarised } from './told.ts'

/** A name or number of the source that no piece shows. */
export type Named = { readonly text: string; readonly sources: readonly Source[] }

const tailLabel = 'Also named: '
const labelled = /^([\p{L}\p{N}][^:\n]{0,39}): (.*)$/su

/** One line for each piece, the speaker before the first of a run, and last the names that no piece shows. */
export function render(pieces: readonly Piece[], tail: readonly Named[]): string {
  const lines: string[] = []
  let speaker = ''
  for (const piece of pieces) {
    // A line that looks as if somebody else were speaking says who does.
    const isShown = piece.speaker !== '' && (piece.speaker !== speaker || labelled.test(piece.text))
    lines.push(isShown ? `${piece.speaker}: ${piece.text}` : piece.text)
    speaker = piece.speaker
  }
  if (tail.length > 0) lines.push(tailLabel + tail.map(({ text }) => text).join(', '))
  return lines.join('\n')
}

/** A summary with where it comes from: a source for each piece and each name in their order, if each has one. */
export function summarised(pieces: readonly Piece[], tail: readonly Named[]): Summarised {
  const all = [...pieces, ...tail].map(({ sources }) => sources)
  return {
    text: render(pieces, tail),
    sources: all.every(({ length }) => length === 1) ? all.flat() : unique(all.flat()),
  }
}

function unique(sources: readonly Source[]): readonly Source[] {
  return [
    ...new Map(
      sources.map((source) => [`${source.session ?? ''}\n${source.message}\n${source.span?.join('-') ?? ''}`, source]),
    ).values(),
  ]
}

/** What a rendered summary consists of: its lines with who said them, and the names at its end. */
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
    const [, label, rest] = labelled.exec(line) ?? []
    speaker = label ?? speaker
    lines.push({ speaker, text: rest ?? line })
  }
  return { lines, names }
}
