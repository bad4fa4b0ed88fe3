import type { Dataset, DatasetConversation, DatasetMessage, DatasetQuestion } from '../dataset.ts'
import { assistantFacts, chatFacts, codeFacts, type FactTemplate, supportFacts } from './facts.ts'
import {
  assistantFiller,
  assistantPadding,
  chatFiller,
  codeFiller,
  type FillerTemplate,
  supportFiller,
} from './filler.ts'
import { slotValues } from './slots.ts'

export const conversationKinds = ['chat', 'support', 'assistant', 'code', 'mixed'] as const
export type ConversationKind = (typeof conversationKinds)[number]

export type GenerateOptions = {
  readonly kind: ConversationKind
  /** Approximate number of tokens. */
  readonly tokens: number
  readonly seed: number
}

type Source = { readonly facts: readonly FactTemplate[]; readonly filler: readonly FillerTemplate[] }
const sources: Readonly<Record<Exclude<ConversationKind, 'mixed'>, Source>> = {
  chat: { facts: chatFacts, filler: chatFiller },
  support: { facts: supportFacts, filler: supportFiller },
  assistant: { facts: assistantFacts, filler: assistantFiller },
  code: { facts: codeFacts, filler: codeFiller },
}
const speakersByKind: Readonly<Record<ConversationKind, readonly [user: string, assistant: string]>> = {
  chat: ['Mara', 'Theo'],
  support: ['user', 'assistant'],
  assistant: ['user', 'assistant'],
  code: ['user', 'assistant'],
  mixed: ['user', 'assistant'],
}

const charactersPerToken = 4.2
/** Average tokens of filler between two statements of facts. */
const tokensPerFact = 220
const distractorCopies = 4
const exchangesPerDay = 12
const startTime = Date.UTC(2025, 0, 6, 9)
const dayMs = 86_400_000
const minuteMs = 60_000

type Random = () => number
type Picker = <T>(items: readonly T[]) => T

