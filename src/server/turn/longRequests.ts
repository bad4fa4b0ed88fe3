import type { IncomingMessage } from 'node:http'
import type { SequenceRange, Tokens } from '../../domain/entry.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { runInSlices, type Work } from '../../domain/work.ts'
import { yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import { countMessageTokens } from '../../text/cost.ts'
import type { ClientMessage } from '../protocols/protocol.ts'

/** Requests up to this size are handled without pauses between their steps. */
const maxShortRequestBytes = 65_536

/** True for a request that is long, or whose length is unknown: other requests run between its steps. */
export const isLongRequest = ({ headers }: IncomingMessage): boolean =>
  !(Number(headers['content-length']) <= maxShortRequestBytes)

/** Counts messages, with pauses between many or long ones. `knownTokens` returns the cost of one that is known. */
export const countInSlices = (
  tokenizer: Tokenizer,
  messages: readonly ClientMessage[],
  knownTokens: (message: ClientMessage, position: number) => Tokens | undefined = () => undefined,
): Promise<Tokens> => runInSlices(countInSteps(tokenizer, messages, knownTokens), yieldWhenLong)

function* countInSteps(
  tokenizer: Tokenizer,
  messages: readonly ClientMessage[],
  knownTokens: (message: ClientMessage, position: number) => Tokens | undefined,
): Work<Tokens> {
  let tokens = 0
  for (const [position, message] of messages.entries()) {
    const known = knownTokens(message, position)
    tokens += known ?? countMessageTokens(tokenizer, message)
    if (known === undefined) yield Math.floor(message.content.length / countingSpeed)
  }
  return tokens
}

/** Counting is faster than the work that slices are made for. */
const countingSpeed = 8

/**
 * The newest messages within `maxTokens`, at least `minCount`. Starts with a question that is an element of the list by
 * itself: a reply or a tool result needs what precedes it.
 */
export const newestThatFit = (
  tokenizer: Tokenizer,
  messages: readonly ClientMessage[],
  minCount: number,
  maxTokens: Tokens,
): Promise<readonly ClientMessage[]> =>
  runInSlices(newestInSteps(tokenizer, messages, minCount, maxTokens), yieldWhenLong)

function* newestInSteps(
  tokenizer: Tokenizer,
  messages: readonly ClientMessage[],
  minCount: number,
  maxTokens: Tokens,
): Work<readonly ClientMessage[]> {
  let tokens = 0
  let first = messages.length - minCount
  for (let position = messages.length - 1; position >= 0; position--) {
    const message = messages[position] as ClientMessage
    tokens += countMessageTokens(tokenizer, message)
    if (tokens > maxTokens) break
    const isStart = message.role === 'user' && messages[position - 1]?.index !== message.index
    if (position < first && isStart) first = position
    yield Math.floor(message.content.length / countingSpeed)
  }
  return messages.slice(first)
}

/** The last `count` messages of ordered ranges. */
export function newestMessages(ranges: readonly SequenceRange[], count: number): readonly SequenceRange[] {
  const found: SequenceRange[] = []
  let missing = count
  for (const [first, last] of ranges.toReversed()) {
    if (missing <= 0) break
    const from = Math.max(first, last - missing + 1)
    found.unshift([from, last])
    missing -= last - from + 1
  }
  return found
}
