import type { Message, Tokens } from '../domain/entry.ts'
import { getOrCompute } from '../domain/keyed.ts'
import type { Band } from '../domain/profile.ts'
import type { PassageRange } from '../text/passages.ts'
import type { MessagePiece } from './allocation.ts'
import { firstSequence, type Renderer, renderModeOf, singleUnit, type Unit } from './render.ts'

/** Joins the shown passages of each message into one piece, which costs no more than they do. */
export function joinPassages(
  pieces: readonly MessagePiece[],
  renderer: Renderer,
): { pieces: MessagePiece[]; savedTokens: Tokens } {
  const joined: MessagePiece[] = []
  const parts = new Map<number, MessagePiece[]>()
  let savedTokens = 0
  for (const piece of pieces) {
    if (piece.unit.passage === undefined) joined.push(piece)
    else getOrCompute(parts, firstSequence(piece.unit), () => []).push(piece)
  }
  for (const group of parts.values()) {
    const piece = group.length === 1 ? (group[0] as MessagePiece) : joinPieces(group, renderer)
    joined.push(piece)
    savedTokens += sumTokens(group) - piece.rendering.tokens
  }
  return { pieces: joined, savedTokens }
}

/** Shares of the room to try for a beginning: some text needs more tokens than the average of its message. */
const beginningShares = [1, 0.95, 0.9, 0.85]

/** Lists cuts of a passage to its first words, longest first, which cost about `tokens`. */
export function listBeginnings(unit: Unit, tokens: Tokens): readonly Unit[] {
  const { content, lineTokens } = unit.messages[0] as Message
  const [start, end] = unit.passage ?? [0, content.length]
  return beginningShares.flatMap((share) => {
    const length = Math.floor(((share * tokens) / Math.max(1, lineTokens)) * content.length)
    const space = content.slice(start, Math.min(end, start + length)).lastIndexOf(' ')
    return space > 0 ? [{ ...unit, passage: [start, start + space] }] : []
  })
}

const sumTokens = (pieces: readonly MessagePiece[]): Tokens =>
  pieces.reduce((sum, { rendering }) => sum + rendering.tokens, 0)

function joinPieces(parts: readonly MessagePiece[], renderer: Renderer): MessagePiece {
  const sorted = parts.toSorted((a, b) => startOf(a) - startOf(b))
  const [first] = sorted as [MessagePiece]
  const message = first.unit.messages[0] as Message
  const passages = sorted.map(({ unit }) => unit.passage as PassageRange)
  const maxTokens = sumTokens(parts)
  const mode = renderModeOf(first.band as Band)
  const isComplete = passages.reduce((sum, [start, end]) => sum + end - start, 0) === message.content.length
  const rendering =
    (isComplete ? renderer.renderUnit(singleUnit(message), mode, { as: 'whole' }, maxTokens) : null) ??
    renderer.renderPassages(message, passages, mode, maxTokens)
  if (rendering !== null) return { ...first, rendering }
  const text = sorted.map((part) => part.rendering.text).join('')
  return { ...first, rendering: { ...first.rendering, text, tokens: maxTokens } }
}

const startOf = ({ unit }: MessagePiece): number => unit.passage?.[0] ?? 0
