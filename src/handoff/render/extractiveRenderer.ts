import type { Tokens } from '../../domain/entry.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import type { Work } from '../../domain/work.ts'
import { type ConversationLine, LineAnalyzer } from '../../selection/conversationLines.ts'
import { isWork } from '../../selection/isWork.ts'
import { scoreLinesInSteps } from '../../selection/scoreLines.ts'
import { type LineBudget, lineKind, type PriorityLines, selectLinesInSteps } from '../../selection/selectLines.ts'
import { clip } from '../../text/clip.ts'
import { splitFencedLines } from '../../text/fences.ts'
import { findLargest } from '../../upkeep/summarise/select.ts'
import type { ContextItem } from '../item.ts'
import type { TextMessage } from '../textMessage.ts'
import { allocate, type BudgetSplit, splitBudget } from './budget.ts'
import {
  escapeForgedLines,
  type Frame,
  formatSelection,
  formatSpeaker,
  joinParts,
  type RenderedText,
} from './format.ts'
import { findItemLines } from './itemLines.ts'
import { findRecalledLines, type RecalledPassage } from './recalledLines.ts'

/** Renders metadata around a conversation. `tokens` is the cost of all of it. */
export type MetadataRenderer = { readonly tokens: Tokens; render(tokens: Tokens, conversation: string): string }

/** Conversation that does not fit the budget. */
export type ExtractiveInput = {
  readonly messages: readonly TextMessage[]
  /** Most important first. */
  readonly items: readonly ContextItem[]
  /** Best first. Default: none. */
  readonly recalled?: readonly RecalledPassage[] | undefined
  /** Checks whether an item is listed in the metadata, so that its lines need not be selected. */
  readonly isListed: (item: ContextItem) => boolean
  readonly metadata: MetadataRenderer
  readonly frame: Frame
  /** Fraction of the conversation's tokens reserved for code. Default 2/3, as in `splitBudget`. */
  readonly codeFraction?: number
}

export type ExtractiveOptions = { readonly budget: Tokens; readonly tokenizer: Tokenizer; readonly query?: string }

const defaultCodeFraction = 2 / 3
/** Costs of selecting from a line, and of naming the speaker of a message, in characters. */
const lineWork = 8
const messageWork = 16
/**
 * Fractions of the conversation for passages recalled for the question of the new chat. Work depends on the newest
 * lines and on names more than on the question: 0.8 costs 8 points of future reference there, 0.2 none.
 */
const recalledFractions = { conversation: 0.9, work: 0.2 }
/** Few tokens are longer; longer prefixes are not tried. */
const maxCharsPerToken = 8
/** Smaller budgets have no room for speaker labels. */
const minBudgetWithLabels = 40
/** Attempts to come within `maxSpareFraction` of the budget. */
const maxAttempts = 5
const maxSpareFraction = 0.005

/** Renders metadata and the best lines of a conversation within a budget. */
export class ExtractiveRenderer {
  readonly #input: ExtractiveInput
  readonly #options: ExtractiveOptions

  constructor(input: ExtractiveInput, options: ExtractiveOptions) {
    this.#input = input
    this.#options = options
  }

  /**
   * Renders for varying targets until the text fills the budget: the token count of a text is known only afterwards.
   */
  *render(): Work<RenderedText> {
    const { budget, tokenizer } = this.#options
    if (budget < minBudgetWithLabels) return this.#renderMinimal()
    const renderFor = yield* this.#prepare()
    let best: RenderedText | undefined
    // The largest target known to fit and the smallest known not to.
    let [low, high] = [0, Number.POSITIVE_INFINITY]
    let target = budget
    for (let attempt = 1; target > 0 && (attempt <= maxAttempts || best === undefined); attempt++) {
      const rendered = yield* renderFor(target)
      yield rendered.text.length
      const spare = budget - tokenizer.count(rendered.text)
      const fits = spare >= 0
      if (fits && rendered.conversation.length >= (best?.conversation.length ?? 1)) best = rendered
      if (fits && spare <= budget * maxSpareFraction) break
      if (fits) low = Math.max(low, target)
      else high = Math.min(high, target)
      // A text that is far too long says little about the right target, so the target is at most halved.
      const next = Math.max(target + spare, target >> 1)
      const isBetween = next > low && next < high
      target = attempt >= maxAttempts ? target >> 1 : isBetween || low >= high ? next : (low + high) >> 1
    }
    return best ?? this.#renderMinimal()
  }

