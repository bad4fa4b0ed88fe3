import type { Json, Message, Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { clip } from '../text/clip.ts'
import { linesOf } from '../text/fences.ts'
import { largest } from '../upkeep/summarise/pack.ts'
import { type Compression, pressed } from './compression.ts'
import { type Saying, sayingsOf } from './extract/said.ts'
import type { ContextItem } from './item.ts'
import { byPriority } from './priority.ts'
import { flowed, type Split, split } from './split.ts'
import { choose } from './weave/choose.ts'
import { headings, unforged } from './weave/fence.ts'
import { kindOf, type Line, linesIn } from './weave/lines.ts'
import { givenAs, isGiven, isNote, placesOf, shownIn } from './weave/placed.ts'
import { Sections } from './weave/sections.ts'
import { labelOf, told, whole } from './weave/told.ts'
import { worthOf } from './weave/worth.ts'

/** What has become of a file that the conversation speaks of. */
export type FileState = { readonly path: string; readonly status: 'unchanged' | 'changed' | 'missing' | 'refused'; readonly note?: string }

/** Everything a new chat could be told. */
export type Material = {
  readonly title: string
  readonly messages: readonly Message[]
  readonly items: readonly ContextItem[]
  readonly files: readonly FileState[]
  /** The conversation at several levels of detail, the shortest first. */
  readonly summaries: readonly string[]
  readonly workspace?: { readonly activeProject?: string; readonly enabledMcps?: readonly string[]; readonly settings?: Json }
  /** What the sessions before this one were about, the oldest first. */
  readonly earlier: readonly { readonly session: string; readonly summary: string }[]
  /** What other servers say: data, whatever it says. */
  readonly provided: readonly { readonly from: string; readonly text: string }[]
}

export type WeaveMeans = {
  readonly budget: Tokens
  readonly tokenizer: Tokenizer
  /** What the new chat begins with, if it is known. */
  readonly query?: string
  /** Items of less importance are left out. */
  readonly threshold?: number
  /** At most so many items. */
  readonly most?: number
}

export type Woven = {
  readonly text: string
  readonly tokens: Tokens
  /** What each part has cost. */
  readonly shares: Split
  /** Ids of the items that are shown, and of those that are not. */
  readonly items: readonly string[]
  readonly left: readonly string[]
  readonly compressed: Compression
}

const defaults = { threshold: 3, most: 50 }
/** A text is woven so often to come nearer to its budget, and is near enough with one token in a hundred to spare. */
const tries = 4
const near = 0.01

/**
 * The text a new chat begins with: what is known about the conversation, then what was said. It never has more tokens than the
 * budget. What fits is told as it was; else white space goes, then comments, then all but the newest lines and those that
 * tell most.
 *
 * @example
 * weave({ title: 'Login', messages, items, files: [], summaries: [], earlier: [], provided: [] }, { budget: 4_000, tokenizer }).text
 */
export function weave(material: Material, means: WeaveMeans): Woven {
  const { threshold = defaults.threshold, most = defaults.most, tokenizer, budget } = means
  const items = material.items
    .filter(({ importance }) => importance >= threshold)
    .sort(byPriority)
    .slice(0, most)
  const said = sayingsOf(material.messages)
  const messages = new Set(said.map(({ message }) => message.id))
  const given = items.filter((item) => isGiven(item, messages))
  const sayings = [...given.filter((item) => !isNote(item)).map(givenAs), ...said]
  const all = teller(new Sections(material, given.filter(isNote), tokenizer), sayings, means)
  const { texts, compression } = pressed(
    sayings.map(({ text }) => text),
    (some) => tokenizer.count(all(some).text) <= budget,
  )
  const cloth = compression === 'sections' ? wovenOf(material, items, withTexts(sayings, texts), means) : all(texts)
  const { text } = cloth
  const shown = shownIn(text, items)
  return {
    text,
    tokens: tokenizer.count(text),
    shares: sharesOf(cloth, tokenizer),
    items: items.filter(({ id }) => shown.has(id)).map(({ id }) => id),
    left: material.items.filter(({ id }) => !shown.has(id)).map(({ id }) => id),
    compressed: compression,
  }
}

/** A text with what it is woven of: what is known about the conversation, and what was said. */
type Cloth = { readonly text: string; readonly known: string; readonly said: string }

function joined(known: string, said: string): Cloth {
  return { text: [known, headed(said)].filter((text) => text !== '').join('\n\n'), known, said }
}

const headed = (said: string): string => (said === '' ? '' : `${headings.conversation}\n${said}`)

const withTexts = (sayings: readonly Saying[], texts: readonly string[]): readonly Saying[] =>
  sayings.map(({ message }, at) => ({ message, text: texts[at] ?? '' }))

/** Tells all that was said, and as much of what is known as there is room for; where that is less than it must have, all of it, which does not fit. */
function teller(known: Sections, sayings: readonly Saying[], { budget, tokenizer }: WeaveMeans): (texts: readonly string[]) => Cloth {
  const hasCode = sayings.some(({ text }) => linesOf(text).some(({ fence }) => fence === 'inside'))
  const least = known.least(split(budget, hasCode).metadata)
  return (texts) => {
    const said = whole(withTexts(sayings, texts))
    const room = budget - tokenizer.count(headed(said)) - 1
    return joined(known.within(room < least ? Number.POSITIVE_INFINITY : room), said)
  }
}

/** What is known and the lines that tell most, in as many tokens as there are. */
function wovenOf(material: Material, items: readonly ContextItem[], sayings: readonly Saying[], means: WeaveMeans): Cloth {
  const { budget, tokenizer } = means
  const woven = weaver(material, items, sayings, means)
  let best: Cloth | undefined
  let aim = budget
  for (let round = 1; aim > 0 && (round <= tries || best === undefined); round++) {
    const cloth = woven(aim)
    const spare = budget - tokenizer.count(cloth.text)
    if (spare >= 0 && cloth.text.length >= (best?.text.length ?? 1)) best = cloth
    if (spare >= 0 && spare <= budget * near) break
    // what is far too long says little about what to aim at
    aim = round < tries ? Math.max(aim + spare, aim >> 1) : aim >> 1
  }
  return best ?? lastWords(sayings, means)
}

/** Weaves for any number of tokens; what comes of it may have a few more or less. */
function weaver(material: Material, items: readonly ContextItem[], sayings: readonly Saying[], { tokenizer, query }: WeaveMeans): (aim: Tokens) => Cloth {
  const lines = linesIn(sayings, tokenizer)
  const worth = worthOf(lines, sayings, query)
  const notes = items.filter(isNote)
  const places = placesOf(items, lines, sayings)
  const marked = places.filter((_, at) => items[at]?.marked === true)
  const pieces = places.filter((_, at) => items[at]?.marked === false && !isNote(items[at] as ContextItem))
  const labels = sayings.map(({ message }) => tokenizer.count(labelOf(message)) + 1)
  const wants = { ...wantsOf(lines, labels), metadata: new Sections(material, notes, tokenizer).tokens }
  return (aim) => {
    const rooms = flowed(split(aim, wants.code > 0), wants)
    const said = told(lines, choose(lines, { rooms, worth, marked, pieces, labels }), sayings)
    const shown = shownIn(said, notes)
    const untold = notes.filter(({ id }) => !shown.has(id))
    return joined(new Sections(material, untold, tokenizer).within(rooms.metadata), said)
  }
}

/** What all lines would cost, with their speakers and fences. */
function wantsOf(lines: readonly Line[], labels: readonly Tokens[]): { readonly code: Tokens; readonly conversation: Tokens } {
  const wants = { code: 0, conversation: 0 }
  for (const [place, line] of lines.entries()) {
    const before = lines[place - 1]
    const label = line.saying === before?.saying ? 0 : (labels[line.saying] ?? 0)
    const fences = line.block === before?.block ? 0 : (line.block?.tokens ?? 0)
    wants[kindOf(line)] += line.tokens + label + fences
  }
  return wants
}

/** The beginning of the last line, when there is room for nothing else. */
function lastWords(sayings: readonly Saying[], { budget, tokenizer }: WeaveMeans): Cloth {
  const line = sayings.at(-1)?.text.trimEnd().split('\n').at(-1)?.trim() ?? ''
  const some = (characters: number): string => unforged(clip(line, characters, ''))
  const said = some(largest(Math.min(line.length, 8 * budget), (characters) => tokenizer.count(some(characters)) <= budget))
  return { text: said, known: '', said }
}

/** What the parts of a text have cost: fenced lines of the conversation are code. */
function sharesOf({ text, known, said }: Cloth, tokenizer: Tokenizer): Split {
  const fenced = linesOf(said).filter(({ fence }) => fence !== 'none')
  const tokens = tokenizer.count(text)
  const metadata = Math.min(tokens, tokenizer.count(known))
  const code = Math.min(tokens - metadata, tokenizer.count(fenced.map(({ start, end }) => said.slice(start, end)).join('\n')))
  return { code, conversation: tokens - metadata - code, metadata }
}
