import type { Tokens } from '../../domain/entry.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { clip } from '../../text/clip.ts'
import { linesOf } from '../../text/fences.ts'
import { largest } from '../../upkeep/summarise/pack.ts'
import type { Saying } from '../extract/said.ts'
import type { ContextItem } from '../item.ts'
import { flowed, type Split, split } from '../split.ts'
import { choose } from './choose.ts'
import { type Cloth, type Hem, joined } from './cloth.ts'
import { companyOf } from './company.ts'
import { unforged } from './fence.ts'
import { foremostOf, turnsOf } from './first.ts'
import { kindOf, type Line, linesIn } from './lines.ts'
import { placesOf } from './placed.ts'
import { labelOf, told } from './told.ts'
import { worthOf } from './worth.ts'

/** What is known besides what was said: what all of it costs, and as much of it as a room holds once this is told. */
export type Known = { readonly tokens: Tokens; within(room: Tokens, said: string): string }

/** A conversation that does not fit. */
export type Long = {
  readonly sayings: readonly Saying[]
  /** The most important first; those that are listed elsewhere need no place among the lines. */
  readonly items: readonly ContextItem[]
  readonly isListed: (item: ContextItem) => boolean
  readonly known: Known
  readonly hem: Hem
  /** What of all that is told of what was said may be code, as a part of one; what the split says when left out. */
  readonly codePart?: number
}

export type ShortMeans = { readonly budget: Tokens; readonly tokenizer: Tokenizer; readonly query?: string }

/** Few tokens have more characters: what is longer is not tried. */
const longestToken = 8
/** In less there is no room for who said what. */
const tiny = 40
/** A text is woven so often to come nearer to its budget, and is near enough with one token in a hundred to spare. */
const tries = 4
const near = 0.01

/** What is known and the lines that tell most, in as many tokens as there are. */
export function inShort(long: Long, means: ShortMeans): Cloth {
  const { budget, tokenizer } = means
  if (budget < tiny) return lastWords(long, means)
  const woven = weaver(long, means)
  let best: Cloth | undefined
  let aim = budget
  for (let round = 1; aim > 0 && (round <= tries || best === undefined); round++) {
    const cloth = woven(aim)
    const spare = budget - tokenizer.count(cloth.text)
    if (spare >= 0 && cloth.said !== '' && cloth.text.length >= (best?.text.length ?? 1)) best = cloth
    if (spare >= 0 && spare <= budget * near) break
    // what is far too long says little about what to aim at
    aim = round < tries ? Math.max(aim + spare, aim >> 1) : aim >> 1
  }
  return best ?? lastWords(long, means)
}

/** Weaves for any number of tokens; what comes of it may have a few more or less. */
function weaver(
  { sayings, items, isListed, known, hem, codePart = splitPart }: Long,
  { budget, tokenizer, query }: ShortMeans,
): (aim: Tokens) => Cloth {
  const lines = linesIn(sayings, tokenizer)
  const turns = turnsOf(sayings)
  const labels = sayings.map(({ message }) => tokenizer.count(labelOf(message)) + 1)
  const costs = (places: readonly number[]): Tokens => {
    const { code, conversation } = wantsOf(
      places.map((place) => lines[place] as Line),
      labels,
    )
    return code + conversation
  }
  const wants = { ...wantsOf(lines, labels), metadata: known.tokens }
  const foremost = foremostOf(lines, turns, markedIn(items, lines, sayings), costs)
  const steady = {
    worth: worthOf(lines, sayings, query),
    pieces: placesOf(
      items.filter((item) => !item.marked && !isListed(item)),
      lines,
      sayings,
    ),
    company: companyOf(lines).map((group, place) => (turns.idle.has(lines[place]?.saying ?? -1) ? undefined : group)),
    labels,
    shortened: (text: string, room: Tokens) =>
      beginning(text, Math.max(0, room) * longestToken, (some) => tokenizer.count(some) <= room),
  }
  const around = tokenizer.count(joined(hem, '', '-').text)
  return (aim) => {
    const rooms = flowed(sharesOf(aim, around, wants.code > 0 ? codePart : 0), wants)
    const chosen = choose(lines, { ...steady, rooms, foremost: foremost(rooms.code + rooms.conversation, budget) })
    const said = told(lines, chosen, sayings)
    return joined(hem, known.within(rooms.metadata, said), said)
  }
}

