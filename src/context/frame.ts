import type { Tokens } from '../domain/entry.ts'
import { kept } from '../domain/getOrCompute.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Band, Framing, Profile } from '../domain/profile.ts'
import { headingOf, memoryEnd, tellsMemory, type Words, wordsOf } from './fees.ts'
import type { Fitted, Piece } from './piece.ts'
import type { Renderer } from './render.ts'
import { firstOf } from './unit.ts'

/** What was chosen, in the order in which it is read, with the part that the next turn will repeat. */
export type Framed = {
  readonly messages: readonly ChatMessage[]
  /** Made when it is asked for: most who want the messages never read it. */
  readonly text: () => string
  readonly cacheable: { readonly messages: number; readonly tokens: Tokens }
}

/** Puts the chosen pieces into reading order: instructions, memory, turns, what is recalled, the newest turn. */
export function frame(fitted: Fitted, profile: Profile, framing: Framing, renderer: Renderer): Framed {
  const order = readingOrder(fitted, profile)
  const words = wordsOf[framing]
  const messages: ChatMessage[] = []
  addTurns(messages, order.opening)
  const isMemory = tellsMemory(profile)
  const block =
    order.stable.length === 0 ? [] : isMemory ? memoryBlock(order, words) : conversationBlock(order, words, renderer)
  messages.push(...block)
  addTurns(messages, order.turns)
  if (order.volatile.length > 0)
    messages.push({ role: 'user', content: within(words.recalled, headed(order.volatile)).trimEnd() })
  addTurns(messages, order.newest)
  return {
    messages,
    text: () => textOf(order, words, isMemory, renderer),
    cacheable: cacheable(order, profile, fitted.slides, block.length),
  }
}

function addTurns(messages: ChatMessage[], pieces: readonly Piece[]): void {
  for (const { form } of pieces) {
    const { chat } = form
    if ('role' in chat) messages.push(chat)
    else messages.push(...chat)
  }
}

/** What memory holds is data: it comes from a user's side and never as instructions, which are told apart from it. */
function memoryBlock(order: Order, words: Words): ChatMessage[] {
  const content = (within(words.memory, headed(order.stable)) + turnHeading(order)).trimEnd()
  return [...(words.after === '' ? [] : [{ role: 'system' as const, content: words.after }]), { role: 'user', content }]
}

const within = (begin: string, lines: readonly string[]): string => begin + lines.join('') + memoryEnd

/** Lines of the conversation as the background of a question, in the words of the document that asks for it. */
function conversationBlock(order: Order, words: Words, renderer: Renderer): ChatMessage[] {
  const turning = turnHeading(order)
  const block = headed(order.stable)
  if (turning !== '') block.push(turning)
  const shown =
    words.after === ''
      ? closed(block, turning === '' ? separatorOf(order.stable) : '\n\n', renderer)
      : block.join('') + words.after
  return [{ role: 'system', content: `${words.before}${shown}` }]
}

type Order = {
  readonly opening: Piece[]
  stable: Piece[]
  readonly turns: Piece[]
  volatile: Piece[]
  readonly newest: Piece[]
}

function readingOrder({ said, told }: Fitted, profile: Profile): Order {
  const asked = said.find((piece) => piece.part === 'newest')
  const border = asked === undefined ? Number.POSITIVE_INFINITY : place(asked)
  const order: Order = { opening: [], stable: [], turns: [], volatile: [], newest: [] }
  for (const piece of said) partOf(piece, border, order).push(piece)
  for (const piece of told) partOf(piece, border, order).push(piece)
  const byBand = (a: Piece, b: Piece): number => rank(a, profile) - rank(b, profile) || place(a) - place(b)
  order.stable = byDay(order.stable.sort(byBand))
  order.volatile = byDay(order.volatile.sort(byBand))
  return order
}

function partOf(piece: Piece, border: number, order: Order): Piece[] {
  if (piece.part !== 'band') return piece.part === 'opening' ? order.opening : order.newest
  if (piece.band?.show === 'block') return piece.band.volatile ? order.volatile : order.stable
  return place(piece) < border ? order.turns : order.newest
}

const rank = ({ band }: Piece, { bands }: Profile): number =>
  band === undefined ? Number.MAX_SAFE_INTEGER : bands.indexOf(band)

/** Conversation order within a band; summaries by what they cover, other entries as they were ranked. */
function place(piece: Piece): number {
  if (piece.unit !== undefined) return firstOf(piece.unit)
  return piece.derived?.kind === 'summary' ? piece.derived.covers[0] : 0
}

