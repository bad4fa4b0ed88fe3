import type { Source } from '../../domain/entry.ts'
import { sentencesOf } from '../../text/sentences.ts'
import { type Piece, tidy } from './pieces.ts'
import { type Named, parse } from './render.ts'
import { smuggledIn } from './smuggled.ts'
import { countWords, type Summarised } from './told.ts'

/**
 * An earlier summary in pieces. Of one that was made here each line has its own source; of any other every sentence may
 * come from everywhere.
 */
export function earlierOf(previous: Summarised | undefined): { readonly pieces: readonly Piece[]; readonly names: readonly Named[] } {
  if (previous === undefined) return { pieces: [], names: [] }
  const { lines, names } = parse(previous.text)
  const isOwn = lines.length + names.length === previous.sources.length && previous.sources.every(({ span }) => span !== undefined)
  if (!isOwn) {
    const pieces = lines.flatMap(({ speaker, text }) => sentencesOf(text).flatMap((sentence) => pieceOf(speaker, sentence.text, previous.sources)))
    return { pieces, names: names.filter(isName).map((text) => ({ text, source: previous.sources })) }
  }
  const sourceAt = (place: number): readonly Source[] => previous.sources.slice(place, place + 1)
  return {
    pieces: lines.flatMap(({ speaker, text }, at) => pieceOf(speaker, text, sourceAt(at))),
    names: names.map((text, at) => ({ text, source: sourceAt(lines.length + at) })).filter(({ text }) => isName(text)),
  }
}

const isName = (text: string): boolean => /^\S+$/.test(text)

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
