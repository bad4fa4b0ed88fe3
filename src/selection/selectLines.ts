import type { Tokens } from '../domain/entry.ts'
import { Heap } from '../domain/heap.ts'
import type { Work } from '../domain/work.ts'
import type { ConversationLine, ConversationLines } from './conversationLines.ts'
import type { Mention } from './lines.ts'
import { type LineScores, type SelectionWeights, selectionWeights } from './scoreLines.ts'

/** Tokens available for lines of code and for all other lines. */
export type LineBudget = { readonly code: Tokens; readonly conversation: Tokens }

/** Part of the budget that pays for a line. */
export const lineKind = ({ block }: Pick<ConversationLine, 'block'>): keyof LineBudget =>
  block === undefined ? 'conversation' : 'code'

/** Lines selected before all others, in order of preference, up to `tokens`. */
export type PriorityLines = { readonly indexes: readonly number[]; readonly tokens: Tokens }

/** Lines of passages, and the fraction of the budget for them after the priority lines. */
export type RecalledLines = { readonly passages: readonly (readonly number[])[]; readonly fraction: number }

export type SelectionInput = {
  /** One number if code has no budget of its own. */
  readonly budget: LineBudget | Tokens
  readonly scores: LineScores
  /** Cost of naming the speaker of each message. */
  readonly speakerTokens: readonly Tokens[]
  /** Clips a priority line to a number of tokens; empty if nothing fits. */
  readonly clipTo?: (text: string, tokens: Tokens) => string
  /** Lines selected first. The first line that does not fit is clipped. */
  readonly priorityLines?: readonly PriorityLines[]
  /** Passages that answer the question, best first, each selected completely or not at all. */
  readonly recalled?: RecalledLines
  /** Lines of important code and data, each selected completely or not at all, most important first. */
  readonly items?: readonly (readonly number[])[]
  /** Messages whose lines are selected only as part of an item. */
  readonly excludedMessages?: ReadonlySet<number>
  readonly weights?: SelectionWeights
}

/** Sorted indexes of the selected lines, and the texts of those that are clipped. */
export type LineSelection = { readonly indexes: readonly number[]; readonly clipped: ReadonlyMap<number, string> }

/** Cost of computing the gain of a line, in characters. */
const lineWork = 4
/** Cheapest possible line: a word and a line break. */
const minLineTokens = 2
/** A line after others is not clipped to fewer tokens than this. */
const minClippedTokens = 8
/** Cost of the mark between lines that do not follow each other. */
const gapTokens = 2
/** Longer lines without words are not worth more than an omission mark. */
const maxFillerTokens = 4
/** Maximum fraction of the remaining budget for the line that matches the question best. */
const maxFirstMatchFraction = 0.5
/** Fraction of the remaining budget for items. */
const itemsFraction = 0.2
/** A smaller remainder of a budget is not lent to the other one. */
const minLentFraction = 0.05

/**
 * Selects lines: priority lines, recalled passages, the newest, those that match the question best, important items,
 * then the lines that add the most value per token. A name or word has a value once. The newest lines fill the rest.
 */
export function* selectLinesInSteps(conversation: ConversationLines, input: SelectionInput): Work<LineSelection> {
  const selector = new LineSelector(conversation, input)
  for (const { indexes, tokens } of input.priorityLines ?? []) selector.addPriorityLines(indexes, tokens)
  selector.addItems(input.recalled?.passages ?? [], input.recalled?.fraction ?? 0)
  selector.addNewest(selector.weights.tailShare)
  selector.addMatching(selector.weights.matchShare)
  yield conversation.lines.length
  selector.addItems(input.items ?? [], itemsFraction)
  yield* selector.addBest()
  selector.addNewest(1)
  if (selector.lend('code', 'conversation') || selector.lend('conversation', 'code')) yield* selector.addBest()
  yield conversation.lines.length
  return selector.selection
}

/** A line is selected as it is, or clipped. */
const selectedState = 1
const clippedState = 2

class LineSelector {
  readonly weights: SelectionWeights
  readonly #lines: readonly ConversationLine[]
  readonly #dependencies: ConversationLines['dependencies']
  readonly #input: SelectionInput
  /** State of each line: 0 if it is not selected. */
  readonly #states: Uint8Array
  readonly #clipped = new Map<number, string>()
  /** Credit given for each name and word: 1 if it is shown, less if it is at the edge of a line without its context. */
  readonly #credits: Float64Array
  /** Messages and code blocks of which a line is selected: their labels and fences are paid for. */
  readonly #paid = new Set<unknown>()
  readonly #budget: LineBudget
  readonly #remaining: { code: Tokens; conversation: Tokens }