  /** Analyses the conversation once; the returned function renders about as many tokens as given. */
  *#prepare(): Work<(target: Tokens) => Work<RenderedText>> {
    const { messages, items, recalled = [], isListed, metadata, frame } = this.#input
    const { codeFraction = defaultCodeFraction } = this.#input
    const { budget, tokenizer, query } = this.#options
    const analyzed = yield* new LineAnalyzer(tokenizer).analyzeInSteps(messages.map(({ text }) => text))
    const { lines } = analyzed
    const linesWork = lines.length * lineWork
    yield linesWork
    const turns = findTurns(messages)
    yield messages.length * messageWork
    const speakerTokens = messages.map(({ message }) => tokenizer.count(formatSpeaker(message)) + 1)
    yield messages.length * messageWork
    const costOf = (indexes: readonly number[]): Tokens => {
      const selected = indexes.map((index) => lines[index] as ConversationLine)
      const { code, conversation } = sumCosts(selected, speakerTokens)
      return code + conversation
    }
    const demands = { ...sumCosts(lines, speakerTokens), metadata: metadata.tokens }
    yield linesWork
    const priorityLinesFor = createPriorityLines(lines, turns, findMarkedLines(items, lines, messages), costOf)
    yield linesWork
    const importantItems = items.filter((item) => !item.marked && !isListed(item))
    // The passages that answer a question may be prose or code, so they share one budget.
    const isConversation =
      recalled.length > 0 &&
      !isWork(
        messages.map(({ message, text }) => ({ role: message.role, text })),
        query,
      )
    yield linesWork
    const passages = findRecalledLines(recalled, lines, messages)
    yield linesWork
    const itemLines = findItemLines(importantItems, lines, messages)
    yield linesWork
    const input = {
      scores: yield* scoreLinesInSteps(lines, (index) => messages[index]?.message.role === 'user', query ?? ''),
      recalled: { passages, fraction: recalledFractions[isConversation ? 'conversation' : 'work'] },
      items: itemLines,
      excludedMessages: turns.empty,
      speakerTokens,
      clipTo: (text: string, tokens: Tokens) =>
        clipToFit(text, Math.max(0, tokens) * maxCharsPerToken, (clipped) => tokenizer.count(clipped) <= tokens),
    }
    const frameTokens = tokenizer.count(joinParts(frame, '', '-').text)
    return function* (target) {
      const shares = splitTarget(target, frameTokens, demands.code > 0 ? codeFraction : 0)
      const allocated = allocate(shares, demands)
      const priorityLines = priorityLinesFor(allocated.code + allocated.conversation, budget)
      const selection = yield* selectLinesInSteps(analyzed, {
        ...input,
        budget: isConversation ? allocated.code + allocated.conversation : allocated,
        priorityLines,
      })
      yield linesWork
      const conversation = formatSelection(lines, selection, messages)
      return joinParts(frame, metadata.render(allocated.metadata, conversation), conversation)
    }
  }

  /** Renders the start of the newest request and of the most important marked item, without labels. */
  #renderMinimal(): RenderedText {
    const { messages, items } = this.#input
    const { budget, tokenizer } = this.#options
    const maxChars = budget * maxCharsPerToken
    const marked = clipToFit(
      firstTextLine(items.find((item) => item.marked)?.content ?? ''),
      maxChars,
      (clipped) => tokenizer.count(clipped) <= budget >> 1,
    )
    const withMarked = (text: string): string => [marked, text].filter((part) => part !== '').join('\n')
    const request = firstTextLine(messages[findTurns(messages).request]?.text ?? '')
    const text = withMarked(clipToFit(request, maxChars, (clipped) => tokenizer.count(withMarked(clipped)) <= budget))
    return { text, conversation: text }
  }
}

/** Splits a target into shares. The frame is paid by the metadata first, then by the conversation. */
function splitTarget(target: Tokens, frameTokens: Tokens, codeFraction: number): BudgetSplit {
  const metadata = Math.max(0, splitBudget(target, codeFraction > 0).metadata - frameTokens)
  const rest = Math.max(0, target - frameTokens - metadata)
  const code = Math.floor(rest * codeFraction)
  return { code, conversation: rest - code, metadata }
}