/** Code has twice what the rest of the conversation has. */
const splitPart = 2 / 3

/** The share of each part; what stands around everything is paid by metadata first, and by the others where that is not enough. */
function sharesOf(aim: Tokens, around: Tokens, codePart: number): Split {
  const metadata = Math.max(0, split(aim, codePart > 0).metadata - around)
  const rest = Math.max(0, aim - around - metadata)
  const code = Math.floor(rest * codePart)
  return { code, conversation: rest - code, metadata }
}

/** The lines of each message of which the user marked something, the newest first. */
function markedIn(
  items: readonly ContextItem[],
  lines: readonly Line[],
  sayings: readonly Saying[],
): readonly (readonly number[])[] {
  const bySaying = new Map<number, Set<number>>()
  for (const place of placesOf(
    items.filter(({ marked }) => marked),
    lines,
    sayings,
  ).flat()) {
    const saying = lines[place]?.saying ?? 0
    bySaying.set(saying, (bySaying.get(saying) ?? new Set()).add(place))
  }
  return [...bySaying]
    .sort(([left], [right]) => right - left)
    .map(([, places]) => [...places].sort((left, right) => left - right))
}

/** What all lines would cost, with their speakers and fences. */
function wantsOf(
  lines: readonly Line[],
  labels: readonly Tokens[],
): { readonly code: Tokens; readonly conversation: Tokens } {
  const wants = { code: 0, conversation: 0 }
  for (const [place, line] of lines.entries()) {
    const before = lines[place - 1]
    const label = line.saying === before?.saying ? 0 : (labels[line.saying] ?? 0)
    const fences = line.block === before?.block ? 0 : (line.block?.tokens ?? 0)
    wants[kindOf(line)] += line.tokens + label + fences
  }
  return wants
}

const fenceMark = /^\s*(?:`{3,}|~{3,})/

/** The beginning of a text that fits, with a mark where it ends if there is room for that; it has no more than so many characters. */
function beginning(text: string, most: number, fits: (some: string) => boolean): string {
  // cut, it could open or close a fence
  const line = text.replace(fenceMark, '')
  const some = (characters: number, mark: string): string =>
    unforged(characters < line.length ? clip(line, characters, '').trimEnd() + mark : line)
  const longest = (mark: string): number =>
    largest(Math.min(line.length, most), (characters) => fits(some(characters, mark)))
  const characters = longest('...')
  return characters > 0 ? some(characters, '...') : some(longest(''), '')
}

/** The beginning of what was asked last, and of what the user marked, when there is room for nothing else. */
function lastWords({ sayings, items }: Long, { budget, tokenizer }: ShortMeans): Cloth {
  const most = budget * longestToken
  const marked = beginning(
    firstLine(items.find((item) => item.marked)?.content ?? ''),
    most,
    (some) => tokenizer.count(some) <= budget >> 1,
  )
  const withMarked = (text: string): string => [marked, text].filter((some) => some !== '').join('\n')
  const asked = firstLine(sayings[turnsOf(sayings).ask]?.text ?? '')
  const said = withMarked(beginning(asked, most, (some) => tokenizer.count(withMarked(some)) <= budget))
  return { text: said, said }
}

/** The first line that says something; what only opens or closes code does not. */
function firstLine(text: string): string {
  const lines = linesOf(text).filter(({ fence }) => fence === 'none' || fence === 'inside')
  return lines.map(({ start, end }) => text.slice(start, end).trim()).find((line) => /[\p{L}\p{N}]/u.test(line)) ?? ''
}