  constructor({ lines, dependencies }: ConversationLines, input: SelectionInput) {
    this.weights = input.weights ?? selectionWeights
    this.#lines = lines
    this.#dependencies = dependencies
    this.#input = input
    this.#states = new Uint8Array(lines.length)
    this.#credits = new Float64Array(input.scores.values.length)
    this.#budget = typeof input.budget === 'number' ? { code: 0, conversation: input.budget } : input.budget
    this.#remaining = { ...this.#budget }
  }

  /** The selected lines, with lines without words in place of the omission marks that would stand for them. */
  get selection(): LineSelection {
    const isFiller = (index: number): boolean => {
      const { message, tokens } = this.#line(index)
      const isBetween = [index - 1, index + 1].every(
        (near) => this.#isSelected(near) && this.#line(near).message === message,
      )
      return isBetween && this.#dependencies[index] === undefined && tokens <= maxFillerTokens
    }
    const indexes = [...this.#lines.keys()].filter((index) => this.#isSelected(index) || isFiller(index))
    return { indexes, clipped: this.#clipped }
  }

  /** Adds lines while they fit in `tokens`; clips the first that does not. */
  addPriorityLines(indexes: readonly number[], tokens: Tokens): void {
    let remaining = tokens
    for (const [position, index] of indexes.entries()) {
      if (this.#isSelected(index)) continue
      const cost = this.#cost([index])
      if (cost > remaining) {
        const line = this.#line(index)
        const textTokens = remaining - (cost - line.tokens)
        const isTooShort = position > 0 && textTokens < minClippedTokens
        const clipped = isTooShort ? '' : (this.#input.clipTo?.(line.text, textTokens - 1) ?? '')
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
      const missing = indexes.filter((index) => !this.#isSelected(index))
      const costs = { code: 0, conversation: 0 }
      // An upper bound: lines that share a message or a block each count its label or fences.
      for (const index of missing) costs[this.#kind(index)] += this.#cost([index])
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
      const kind = this.#kind(index)
      if (!isFull[kind] && this.#isSelectable(index)) isFull[kind] = !this.#addAbove(index, floor)
    }
  }

  /**
   * Adds the lines that match the question best within a fraction of the remaining budget, best and newest first. The
   * first may take more.
   */
  addMatching(fraction: number): void {
    const { match } = this.#input.scores
    const matching = [...this.#lines.keys()].filter((index) => match(index) >= this.weights.minMatch)
    const floors = [this.#floor(maxFirstMatchFraction), this.#floor(fraction)]
    for (const index of matching.sort((left, right) => match(right) - match(left) || right - left))
      if (this.#isSelectable(index) && this.#addAbove(index, floors[0] as LineBudget) && floors.length > 1)
        floors.shift()
  }

  /**
   * Adds the lines with the highest value per token. An entry whose gain has fallen since it was queued is queued
   * again.
   */
  *addBest(): Work<void> {
    const floor = this.#floor(1)
    const queue = new Heap(isBetter)
    for (const index of this.#lines.keys()) {
      if (this.#isSelectable(index)) queue.push({ index, gain: this.#gain(index) })
      yield lineWork
    }
    for (
      let next = queue.pop();
      next !== undefined && Math.max(this.#remaining.code, this.#remaining.conversation) >= minLineTokens;
      next = queue.pop()
    ) {
      const { index } = next
      yield lineWork
      if (!this.#isSelectable(index)) continue
      const gain = this.#gain(index)
      if (gain <= 0) continue
      if (gain < next.gain) queue.push({ index, gain })
      else if (this.#addAbove(index, floor)) this.#requeueNeighbours(index, queue)
    }
  }

  /** Moves the unused part of one budget to the other; returns false if it is too small. */
  lend(from: keyof LineBudget, to: keyof LineBudget): boolean {
    if (typeof this.#input.budget === 'number') return false
    const unused = this.#remaining[from]
    if (unused < minLineTokens || unused < minLentFraction * this.#budget[from]) return false
    this.#remaining[from] = 0
    this.#remaining[to] += unused
    return true
  }

  #isSelected = (index: number): boolean => (this.#states[index] ?? 0) > 0

  #isSelectable = (index: number): boolean =>
    !this.#isSelected(index) &&
    this.#dependencies[index] !== undefined &&
    !this.#input.excludedMessages?.has(this.#line(index).message)

  /** Selecting a line can raise the gain of its neighbours: names at their edges now have context. */
  #requeueNeighbours(index: number, queue: Heap<QueueEntry>): void {
    const { required = [], neighbours = [] } = this.#dependencies[index] ?? {}
    for (const near of [...required, ...neighbours])
      for (const other of [near - 1, near, near + 1])
        if (this.#isSelectable(other)) queue.push({ index: other, gain: this.#gain(other) })
  }

  /** Returns a line and its dependencies that are not selected yet. */
  #group(index: number): readonly number[] {
    const { required = [], neighbours = [] } = this.#dependencies[index] ?? {}
    if (required.length === 1 && neighbours.length === 0) return required
    const neighbour = neighbours.some(this.#isSelected) ? [] : neighbours.slice(0, 1)
    return [...required, ...neighbour].filter((other) => !this.#isSelected(other))
  }

  /** Value that a line adds with its dependencies, per token. */
  #gain(index: number): number {
    const { scores } = this.#input
    const group = this.#group(index)
    const value = this.#giveCredits(group)
    let lineValue = 0
    for (const member of group) lineValue += scores.line(member)
    return (value * scores.factor(index) + lineValue) / (this.#costWithGaps(group) + this.weights.costOffset)
  }

  /**
   * Returns the value of the names and words that these lines show in addition: their own, and those at the edges of
   * selected neighbours that now have context. Their credits are restored unless `isFinal`.
   */
  #giveCredits(group: readonly number[], isFinal = false): number {
    const { scores } = this.#input
    const previous: [number: number, credit: number][] = []
    let value = 0
    const give = (number: number, credit: number): void => {
      const given = this.#credits[number] ?? 0
      if (credit <= given) return
      value += (credit - given) * (scores.values[number] ?? 0)
      if (!isFinal) previous.push([number, given])
      this.#credits[number] = credit
    }
    const isShown = (index: number): boolean => this.#states[index] === selectedState || group.includes(index)
    for (const index of group) {
      for (const word of scores.words[index] ?? []) give(word, 1)
      for (let near = index - 1; near <= index + 1; near++) {
        if (!isShown(near)) continue
        const { mentions } = this.#line(near)
        const names = scores.names[near] ?? []
        for (let at = 0; at < names.length; at++) {
          const { needsPrevious, needsNext } = mentions[at] as Mention
          const hasContext = (!needsPrevious || isShown(near - 1)) && (!needsNext || isShown(near + 1))
          give(names[at] as number, hasContext ? 1 : this.weights.edgeCredit)
        }
      }
    }
    for (let at = previous.length - 1; at >= 0; at--) {
      const [number, credit] = previous[at] as [number, number]
      this.#credits[number] = credit
    }
    return value
  }

  /** Adds a line with its dependencies unless less than `floor` would remain. */
  #addAbove(index: number, floor: LineBudget): boolean {
    const group = this.#group(index)
    const kind = this.#kind(index)
    const cost = this.#costWithGaps(group)
    if (this.#remaining[kind] - cost < floor[kind]) return false
    this.#add(group, cost)
    return true
  }

  /** Adds lines. If their own budget is too small, which happens only for priority lines, the other one pays. */
  #add(group: readonly number[], cost: Tokens, clipped?: string): void {
    const own = this.#kind(group[0] ?? 0)
    const other = own === 'code' ? 'conversation' : 'code'
    this.#remaining[own] -= cost
    if (this.#remaining[own] < 0) {
      this.#remaining[other] += this.#remaining[own]
      this.#remaining[own] = 0
    }
    if (clipped === undefined) this.#giveCredits(group, true)
    for (const index of group) {
      this.#states[index] = clipped === undefined ? selectedState : clippedState
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

  /** Cost with the omission marks that the lines add, or save if they fill a gap. */
  #costWithGaps(group: readonly number[]): Tokens {
    let gaps = 1
    for (const index of group) {
      if (this.#isSelected(index - 1)) gaps--
      if (this.#isSelected(index + 1)) gaps--
    }
    return Math.max(1, this.#cost(group) + gapTokens * gaps)
  }

  #kind(index: number): keyof LineBudget {
    return typeof this.#input.budget === 'number' ? 'conversation' : lineKind(this.#line(index))
  }

  #line(index: number): ConversationLine {
    return this.#lines[index] as ConversationLine
  }
}

type QueueEntry = { readonly index: number; readonly gain: number }

/** Puts higher gains first; of equal gains, the later line. */
const isBetter = (a: QueueEntry, b: QueueEntry): boolean => a.gain > b.gain || (a.gain === b.gain && a.index > b.index)