/** Sums the costs of lines with their speaker labels and fences. */
function sumCosts(lines: readonly ConversationLine[], speakerTokens: readonly Tokens[]): LineBudget {
  const costs = { code: 0, conversation: 0 }
  for (const [index, line] of lines.entries()) {
    const previous = lines[index - 1]
    const label = line.message === previous?.message ? 0 : (speakerTokens[line.message] ?? 0)
    const fences = line.block === previous?.block ? 0 : (line.block?.tokens ?? 0)
    costs[lineKind(line)] += line.tokens + label + fences
  }
  return costs
}

/** Returns the lines of marked items grouped by message, newest message first. */
function findMarkedLines(
  items: readonly ContextItem[],
  lines: readonly ConversationLine[],
  messages: readonly TextMessage[],
): readonly (readonly number[])[] {
  const markedItems = items.filter(({ marked }) => marked)
  const byMessage = new Map<number, Set<number>>()
  for (const index of findItemLines(markedItems, lines, messages).flat()) {
    const message = lines[index]?.message ?? 0
    byMessage.set(message, (byMessage.get(message) ?? new Set()).add(index))
  }
  return [...byMessage]
    .sort(([left], [right]) => right - left)
    .map(([, indexes]) => [...indexes].sort((left, right) => left - right))
}