/** Creates a deterministic generator of numbers from 0 to 1 (mulberry32). */
function createRandom(seed: number): Random {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Two turns at a position from 0 to 1 of the conversation; the named turn is evidence for a fact. */
type Exchange = {
  readonly position: number
  readonly turns: readonly [string, string]
  readonly fact?: number
  readonly evidence?: 0 | 1
}
type Fact = { readonly category: string; readonly queries: readonly string[]; readonly answer: string }

/**
 * Generates a conversation with questions, the same one for the same options. Facts and later changes of facts are
 * spread over filler turns. Every fact has two questions, the second one with hardly a word of its evidence.
 *
 * @example
 * generateConversation({ kind: 'chat', tokens: 5_000, seed: 1 }).questions[0]?.query
 */
export function generateConversation({ kind, tokens, seed }: GenerateOptions): DatasetConversation {
  const random = createRandom(seed * 7_919 + conversationKinds.indexOf(kind))
  const pick: Picker = (items) => items[Math.floor(random() * items.length)] as (typeof items)[number]
  const parts = kind === 'mixed' ? Object.values(sources) : [sources[kind]]
  const factCount = Math.max(2, Math.round(tokens / tokensPerFact))
  const templates = shuffle(
    parts.flatMap(({ facts }) => facts),
    random,
  ).slice(0, factCount)
  const facts: Fact[] = []
  const exchanges: Exchange[] = []
  for (const template of templates) {
    const fill = createFill(pick)
    exchanges.push(...placeFact(template, facts.length, fill, pick, random))
    const { category, query, paraphrase, answer } = template
    facts.push({ category, queries: [fill(query), fill(paraphrase)], answer: fill(answer) })
  }
  let characters = countCharacters(exchanges)
  while (characters < tokens * charactersPerToken) {
    const fill = createFill(pick)
    const [prompt, reply] = pick(pick(parts).filler)
    const exchange: Exchange = { position: random(), turns: [capitalise(fill(prompt)), capitalise(fill(reply))] }
    exchanges.push(exchange)
    characters += countCharacters([exchange])
  }
  exchanges.sort((a, b) => a.position - b.position)
  return toConversation(`${kind}-${tokens}-${seed}`, speakersByKind[kind], exchanges, facts)
}

/** Places a fact, its change in the second half and its distractor anywhere. */
function placeFact(template: FactTemplate, fact: number, fill: Fill, pick: Picker, random: Random): Exchange[] {
  const { statement, reply, change, distractor, category } = template
  const isLongAnswer = category === 'long_answer'
  const answer = isLongAnswer ? padAnswer(fill(reply), pick) : fill(reply)
  const position = change === undefined ? random() * 0.9 : random() * 0.4
  const exchanges: Exchange[] = [{ position, turns: [fill(statement), answer], fact, evidence: isLongAnswer ? 1 : 0 }]
  if (change !== undefined)
    exchanges.push({
      position: 0.5 + random() * 0.4,
      turns: [fill(change), 'Thanks for telling me, I will remember that.'],
      fact,
      evidence: 0,
    })
  for (let copy = 0; copy < distractorCopies; copy++) {
    const text = capitalise(createFill(pick)(distractor))
    exchanges.push({ position: random(), turns: [text, 'I see. Let me know how it goes.'] })
  }
  return exchanges
}

/** Surrounds the sentence with a fact by other paragraphs. */
function padAnswer(sentence: string, pick: Picker): string {
  const paragraph = (): string =>
    Array.from({ length: 4 }, () => createFill(pick)(pick(assistantPadding)))
      .map(capitalise)
      .join(' ')
  return [paragraph(), paragraph(), `${paragraph()} ${sentence}`, paragraph(), paragraph()].join('\n\n')
}

type Fill = (template: string) => string

/** Creates a function that fills slots; the same slot gets the same value, numbered ones differ from each other. */
function createFill(pick: Picker): Fill {
  const values = new Map<string, string>()
  return (template) =>
    template.replaceAll(/\{([a-z]+)(\d?)\}/g, (slot: string, name: string) => {
      const known = values.get(slot)
      if (known !== undefined) return known
      const used = new Set([...values].filter(([other]) => other.startsWith(`{${name}`)).map(([, value]) => value))
      const value = pick((slotValues[name] ?? [slot]).filter((candidate) => !used.has(candidate)))
      values.set(slot, value)
      return value
    })
}

const capitalise = (text: string): string =>
  /^[a-z]+[A-Z/]/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1)

const countCharacters = (exchanges: readonly Exchange[]): number =>
  exchanges.reduce((sum, { turns: [prompt, reply] }) => sum + prompt.length + reply.length, 0)

function shuffle<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => ({ item, order: random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item)
}

function toConversation(
  id: string,
  speakers: readonly [string, string],
  exchanges: readonly Exchange[],
  facts: readonly Fact[],
): DatasetConversation {
  const messages: DatasetMessage[] = []
  const evidence = facts.map((): string[] => [])
  for (const [index, { turns, fact, evidence: turn }] of exchanges.entries()) {
    const day = Math.floor(index / exchangesPerDay)
    if (fact !== undefined && turn !== undefined) evidence[fact]?.push(`m${messages.length + turn + 1}`)
    for (const [side, text] of turns.entries())
      messages.push({
        id: `m${messages.length + 1}`,
        at: startTime + day * 3 * dayMs + ((index % exchangesPerDay) * 2 + side) * minuteMs,
        speaker: speakers[side] as string,
        role: side === 0 ? 'user' : 'assistant',
        text,
        group: day,
      })
  }
  const questions = facts.flatMap(({ category, queries, answer }, index) =>
    queries.map(
      (query, wording): DatasetQuestion => ({
        id: `${id}-q${index + 1}${'ab'[wording]}`,
        category,
        query,
        answer,
        evidence: evidence[index] ?? [],
      }),
    ),
  )
  return { id, messages, questions }
}

/** Generates the dataset that ships with the project: every kind of conversation, two of each. */
export const generateDataset = (seed = 1, tokens = 8_000): Dataset => ({
  name: 'generated',
  conversations: [seed, seed + 1].flatMap((conversationSeed) =>
    conversationKinds.map((kind) => generateConversation({ kind, tokens, seed: conversationSeed })),
  ),
})
