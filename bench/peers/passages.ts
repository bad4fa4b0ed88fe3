// Rendering shared by all peers: `speaker: text` lines in reading order, with a line for each new day.
import type { DatasetMessage } from '../../src/evaluation/dataset.ts'
import { tokenizerNamed } from '../../src/tokenizers/tokenizers.ts'

/** Counts `o200k_base` tokens, as the scorer does. */
export const { count: countTokens } = await tokenizerNamed('exact')

/** A message, or a part of one, that a peer returned. */
export type Passage = {
  /** Position of the message in the conversation. */
  readonly order: number
  readonly day: string
  readonly line: string
  readonly tokens: number
}

const dayFormat = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' })

/** Text of a message as peers store and embed it: their messages have roles, but no names. */
export const formatMessage = ({ speaker, text }: Pick<DatasetMessage, 'speaker' | 'text'>): string =>
  `${speaker}: ${text}`

export const formatDay = ({ at }: Pick<DatasetMessage, 'at'>): string => (at === null ? '' : dayFormat.format(at))

export function createPassage(message: DatasetMessage, order: number, line = formatMessage(message)): Passage {
  return { order, day: formatDay(message), line, tokens: countTokens(`${line}\n`) }
}

/** Renders passages in reading order. */
export function renderPassages(passages: readonly Passage[]): string {
  const lines: string[] = []
  let shownDay = ''
  for (const { day, line } of passages.toSorted((a, b) => a.order - b.order)) {
    if (day !== '' && day !== shownDay) lines.push(`[${day}]`)
    shownDay = day
    lines.push(line)
  }
  return lines.join('\n')
}

/**
 * Fills the budget with ranked passages, best first. A passage that does not fit is skipped, and smaller ones after it are
 * tried. If nothing fits, the best passage is clipped.
 */
export function packPassages(ranked: readonly Passage[], budget: number): string {
  const chosen: Passage[] = []
  const days = new Set([''])
  let spent = 0
  for (const passage of ranked) {
    const tokens = passage.tokens + (days.has(passage.day) ? 0 : countTokens(`[${passage.day}]\n`))
    if (spent + tokens > budget) continue
    spent += tokens
    chosen.push(passage)
    days.add(passage.day)
  }
  // Texts counted one by one can have fewer tokens than their concatenation.
  while (countTokens(renderPassages(chosen)) > budget) chosen.pop()
  const [best] = ranked
  return chosen.length === 0 && best !== undefined ? clipToFit(renderPassages([best]), budget) : renderPassages(chosen)
}

/** Cuts the end of a text so that it has at most this many tokens. */
export function clipToFit(text: string, budget: number): string {
  // Longer than any text of the budget in practice; spares counting texts of a hundred thousand characters.
  const head = text.slice(0, 16 * budget)
  if (countTokens(head) <= budget) return head
  let [fits, exceeds] = [0, head.length]
  while (exceeds - fits > 1) {
    const middle = (fits + exceeds) >> 1
    if (countTokens(head.slice(0, middle)) <= budget) fits = middle
    else exceeds = middle
  }
  return head.slice(0, fits)
}

/**
 * Returns the largest number of results whose text fits, for peers that return a set of messages instead of a ranking. 0
 * if not even one result fits. Interpolates, because the tokens grow nearly linearly with the results.
 */
export async function findLargestFitting(
  { max, budget, tokensPerResult }: { max: number; budget: number; tokensPerResult: number },
  countResults: (size: number) => Promise<number>,
): Promise<number> {
  let [low, lowTokens, high, highTokens] = [0, 0, max + 1, Number.POSITIVE_INFINITY]
  let guess = Math.min(max, Math.ceil(budget / tokensPerResult))
  while (high - low > 1) {
    const tokens = await countResults(guess)
    if (tokens <= budget) [low, lowTokens] = [guess, tokens]
    else [high, highTokens] = [guess, tokens]
    const expected =
      highTokens === Number.POSITIVE_INFINITY
        ? (guess * budget) / Math.max(1, tokens)
        : low + ((high - low) * (budget - lowTokens)) / (highTokens - lowTokens)
    guess = Math.min(high - 1, Math.max(low + 1, Math.round(expected)))
  }
  return low
}

/** Remembers the last result by query, because a scorer asks the same question with several budgets. */
export function rememberLast<T, Rest extends readonly unknown[]>(
  search: (query: string, ...rest: Rest) => Promise<T>,
): (query: string, ...rest: Rest) => Promise<T> {
  let last: { readonly query: string; readonly result: Promise<T> } | undefined
  return (query, ...rest) => {
    if (last?.query !== query) last = { query, result: search(query, ...rest) }
    return last.result
  }
}
