import type { Tokens } from '../../domain/entry.ts'
import { Heap } from '../../domain/heap.ts'
import { extractTerms } from '../../text/words.ts'
import { recencyFactor } from '../item.ts'
import type { TextMessage } from '../textMessage.ts'
import { type ConversationLine, type LineDependencies, lineKind } from './lines.ts'

/** Tokens available for lines of code and for all other lines. */
export type LineBudget = { readonly code: Tokens; readonly conversation: Tokens }

/** Lines selected before all others, in order of preference, up to `tokens`. */
export type PriorityLines = { readonly indexes: readonly number[]; readonly tokens: Tokens }

export type SelectionInput = {
  readonly budget: LineBudget
  readonly scores: LineScores
  /** Lines selected first. The first line that does not fit is clipped. */
  readonly priorityLines: readonly PriorityLines[]
  /** Lines of important code and data, each selected completely or not at all, most important first. */
  readonly items: readonly (readonly number[])[]
  /** Dependencies of each line; a line without is selected only as part of an item. */
  readonly dependencies: readonly (LineDependencies | undefined)[]
  /** Cost of naming the speaker of each message. */
  readonly speakerTokens: readonly Tokens[]
  /** Clips a text to a number of tokens; empty if nothing fits. */
  readonly clipTo: (text: string, tokens: Tokens) => string
}

/** Sorted indexes of the selected lines, and the texts of those that are clipped. */
export type LineSelection = { readonly indexes: readonly number[]; readonly clipped: ReadonlyMap<number, string> }

/** Cheapest possible line: a word and a line break. */
const minLineTokens = 2
/** A line after others is not clipped to fewer tokens than this. */
const minClippedTokens = 8
/** Fractions of the remaining budget for the newest lines and for items; the rest goes to the best lines. */
const newestFraction = 0.3
const itemsFraction = 0.2
/** A smaller remainder of a budget is not lent to the other one. */
const minLentFraction = 0.05

/** Selects lines: priority lines, the newest, important items, then the lines with the best score per token. */
export function selectLines(lines: readonly ConversationLine[], input: SelectionInput): LineSelection {
  const selector = new LineSelector(lines, input)
  for (const { indexes, tokens } of input.priorityLines) selector.addPriorityLines(indexes, tokens)
  selector.addNewest(newestFraction)
  selector.addItems(input.items, itemsFraction)
  selector.addBest()
  selector.addNewest(1)
  if (selector.lend('code', 'conversation') || selector.lend('conversation', 'code')) selector.addBest()
  return selector.selection
}

class LineSelector {
  readonly #lines: readonly ConversationLine[]
  readonly #input: SelectionInput
  readonly #selected = new Set<number>()
  readonly #clipped = new Map<number, string>()
  readonly #selectedNames = new Set<string>()
  /** Messages and code blocks of which a line is selected: their labels and fences are paid for. */
  readonly #paid = new Set<unknown>()
  readonly #remaining: { code: Tokens; conversation: Tokens }

  constructor(lines: readonly ConversationLine[], input: SelectionInput) {
    this.#lines = lines
    this.#input = input
    this.#remaining = { ...input.budget }
  }