/** Adds pieces with the heading of their band before its first, and the day before what was recalled from it. */
function headed(pieces: readonly Piece[], lines: string[] = [], seen = new Set<Band>()): string[] {
  let day = ''
  for (const piece of pieces) {
    // instructions stand before everything else, whichever band would have had them
    if (piece.band !== undefined && piece.part !== 'opening' && !seen.has(piece.band)) {
      lines.push(headingOf(piece.band))
      seen.add(piece.band)
    }
    if (piece.day !== day) lines.push(piece.day)
    day = piece.day
    lines.push(piece.form.text)
  }
  return lines
}

/** Pieces of one day together: clocks go back, and a day is named, and paid, once. */
function byDay(pieces: Piece[]): Piece[] {
  if (pieces.length < 2) return pieces
  const days = new Map<string, Piece[]>()
  for (const piece of pieces) kept(days, `${piece.band?.name ?? ''}\n${piece.day}`, () => []).push(piece)
  return [...days.values()].flat()
}

/** The heading of the turns closes the block of memory: providers have no place for it between messages. */
function turnHeading({ turns, newest }: Order): string {
  const isHeaded = ({ band }: Piece): boolean => band?.heading !== undefined
  const band = (turns.find(isHeaded) ?? newest.find(isHeaded))?.band
  return band?.show === 'turns' ? headingOf(band) : ''
}

function textOf(order: Order, words: Words, isMemory: boolean, renderer: Renderer): string {
  const seen = new Set<Band>()
  const lines = headed(order.opening, [], seen)
  const tells = isMemory && order.stable.length > 0
  if (tells) lines.push(words.memory)
  headed(order.stable, lines, seen)
  if (tells) lines.push(memoryEnd)
  headed(order.turns, lines, seen)
  if (order.volatile.length > 0) {
    lines.push(words.recalled)
    headed(order.volatile, lines, seen).push(memoryEnd)
  }
  headed(order.newest, lines, seen)
  if (lines.at(-1) === memoryEnd) return lines.join('').trimEnd()
  const last = [order.newest, order.turns, order.stable, order.opening].find((pieces) => pieces.length > 0) ?? []
  return closed(lines, separatorOf(last), renderer, last.at(-1)?.form.tokens)
}

/** What the last of these pieces ends with; its own line ends are not taken for it. */
function separatorOf(pieces: readonly Piece[]): '\n' | '\n\n' {
  const last = pieces.at(-1)
  return last !== undefined && (last.derived !== undefined || last.day !== '') ? '\n' : '\n\n'
}

/** Joined, without the separator after the last piece unless that would cost more than was paid for it. */
function closed(lines: readonly string[], separator: string, renderer: Renderer, paid = 0): string {
  const last = lines.at(-1)
  if (last === undefined) return ''
  const bare = last.slice(0, -separator.length)
  // after a letter or a digit a line end is always a token of its own
  const cheaper =
    /[\p{L}\p{N}]$/u.test(bare.slice(-2)) || renderer.tokenizer.count(bare) <= (paid || renderer.tokenizer.count(last))
  return lines.slice(0, -1).join('') + (cheaper ? bare : last)
}

/** Claims whose entries keep their place and their form from turn to turn. */
const isAnchored = (band: Band | undefined): boolean =>
  band !== undefined &&
  band.volatile !== true &&
  ('first' in band.claim || 'tail' in band.claim || 'kind' in band.claim)

function cacheable(
  order: Order,
  profile: Profile,
  slides: boolean,
  blocks: number,
): { messages: number; tokens: Tokens } {
  const sum = { messages: 0, tokens: 0 }
  // the others live on what a sliding band leaves them, and that is never the same
  if (slides) return sum
  const steady = profile.bands.every((band) => band.show === 'turns' || band.volatile || isAnchored(band))
  const add = ({ form: { chat, tokens } }: Piece): void => {
    sum.messages += 'role' in chat ? 1 : chat.length
    sum.tokens += tokens
  }
  const stays = (piece: Piece): boolean => {
    const isSteady = isAnchored(piece.band) && (steady || piece.band?.show === 'turns')
    if (isSteady) add(piece)
    return isSteady
  }
  order.opening.forEach(add)
  if (order.stable.every(stays)) order.turns.every(stays)
  if (steady) sum.messages += blocks
  return sum
}
