import type { Json, Message, Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { type Compression, pressed } from './compression.ts'
import { type Saying, sayingsOf } from './extract/said.ts'
import type { ContextItem } from './item.ts'
import { byPriority } from './priority.ts'
import { type Cloth, sharesOf } from './render/cloth.ts'
import { Entire } from './render/entire.ts'
import { headings } from './render/fence.ts'
import { frameOf } from './render/frame.ts'
import { givenAs, isGiven, isNote, shownIn } from './render/placed.ts'
import { Sections } from './render/sections.ts'
import { inShort } from './render/short.ts'
import type { Split } from './split.ts'

/** What has become of a file that the conversation speaks of. */
export type FileState = {
  readonly path: string
  readonly status: 'unchanged' | 'changed' | 'missing' | 'refused' | 'unseen'
  readonly note?: string
}

/** A session before this one: what it was about, and what was said in it, for as far as there may be room for that. */
export type Earlier = {
  readonly session: string
  readonly summary: string
  readonly messages?: readonly Message[]
  readonly items?: readonly ContextItem[]
}

/** Everything a new chat could be told. */
export type Material = {
  readonly title: string
  readonly messages: readonly Message[]
  readonly items: readonly ContextItem[]
  readonly files: readonly FileState[]
  /** The conversation at several levels of detail, the shortest first. */
  readonly summaries: readonly string[]
  readonly workspace?: {
    readonly activeProject?: string
    readonly enabledMcps?: readonly string[]
    readonly settings?: Json
  }
  /** The sessions before this one, the oldest first. */
  readonly earlier: readonly Earlier[]
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
  /** What the text ends with, inside the budget; where that is small, only its first sentences. */
  readonly closing?: string
}

export type Woven = {
  readonly text: string
  /** The same without earlier sessions: what has come through of this one. */
  readonly own: string
  readonly tokens: Tokens
  /** What each part has cost. */
  readonly shares: Split
  /** Ids of the items that are shown, and of those that are not. */
  readonly items: readonly string[]
  readonly left: readonly string[]
  readonly compressed: Compression
}

const defaults = { threshold: 3, most: 50 }

/**
 * The text a new chat begins with: what is known about the conversation, then what was said. It never has more tokens than the
 * budget. What fits is told as it was, and what room that leaves is for the sessions before; else white space goes, then
 * comments, then all but what was asked last, the newest lines and those that tell most.
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
  // what the user marked has its place among what was said, whatever it is
  const [placed, listed] = [
    given.filter((item) => item.marked || !isNote(item)),
    given.filter((item) => !item.marked && isNote(item)),
  ]
  const sayings = [...placed.map(givenAs), ...said]
  const entire = new Entire(material, listed, sayings, means)
  const { texts, compression } = pressed(
    sayings.map(({ text }) => text),
    (some) => tokenizer.count(entire.told(withTexts(sayings, some)).text) <= budget,
  )
  const bare = withTexts(sayings, texts)
  const own = compression === 'sections' ? shortOf(material, items, bare, means) : entire.told(bare)
  const cloth = compression === 'sections' ? own : entire.withEarlier(bare)
  const { text } = cloth
  const shown = shownIn(text, items)
  return {
    text,
    own: own.text,
    tokens: tokenizer.count(text),
    shares: sharesOf(cloth, tokenizer),
    items: items.filter(({ id }) => shown.has(id)).map(({ id }) => id),
    left: material.items.filter(({ id }) => !shown.has(id)).map(({ id }) => id),
    compressed: compression,
  }
}

const withTexts = (sayings: readonly Saying[], texts: readonly string[]): readonly Saying[] =>
  sayings.map(({ message }, at) => ({ message, text: texts[at] ?? '' }))

/** What is known and the lines that tell most. */
function shortOf(
  material: Material,
  items: readonly ContextItem[],
  sayings: readonly Saying[],
  means: WeaveMeans,
): Cloth {
  const notes = items.filter(isNote)
  const known = (untold: readonly ContextItem[]): Sections => new Sections(material, untold, means.tokenizer)
  return inShort(
    {
      sayings,
      items,
      isListed: isNote,
      known: {
        tokens: known(notes).tokens,
        within: (room, said) => {
          const shown = shownIn(said, notes)
          return known(notes.filter(({ id }) => !shown.has(id))).within(room)
        },
      },
      hem: { ...frameOf(material.title, { ...means, isWhole: false }), heading: headings.conversation },
    },
    means,
  )
}
