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
import { kindOf, linesIn } from './weave/lines.ts'
import { givenAs, isGiven, isNote, placesOf, shownIn } from './weave/placed.ts'
import { Sections } from './weave/sections.ts'
import { told, whole } from './weave/told.ts'
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
/** About what naming a speaker costs. */
const label = 4
/** A text is woven at most so often to come nearer to its budget, and is near enough with one token in a hundred to spare. */
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
  const messages = new Set(material.messages.map(({ id }) => id))
  const given = items.filter((item) => isGiven(item, messages))
  const sayings = [...given.filter((item) => !isNote(item)).map(givenAs), ...sayingsOf(material.messages)]
  const known = new Sections(material, given.filter(isNote), tokenizer).within(Number.POSITIVE_INFINITY)
  const all = (texts: readonly string[]): Cloth => joined(known, whole(withTexts(sayings, texts)))
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
  const headed = said === '' ? '' : `## Conversation\n${said}`
  return { text: [known, headed].filter((text) => text !== '').join('\n\n'), known, said }
}

const withTexts = (sayings: readonly Saying[], texts: readonly string[]): readonly Saying[] =>
  sayings.map(({ message }, at) => ({ message, text: texts[at] ?? '' }))

/** What is known and the lines that tell most, in as many tokens as there are. */
function wovenOf(material: Material, items: readonly ContextItem[], sayings: readonly Saying[], means: WeaveMeans): Cloth {
  const { budget, tokenizer } = means
  const woven = weaver(material, items, sayings, means)
  let best: Cloth | undefined
  let aim = budget
  for (let round = 0; round < tries && aim > 0; round++) {
    const cloth = woven(aim)
    const spare = budget - tokenizer.count(cloth.text)
    if (spare >= 0 && cloth.text.length >= (best?.text.length ?? 1)) best = cloth
    if (spare >= 0 && spare <= budget * near) break
    aim += spare
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
  const wants = { code: 0, conversation: 0, metadata: new Sections(material, notes, tokenizer).tokens }
  for (const line of lines) wants[kindOf(line)] += line.tokens + label
  return (aim) => {
    const rooms = flowed(split(aim, wants.code > 0), wants)
    const said = told(lines, choose(lines, { rooms, worth, marked, pieces, label }), sayings)
    const shown = shownIn(said, notes)
    const untold = notes.filter(({ id }) => !shown.has(id))
    return joined(new Sections(material, untold, tokenizer).within(rooms.metadata), said)
  }
}

/** The beginning of the last line, when there is room for nothing else. */
function lastWords(sayings: readonly Saying[], { budget, tokenizer }: WeaveMeans): Cloth {
  const line = sayings.at(-1)?.text.trimEnd().split('\n').at(-1)?.trim() ?? ''
  const some = (characters: number): string => clip(line, characters, '')
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