const leadingFence = /^\s*(?:`{3,}|~{3,})/

/** Clips a text to its longest prefix that fits, followed by `...` if there is room for it. */
function clipToFit(text: string, maxChars: number, fits: (clipped: string) => boolean): string {
  // A clipped line must not open or close a fence.
  const line = text.replace(leadingFence, '')
  const clipTo = (chars: number, ellipsis: string): string =>
    escapeForgedLines(chars < line.length ? clip(line, chars, '').trimEnd() + ellipsis : line)
  const longestFit = (ellipsis: string): number =>
    findLargest(Math.min(line.length, maxChars), (chars) => fits(clipTo(chars, ellipsis)))
  const chars = longestFit('...')
  return chars > 0 ? clipTo(chars, '...') : clipTo(longestFit(''), '')
}

/** Returns the first line with a letter or digit that is not a fence. */
function firstTextLine(text: string): string {
  const lines = splitFencedLines(text).filter(({ fence }) => fence === 'none' || fence === 'inside')
  return lines.map(({ start, end }) => text.slice(start, end).trim()).find((line) => /[\p{L}\p{N}]/u.test(line)) ?? ''
}

/**
 * Indexes of the newest user request, the newest answer and the first request (`goal`), or -1; `empty` messages say
 * nothing.
 */
type Turns = {
  readonly request: number
  readonly answer: number
  readonly goal: number
  readonly empty: ReadonlySet<number>
}

function findTurns(messages: readonly TextMessage[]): Turns {
  const isEmpty = messages.map(({ text }) => isAcknowledgement(text))
  const isBy = (role: string) => (message: TextMessage, index: number) =>
    message.message.role === role && !isEmpty[index]
  const lastUser = messages.findLastIndex(({ message }) => message.role === 'user')
  const lastRequest = messages.findLastIndex(isBy('user'))
  const newest = new Set([messages.length - 1, lastUser])
  return {
    request: lastRequest >= 0 ? lastRequest : lastUser >= 0 ? lastUser : messages.length - 1,
    answer: messages.findLastIndex(isBy('assistant')),
    goal: messages.findIndex(isBy('user')),
    empty: new Set(isEmpty.flatMap((empty, index) => (empty && !newest.has(index) ? [index] : []))),
  }
}

const acknowledgementWords = new Set(
  (
    'a again ahead all alright and awesome bitte carry continue cool correct danke do done excellent fine for go good got gracias great gut it ja k lgtm look looks ' +
    'makes me merci much next nice noted now of ok okay on perfect please proceed right sense so sounds sure ta thank thanks that the then this thx to ty understood ' +
    'very weiter welcome well work works yeah yep yes you'
  ).split(' '),
)
const maxAcknowledgementChars = 80

/**
 * Checks whether a message only confirms or thanks.
 *
 * @example
 * isAcknowledgement('Thanks, looks ok!') // true
 */
function isAcknowledgement(text: string): boolean {
  if (text.length > maxAcknowledgementChars || text.includes('?')) return false
  return (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).every((word) => acknowledgementWords.has(word))
}

type PriorityTurn = 'request' | 'answer' | 'goal'

/** Shares of the priority lines; unused tokens go to the others in this order. */
const priorityPercents = { request: 40, marked: 30, answer: 20, goal: 10 }
/**
 * Maximum tokens of each turn, and its maximum fraction of the available tokens unless that is less than a few lines.
 */
const maxTurnTokens: Readonly<Record<PriorityTurn, Tokens>> = { request: 400, answer: 200, goal: 120 }
const maxTurnFractions: Readonly<Record<PriorityTurn, number>> = { request: 1 / 2, answer: 1 / 4, goal: 1 / 8 }
const fewLinesTokens = 60
const maxMarkedFraction = 1 / 2
/** Smaller budgets omit the goal. */
const minBudgetWithGoal = 300

/**
 * Creates a function that returns the priority lines for a number of tokens: marked lines, request, answer and goal.
 */
function createPriorityLines(
  lines: readonly ConversationLine[],
  turns: Turns,
  marked: readonly (readonly number[])[],
  costOf: (indexes: readonly number[]) => Tokens,
): (tokens: Tokens, budget: Tokens) => readonly PriorityLines[] {
  const indexes = {
    request: orderTurnLines(lines, turns.request),
    answer: orderTurnLines(lines, turns.answer),
    goal: turns.goal === turns.request ? [] : findTurnLines(lines, turns.goal),
  }
  const costs = { request: costOf(indexes.request), answer: costOf(indexes.answer), goal: costOf(indexes.goal) }
  const markedCosts = marked.map(costOf)
  const totalMarkedCost = markedCosts.reduce((sum, cost) => sum + cost, 0)
  return (tokens, budget) => {
    const shares = { request: 0, marked: 0, answer: 0, goal: 0 }
    for (const name of Object.keys(shares) as (keyof typeof shares)[])
      shares[name] = Math.floor((tokens * priorityPercents[name]) / 100)
    shares.request += tokens - Object.values(shares).reduce((sum, share) => sum + share, 0)
    const demand = (turn: PriorityTurn): Tokens => {
      const maxTokens = Math.max(fewLinesTokens, Math.floor(tokens * maxTurnFractions[turn]))
      return Math.min(costs[turn], maxTurnTokens[turn], maxTokens)
    }
    const allocated = allocate(shares, {
      request: demand('request'),
      marked: Math.min(totalMarkedCost, Math.floor(tokens * maxMarkedFraction)),
      answer: demand('answer'),
      goal: budget >= minBudgetWithGoal ? demand('goal') : 0,
    })
    return [
      ...divideEvenly(marked, markedCosts, allocated.marked),
      { indexes: indexes.request, tokens: allocated.request },
      { indexes: indexes.answer, tokens: allocated.answer },
      { indexes: indexes.goal, tokens: allocated.goal },
    ]
  }
}

/** Divides tokens evenly among groups of lines; unused tokens go to the others. */
function divideEvenly(
  groups: readonly (readonly number[])[],
  costs: readonly Tokens[],
  tokens: Tokens,
): readonly PriorityLines[] {
  const share = Math.floor(tokens / Math.max(1, groups.length))
  const shares = groups.map((_, index) => (index === 0 ? tokens - share * (groups.length - 1) : share))
  const allocated = allocate<string>(Object.fromEntries(shares.entries()), Object.fromEntries(costs.entries()))
  return groups.map((indexes, index) => ({ indexes, tokens: allocated[index] ?? 0 }))
}

/** Returns the prose lines of a turn, or its code if it has no prose. */
function findTurnLines(lines: readonly ConversationLine[], turn: number): readonly number[] {
  const all = lines.flatMap(({ message }, index) => (message === turn ? [index] : []))
  const prose = all.filter((index) => lines[index]?.block === undefined)
  return prose.length > 0 ? prose : all
}

/** Puts the first and the last line of a turn first: one of them usually states the request. */
function orderTurnLines(lines: readonly ConversationLine[], turn: number): readonly number[] {
  const indexes = findTurnLines(lines, turn)
  const last = indexes.at(-1)
  if (last === undefined || indexes.length < 3 || lines[last]?.block !== undefined) return indexes
  return [...indexes.slice(0, 1), last, ...indexes.slice(1, -1)]
}
