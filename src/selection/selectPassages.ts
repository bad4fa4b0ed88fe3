import type { Role, Tokens } from '../domain/entry.ts'
import { runSync, type Work } from '../domain/work.ts'
import type { ConversationLine, ConversationLines, LineAnalyzer } from './conversationLines.ts'
import { formatLines, groupByMessage, omissionMark } from './formatLines.ts'
import { type SelectionWeights, scoreLinesInSteps } from './scoreLines.ts'
import { selectLinesInSteps } from './selectLines.ts'

/** Message of a conversation reduced to its author and its text. */
export type SelectableMessage = { readonly role: Role; readonly text: string }

/** Part of a text: `text.slice(start, end)`. */
export type TextRange = { readonly start: number; readonly end: number }

/** Shown part of a message. */
export type Excerpt<M extends SelectableMessage> = {
  readonly message: M
  /** Index of the message in the conversation. */
  readonly index: number
  /** The message's text, or its passages with `…` where something is left out. */
  readonly text: string
  /** Parts of the message's text that are shown, in order; blank lines and fences around them are not included. */
  readonly passages: readonly TextRange[]
  /** True if nothing is left out. */
  readonly isWhole: boolean
  /** Cost of `text` with the message's overhead. */
  readonly tokens: Tokens
}

export type PassageOptions = {
  /** Maximum tokens of all excerpts. */
  readonly budget: Tokens
  /** Newest request: lines that match it are preferred. */
  readonly question?: string
  /** Tokens of a shown message beside its text, such as its speaker. Default 4. */
  readonly overheadTokens?: (index: number) => Tokens
  readonly weights?: SelectionWeights
}

/** Older text is not considered: about 64,000 tokens. */
const maxConsideredChars = 256_000
const defaultOverheadTokens = 4
/** Attempts to come within `maxSpareFraction` of the budget. */
const maxAttempts = 3
const maxSpareFraction = 0.01
/** Cost of scoring a line, in characters. */
const lineWork = 4

/**
 * Selects passages of a work session, oldest first: the newest text, and the older lines with the most names, paths,
 * numbers and rare words per token that are not shown yet. The excerpts never exceed the budget.
 *
 * @example
 * selectPassages([{ role: 'user', text: 'Fix src/app.ts' }], { budget: 1_000 }, new LineAnalyzer(tokenizer))[0]?.text // 'Fix src/app.ts'
 */
export const selectPassages = <M extends SelectableMessage>(
  messages: readonly M[],
  options: PassageOptions,
  analyzer: LineAnalyzer,
): readonly Excerpt<M>[] => runSync(selectPassagesInSteps(messages, options, analyzer))

/** `selectPassages` as interruptible work. */
export function* selectPassagesInSteps<M extends SelectableMessage>(
  messages: readonly M[],
  options: PassageOptions,
  analyzer: LineAnalyzer,
): Work<readonly Excerpt<M>[]> {
  const { budget, question = '', overheadTokens = () => defaultOverheadTokens, weights } = options
  const first = findFirstConsidered(messages)
  const considered = messages.slice(first)
  const conversation = yield* analyzer.analyzeInSteps(considered.map(({ text }) => text))
  const speakerTokens = considered.map((_, index) => overheadTokens(first + index))
  yield conversation.lines.length * lineWork
  const scores = yield* scoreLinesInSteps(
    conversation.lines,
    (index) => considered[index]?.role === 'user',
    question,
    weights,
  )
  yield conversation.lines.length * lineWork
  const select = function* (target: Tokens): Work<readonly Excerpt<M>[]> {
    const { indexes } = yield* selectLinesInSteps(conversation, {
      budget: target,
      scores,
      speakerTokens,
      ...(weights === undefined ? {} : { weights }),
    })
    return groupByMessage(conversation.lines, indexes).map((own) => {
      const at = conversation.lines[own[0] ?? 0]?.message ?? 0
      const excerpt = createExcerpt(considered[at] as M, conversation, own)
      return {
        ...excerpt,
        index: first + at,
        tokens: analyzer.tokenizer.count(excerpt.text) + (speakerTokens[at] ?? 0),
      }
    })
  }
  return yield* fitBudget(select, budget)
}

/** Returns the index of the oldest message that is considered. */
function findFirstConsidered(messages: readonly SelectableMessage[]): number {
  let chars = 0
  let first = messages.length
  while (first > 0 && chars < maxConsideredChars) chars += messages[--first]?.text.length ?? 0
  return first
}

/** Selects for varying targets until the excerpts fill the budget: their exact cost is known only afterwards. */
function* fitBudget<E extends { readonly tokens: Tokens }>(
  select: (target: Tokens) => Work<readonly E[]>,
  budget: Tokens,
): Work<readonly E[]> {
  let best: readonly E[] = []
  let bestTokens = 0
  let target = budget
  for (let attempt = 1; attempt <= maxAttempts && target > 0; attempt++) {
    const excerpts = yield* select(target)
    const tokens = excerpts.reduce((sum, excerpt) => sum + excerpt.tokens, 0)
    if (tokens <= budget && tokens > bestTokens) [best, bestTokens] = [excerpts, tokens]
    const spare = budget - tokens
    if (spare >= 0 && spare <= budget * maxSpareFraction) break
    target = Math.max(target + spare, target >> 1)
  }
  return best
}

function createExcerpt<M extends SelectableMessage>(
  message: M,
  { lines, dependencies, linesOf }: ConversationLines,
  indexes: readonly number[],
): Omit<Excerpt<M>, 'index' | 'tokens'> {
  const selected = new Set(indexes)
  const { start, end, isComplete } = linesOf(lines[indexes[0] ?? 0]?.message ?? 0)
  const isOmitted = (index: number): boolean => !selected.has(index) && dependencies[index] !== undefined
  const omitted = Array.from({ length: end - start }, (_, offset) => start + offset).filter(isOmitted)
  if (isComplete && omitted.length === 0) {
    const passages = [{ start: 0, end: message.text.length }]
    return { message, text: message.text, passages, isWhole: true }
  }
  const omitsStart = !isComplete || (omitted[0] ?? end) < (indexes[0] ?? start)
  const omitsEnd = (omitted.at(-1) ?? start) > (indexes.at(-1) ?? end)
  const rows = [omitsStart ? omissionMark : '', formatLines(lines, indexes), omitsEnd ? omissionMark : '']
  return {
    message,
    text: rows.filter((row) => row !== '').join('\n'),
    passages: mergeRanges(lines, indexes),
    isWhole: false,
  }
}

/** Returns the ranges of lines; lines that follow each other form one range. */
function mergeRanges(lines: readonly ConversationLine[], indexes: readonly number[]): readonly TextRange[] {
  const ranges: { start: number; end: number }[] = []
  for (const [position, index] of indexes.entries()) {
    const { start, end } = lines[index] as ConversationLine
    const last = ranges.at(-1)
    if (last !== undefined && indexes[position - 1] === index - 1) last.end = end
    else ranges.push({ start, end })
  }
  return ranges
}