  get selection(): LineSelection {
    return { indexes: [...this.#selected].sort((left, right) => left - right), clipped: this.#clipped }
  }

  /** Adds lines while they fit in `tokens`; clips the first that does not. */
  addPriorityLines(indexes: readonly number[], tokens: Tokens): void {
    let remaining = tokens
    for (const [position, index] of indexes.entries()) {
      if (this.#selected.has(index)) continue
      const cost = this.#cost([index])
      if (cost > remaining) {
        const line = this.#line(index)
        const textTokens = remaining - (cost - line.tokens)
        const isTooShort = position > 0 && textTokens < minClippedTokens
        const clipped = isTooShort ? '' : this.#input.clipTo(line.text, textTokens - 1)
        if (clipped !== '') this.#add([index], remaining, clipped)
        return
      }
      this.#add([index], cost)
      remaining -= cost
    }
  }

  /** Adds items that fit completely in a fraction of the remaining budget. */
  addItems(items: readonly (readonly number[])[], fraction: number): void {
    const floor = this.#floor(fraction)
    for (const indexes of items) {
      const missing = indexes.filter((index) => !this.#selected.has(index))
      const costs = { code: 0, conversation: 0 }
      // An upper bound: lines that share a message or a block each count its label or fences.
      for (const index of missing) costs[lineKind(this.#line(index))] += this.#cost([index])
      const exceedsBudget =
        this.#remaining.code - costs.code < floor.code ||
        this.#remaining.conversation - costs.conversation < floor.conversation
      if (exceedsBudget) continue
      for (const index of missing) this.#add([index], this.#cost([index]))
    }
  }

  /** Adds lines from the newest backwards. Once a kind is full, only lines of the other kind are added. */
  addNewest(fraction: number): void {
    const floor = this.#floor(fraction)
    const isFull = { code: false, conversation: false }
    for (let index = this.#lines.length - 1; index >= 0 && !(isFull.code && isFull.conversation); index--) {
      const kind = lineKind(this.#line(index))
      if (!isFull[kind] && this.#isSelectable(index)) isFull[kind] = !this.#addAbove(index, floor)
    }
  }

  /**
   * Adds the lines with the highest score per token. An entry whose gain has fallen since it was queued is queued
   * again.
   */
  addBest(): void {
    const floor = this.#floor(1)
    const queue = new Heap(isBetter)
    for (const index of this.#lines.keys())
      if (this.#isSelectable(index)) queue.push({ index, score: this.#gain(index) })
    for (
      let next = queue.pop();
      next !== undefined && Math.max(this.#remaining.code, this.#remaining.conversation) >= minLineTokens;
      next = queue.pop()
    ) {
      const { index, score } = next
      if (!this.#isSelectable(index)) continue
      const gain = this.#gain(index)
      if (gain <= 0) continue
      if (gain < score) queue.push({ index, score: gain })
      else if (this.#addAbove(index, floor)) this.#requeueNeighbours(index, queue)
    }
  }

  /** Moves the unused part of one budget to the other; returns false if it is too small. */
  lend(from: keyof LineBudget, to: keyof LineBudget): boolean {
    const unused = this.#remaining[from]
    if (unused < minLineTokens || unused < minLentFraction * this.#input.budget[from]) return false
    this.#remaining[from] = 0
    this.#remaining[to] += unused
    return true
  }

  #isSelectable = (index: number): boolean =>
    !this.#selected.has(index) && this.#input.dependencies[index] !== undefined

  /** Selecting a line can raise the gain of its neighbours: names at their edges now have context. */
  #requeueNeighbours(index: number, queue: Heap<QueueEntry>): void {
    const { required = [], neighbours = [] } = this.#input.dependencies[index] ?? {}
    for (const near of [...required, ...neighbours])
      for (const other of [near - 1, near, near + 1])
        if (this.#isSelectable(other)) queue.push({ index: other, score: this.#gain(other) })
  }

  /** Returns a line and its dependencies that are not selected yet. */
  #group(index: number): readonly number[] {
    const { required = [], neighbours = [] } = this.#input.dependencies[index] ?? {}
    const neighbour = neighbours.some((near) => this.#selected.has(near)) ? [] : neighbours.slice(0, 1)
    return [...required, ...neighbour].filter((other) => !this.#selected.has(other))
  }

  /** Score that a line adds with its dependencies, per token. */
  #gain(index: number): number {
    const { scores } = this.#input
    const group = this.#group(index)
    let gain = 0
    for (const member of group) gain += scores.line(member)
    for (const name of this.#namesShownBy(group))
      if (!this.#selectedNames.has(name)) gain += scores.names.get(name) ?? 0
    return gain / this.#cost(group)
  }

  /** Names with context once these lines are selected: their own, and those at the edges of selected neighbours. */
  #namesShownBy(group: readonly number[]): ReadonlySet<string> {
    const names = new Set<string>()
    const isShown = (index: number): boolean =>
      group.includes(index) || (this.#selected.has(index) && !this.#clipped.has(index))
    for (const index of group)
      for (const near of [index - 1, index, index + 1]) {
        if (!isShown(near)) continue
        for (const { name, needsPrevious, needsNext } of this.#lines[near]?.mentions ?? [])
          if ((!needsPrevious || isShown(near - 1)) && (!needsNext || isShown(near + 1))) names.add(name)
      }
    return names
  }

  /** Adds a line with its dependencies unless less than `floor` would remain. */
  #addAbove(index: number, floor: LineBudget): boolean {
    const group = this.#group(index)
    const kind = lineKind(this.#line(index))
    const cost = this.#cost(group)
    if (this.#remaining[kind] - cost < floor[kind]) return false
    this.#add(group, cost)
    return true
  }

  /** Adds lines. If their own budget is too small, which happens only for priority lines, the other one pays. */
  #add(group: readonly number[], cost: Tokens, clipped?: string): void {
    const own = lineKind(this.#line(group[0] ?? 0))
    const other = own === 'code' ? 'conversation' : 'code'
    this.#remaining[own] -= cost
    if (this.#remaining[own] < 0) {
      this.#remaining[other] += this.#remaining[own]
      this.#remaining[own] = 0
    }
    if (clipped === undefined) for (const name of this.#namesShownBy(group)) this.#selectedNames.add(name)
    for (const index of group) {
      this.#selected.add(index)
      if (clipped !== undefined) this.#clipped.set(index, clipped)
      this.#paid.add(this.#line(index).message).add(this.#line(index).block)
    }
  }

  #floor = (fraction: number): LineBudget => ({
    code: this.#remaining.code * (1 - fraction),
    conversation: this.#remaining.conversation * (1 - fraction),
  })

  /** Cost of lines of one message, with its label and fences unless already paid for. */
  #cost(group: readonly number[]): Tokens {
    const blocks = new Set<ConversationLine['block']>()
    const { message } = this.#line(group[0] ?? 0)
    let cost = this.#paid.has(message) ? 0 : (this.#input.speakerTokens[message] ?? 0)
    for (const index of group) {
      const { tokens, block } = this.#line(index)
      if (block !== undefined && !this.#paid.has(block) && !blocks.has(block)) cost += block.tokens
      blocks.add(block)
      cost += tokens
    }
    return cost
  }

  #line(index: number): ConversationLine {
    return this.#lines[index] as ConversationLine
  }
}

type QueueEntry = { readonly index: number; readonly score: number }

/** Puts higher scores first; of equal scores, the later line. */
const isBetter = (a: QueueEntry, b: QueueEntry): boolean =>
  a.score > b.score || (a.score === b.score && a.index > b.index)

/** Scores of names, counted once per name, and of lines themselves. */
export type LineScores = { readonly names: ReadonlyMap<string, number>; readonly line: (index: number) => number }

/** Base score of a line by its author, and the additional score of a line that matches the query. */
const userLineScore = 1
const otherLineScore = 0.1
const queryScore = 3

/** Scores names and lines. A name scores higher the later and the more often it is used: it is then likely to recur. */
export function scoreLines(
  lines: readonly ConversationLine[],
  messages: readonly TextMessage[],
  query = '',
): LineScores {
  const tokensAfter: Tokens[] = []
  const uses = new Map<string, { readonly recency: number; readonly messages: Set<number> }>()
  let tokens = 0
  for (let index = lines.length - 1; index >= 0; index--) {
    const line = lines[index] as ConversationLine
    tokensAfter[index] = tokens
    for (const { name } of line.mentions) {
      const use = uses.get(name)
      if (use === undefined) uses.set(name, { recency: recencyFactor(tokens), messages: new Set([line.message]) })
      else use.messages.add(line.message)
    }
    tokens += line.tokens
  }
  const queryTerms = new Set(extractTerms(query))
  const scoreLine = (index: number): number => {
    const line = lines[index] as ConversationLine
    const base = messages[line.message]?.message.role === 'user' ? userLineScore : otherLineScore
    return base * recencyFactor(tokensAfter[index] ?? 0) + queryScore * shareOfTerms(line.text, queryTerms)
  }
  return {
    names: new Map([...uses].map(([name, use]) => [name, use.recency * use.messages.size])),
    line: memoize(scoreLine, lines.length),
  }
}

/** Returns the share of the query terms that occur in a text. */
function shareOfTerms(text: string, queryTerms: ReadonlySet<string>): number {
  if (queryTerms.size === 0) return 0
  const terms = new Set(extractTerms(text))
  return [...queryTerms].filter((term) => terms.has(term)).length / queryTerms.size
}

/** Caches the scores of lines, which are never negative. */
function memoize(score: (index: number) => number, length: number): (index: number) => number {
  const cache = new Float64Array(length).fill(-1)
  return (index) => {
    if ((cache[index] ?? -1) < 0) cache[index] = score(index)
    return cache[index] ?? 0
  }
}
