import type { Source } from '../../domain/entry.ts'
import { anchorsIn } from '../../text/anchors.ts'
import { sentencesOf } from '../../text/sentences.ts'
import { type Piece, tidy } from './pieces.ts'
import { type Named, parse } from './render.ts'
import { smuggledIn } from './smuggled.ts'
import { isNamed } from './tail.ts'
import { countWords, type Summarised } from './told.ts'

/** An earlier summary in pieces, and every name in it. */
export type Earlier = { readonly pieces: readonly Piece[]; readonly names: readonly Named[] }

/**
 * Takes an earlier summary apart. Of one that was made here each line has its own source; of any other every sentence may
 * come from everywhere.
 */
export function earlierOf(previous: Summarised | undefined): Earlier {
  if (previous === undefined) return { pieces: [], names: [] }
  const { lines, names } = parse(previous.text)
  const isOwn =
    lines.length + names.length === previous.sources.length && previous.sources.every(({ span }) => span !== undefined)
  const sourcesAt = (place: number): readonly Source[] =>
    isOwn ? previous.sources.slice(place, place + 1) : previous.sources
  const pieces = lines.flatMap(({ speaker, text }, at) =>
    (isOwn ? [text] : sentencesOf(text).map((sentence) => sentence.text)).flatMap((said) =>
      pieceOf(speaker, said, sourcesAt(at)),
    ),
  )
  const named = names
    .map((text, at) => ({ text, sources: sourcesAt(lines.length + at) }))
    .filter(({ text }) => isName(text))
  // A piece may have to go this time, and leave its names behind.
  const shown = pieces.flatMap(({ text, sources }) =>
    anchorsIn(text).flatMap((anchor) => (isNamed(anchor) ? [{ text: anchor.text, sources }] : [])),
  )
  return { pieces, names: [...named, ...shown] }
}

const isName = (text: string): boolean => text.trim() !== '' && smuggledIn(text).length === 0

function pieceOf(speaker: string, said: string, sources: readonly Source[]): Piece[] {
  const text = tidy(said)
  if (text === '' || smuggledIn(text).length > 0) return []
  return [
    {
      text,
      kind: 'earlier',
      speaker,
      isPerson: speaker !== 'Assistant' && speaker !== 'Tool' && speaker !== 'Note',
      sources,
      words: countWords(text),
      isPart: false,
      answers: false,
      isAsked: false,
    },
  ]
}
