import { hash } from 'node:crypto'
import type { Message, Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { type Anchor, anchorsIn } from '../text/anchors.ts'
import { clip } from '../text/clip.ts'
import { blocksIn, type Found } from './extract/blocks.ts'
import { failuresIn, filesIn, notesIn, questionsIn } from './extract/notes.ts'
import { type Saying, sayingsOf } from './extract/said.ts'
import { type ContextItem, evenWeights, type Factors, type Weights } from './item.ts'
import { byPriority, frequencyOf, importanceOf, recencyOf, specificityOf, typeOf } from './priority.ts'

/** What extracting goes by: `marked` are ids of messages that the user marked, `similarity` is from 0 to 1. */
export type ExtractMeans = {
  readonly tokenizer: Tokenizer
  readonly weights?: Weights
  readonly marked?: ReadonlySet<string>
  readonly similarity?: (text: string) => number
}

/** So many items are kept of a conversation; a new chat is told 50 of them at most. */
const most = 300
/** So much of a marked message is kept as it is. */
const longest = 4_000

/**
 * The context items of a conversation, the most important first: code, files, data, concepts and tasks, each once. The same
 * conversation always gives the same items.
 *
 * @example
 * extractItems(messages, { tokenizer }).map(({ category, content }) => `${category} ${content}`) // ['task - [ ] Fix src/login.ts', 'file src/login.ts']
 */
export function extractItems(messages: readonly Message[], means: ExtractMeans): readonly ContextItem[] {
  const sayings = sayingsOf(messages)
  const anchors = sayings.map(({ text }) => anchorsIn(text))
  const mentioned = mentionsOf(anchors)
  const behind = behindOf(sayings, means.tokenizer)
  const drafts = new Map<string, Draft>()
  for (const [at, saying] of sayings.entries()) {
    const own = anchors[at] ?? []
    const { id: message } = saying.message
    const isMarked = means.marked?.has(message) === true
    for (const found of [...foundIn(saying, own, at === sayings.length - 1), ...(isMarked ? [wholeOf(saying)] : [])]) {
      const id = hash('sha256', `${found.category}\n${found.content}`).slice(0, 16)
      const { sources = new Set<string>(), marked = false } = drafts.get(id) ?? {}
      drafts.set(id, {
        id,
        found,
        sources: sources.add(message),
        names: namesWithin(own, found),
        behind: behind(at, found.end),
        marked: marked || isMarked,
      })
    }
  }
  return [...drafts.values()]
    .map((draft) => itemOf(draft, mentioned, means))
    .sort(byPriority)
    .slice(0, most)
    .map((item) => ({ ...item, tokens: means.tokenizer.count(item.content) }))
}

/** Something found, as it was last said: in which messages, with which names, and how many tokens ago. */
type Draft = {
  readonly id: string
  readonly found: Found
  readonly sources: Set<string>
  readonly names: ReadonlySet<string>
  readonly behind: Tokens
  readonly marked: boolean
}

function foundIn({ message, text }: Saying, anchors: readonly Anchor[], isLast: boolean): readonly Found[] {
  const { found, rest } = blocksIn(text)
  const isBinding = message.role === 'user' || message.role === 'system'
  return [
    ...found,
    ...notesIn(text, rest, anchors, isBinding),
    ...failuresIn(text),
    ...filesIn(anchors),
    ...(isLast ? questionsIn(text) : []),
  ]
}

/** What the user marked is kept as it was said, whatever is found in it. */
const wholeOf = ({ text }: Saying): Found => ({
  category: 'concept',
  content: clip(text.trim(), longest, '\n...'),
  start: 0,
  end: text.length,
})

const isName = ({ kind }: Anchor): boolean => kind !== 'constraint'

/** In how many messages each name stands. */
function mentionsOf(anchors: readonly (readonly Anchor[])[]): ReadonlyMap<string, number> {
  const mentioned = new Map<string, number>()
  for (const own of anchors)
    for (const name of new Set(own.filter(isName).map(({ text }) => text)))
      mentioned.set(name, (mentioned.get(name) ?? 0) + 1)
  return mentioned
}

/** About how many tokens were said after a place. */
function behindOf(sayings: readonly Saying[], tokenizer: Tokenizer): (saying: number, place: number) => Tokens {
  const tokens = sayings.map(({ text }) => tokenizer.count(text))
  const after: Tokens[] = []
  let sum = 0
  for (let at = sayings.length - 1; at >= 0; at--) {
    after[at] = sum
    sum += tokens[at] ?? 0
  }
  return (saying, place) => {
    const length = sayings[saying]?.text.length ?? 1
    return (after[saying] ?? 0) + ((tokens[saying] ?? 0) * (length - place)) / length
  }
}

/** Anchors are in the order they begin: the first that could be inside is looked for by halves. */
function namesWithin(anchors: readonly Anchor[], { start, end }: Found): ReadonlySet<string> {
  let [low, high] = [0, anchors.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((anchors[middle] as Anchor).start < start) low = middle + 1
    else high = middle
  }
  const names = new Set<string>()
  for (let at = low; at < anchors.length && (anchors[at] as Anchor).start < end; at++)
    if (isName(anchors[at] as Anchor)) names.add((anchors[at] as Anchor).text)
  return names
}

/** Without what it costs, which is counted for those that are kept. */
function itemOf(
  { id, found, sources, names, behind, marked }: Draft,
  mentioned: ReadonlyMap<string, number>,
  means: ExtractMeans,
): Omit<ContextItem, 'tokens'> {
  const { category, content } = found
  let messages = sources.size
  for (const name of names) messages = Math.max(messages, mentioned.get(name) ?? 0)
  const factors: Factors = {
    recency: recencyOf(behind),
    frequency: frequencyOf(messages),
    specificity: specificityOf(names.size),
    type: typeOf[category],
    marking: marked ? 1 : 0,
    // vectors may give no number at all
    ...(means.similarity === undefined ? {} : { similarity: Math.max(0, Math.min(1, means.similarity(content))) || 0 }),
  }
  return {
    id,
    category,
    content,
    importance: importanceOf(factors, (means.weights ?? evenWeights)[category]),
    marked,
    factors,
    sources: [...sources],
  }
}
