import { amount, day, firstPerson, identifier, name, upTo } from '../../text/signals.ts'
import { termsOf } from '../../text/words.ts'
import type { Work } from '../work.ts'
import type { Piece, PieceKind } from './pieces.ts'

// What later questions ask about, as measured on long dialogues: an answer and a day most, then something that happened, numbers, names.
const event =
  /\b(?:I|[Ww]e)(?:['’](?:ve|d|m|re))?\s(?:(?:just|also|finally|recently|never|always)\s)?(?:\w{2,20}ed|went|got|had|made|did|took|saw|met|bought|found|won|lost|began|wrote|gave|ran|came|left|told|kept|was|were|been|chose|prefer|want|need|hate|love)\b/g
const constraint = /\b(?:never|must|always|do not|don['’]t|only|without|except)\b/i
const failure = /error|exception|failure|fatal|panic|failed/i
const question = /\?["'”’)\]]*$/
const signature =
  /^\s*(?:(?:export|default|pub(?:lic)?|private|abstract|async|static) ){0,3}(?:import|from|def|class|interface|type|function|fn|func|struct|enum|trait|impl|#include|package|module|create table|alter table)\b/i

/** What a nameless assistant explains can be explained again; what a person says is said once. */
const explained = 0.3
const factors: Readonly<Record<PieceKind, number>> = { said: 1, earlier: 2, gist: 0.3, code: 0.1, output: 0.05 }
const failed = 2
const signed = 0.4
const pasted = 0.6
const noise = 0.25

/** How much a piece says for each word of room it takes; only the order of the figures means something. */
export function* weigh(pieces: readonly Piece[]): Work<readonly number[]> {
  const terms: ReadonlySet<string>[] = []
  const frequency = new Map<string, number>()
  for (const { text } of pieces) {
    const own = new Set(termsOf(text))
    for (const term of own) frequency.set(term, (frequency.get(term) ?? 0) + 1)
    terms.push(own)
    yield text.length
  }
  const weights: number[] = []
  for (const [place, piece] of pieces.entries()) {
    let rarity = 0
    for (const term of terms[place] ?? []) rarity += Math.log(1 + pieces.length / (frequency.get(term) ?? 1))
    // Long turns are full of rare words too: a root keeps them from outweighing what is short and to the point.
    weights.push((rarity ** 0.6 / (piece.words + 5)) * merit(piece))
    yield piece.text.length
  }
  return weights
}

function merit(piece: Piece): number {
  const { kind, text, isPerson, isPart } = piece
  if (kind === 'code') return signature.test(text) ? signed : factors.code
  if (kind === 'output' || kind === 'gist') return kind === 'gist' && failure.test(text) ? failed : factors[kind]
  if (!isProse(text)) return factors[kind] * noise
  return interest(piece) * factors[kind] * (isPerson ? 1 : explained) * (isPart ? pasted : 1)
}

/** Rows of tables, frames of a stack, lines of code or of a diff that nobody has fenced in. */
function isProse(text: string): boolean {
  if (/^(?:\||\d+ ?\||at \S{1,200} \(|[+-]{2}|@@|[$❯>] |<\/?\w)/.test(text)) return false
  const letters = text.match(/[\p{L}\p{M}\s]/gu)?.length ?? 0
  return letters >= 0.75 * text.length
}

function interest({ text, answers }: Piece): number {
  let interest =
    1 + 1.2 * upTo(2, text, day) + 0.5 * upTo(2, text, amount) + 0.4 * upTo(3, text, name) + 0.5 * upTo(2, text, event)
  if (firstPerson.test(text)) interest += 0.3
  if (constraint.test(text)) interest += 0.3
  if (identifier.test(text)) interest += 0.3
  if (answers) interest += 1.2
  return question.test(text) ? interest * 0.8 : interest
}
