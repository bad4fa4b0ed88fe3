import { maxMessageCharacters, type ParsedMessage } from '../domain/chat.ts'
import type { NewMessage, Tokens } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import { packPayloadInSteps, payloadTextInSteps } from '../domain/payload.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { runSync, type Work } from '../domain/work.ts'
import { countMessageTokens } from '../text/cost.ts'
import { escapeMemoryTagsInSteps } from '../text/fences.ts'
import { fastTokenCounters, type MessageCosts } from '../tokenizers/fastTokenCounters.ts'
import { parseArguments } from './anthropic.ts'
import { formatLine, toChatMessage } from './entryText.ts'

/** Counting is faster than the work that slices are made for. */
const countingSpeed = 8

/**
 * Counts a turn as text and as chat messages and returns the larger count, so that both forms fit. Each count of a long
 * text is a step.
 */
export function* countRendering(tokenizer: Tokenizer, text: string, chat: readonly ChatMessage[]): Work<Tokens> {
  const step = Math.ceil(text.length / countingSpeed)
  const textTokens = tokenizer.count(text)
  let chatTokens = 0
  for (const message of chat) {
    yield step
    chatTokens += countChatMessage(tokenizer, message)
    chatTokens += yield* anthropicSurcharge(tokenizer, message)
  }
  return Math.max(textTokens, chatTokens)
}

/** Returns the extra tokens of tool calls in Anthropic's format: arguments become objects, and ids may be replaced. */
function* anthropicSurcharge(tokenizer: Tokenizer, message: ChatMessage): Work<Tokens> {
  const extraForId = (id: string): Tokens => Math.max(0, 3 - tokenizer.count(id))
  if (message.role === 'tool') return extraForId(message.tool_call_id)
  let extra = 0
  for (const { id, function: called } of (message.role === 'assistant' && message.tool_calls) || []) {
    const json = called.arguments
    yield Math.ceil(json.length / countingSpeed)
    const rewritten = JSON.stringify(parseArguments(json))
    yield Math.ceil(json.length / countingSpeed)
    // The same text has the same count; most clients send compact JSON.
    const added = rewritten === json ? 0 : tokenizer.count(rewritten) - tokenizer.count(json)
    extra += extraForId(id) + Math.max(0, added)
  }
  return extra
}

/** Adds the token costs to a message before it is stored, and packs its payload. `maxWeight` limits its weight. */
export function measureMessage(
  tokenizer: Tokenizer,
  message: ParsedMessage,
  maxWeight = Number.POSITIVE_INFINITY,
): NewMessage {
  if (message.partEnds !== undefined || message.payload !== undefined)
    return runSync(measureInSteps(tokenizer, message, maxWeight))
  const [tokens, lineTokens] = fastTokenCounters.get(tokenizer)?.(message) ?? countMessage(tokenizer, message)
  return { ...message, tokens, lineTokens, tokenizer: tokenizer.name, weight: Math.min(tokens, maxWeight) }
}

/** Does the same as `measureMessage` in steps. What a payload adds to the text, such as reasoning, counts too. */
export function* measureInSteps(
  tokenizer: Tokenizer,
  { partEnds: _ends, payload, ...message }: ParsedMessage,
  maxWeight = Number.POSITIVE_INFINITY,
): Work<NewMessage> {
  const [textTokens, lineTokens] =
    fastTokenCounters.get(tokenizer)?.(message) ?? (yield* countMessageInSteps(tokenizer, message))
  const measured = { ...message, tokens: textTokens, lineTokens, tokenizer: tokenizer.name }
  if (payload === undefined) return { ...measured, weight: Math.min(textTokens, maxWeight) }
  const { content, name, toolCalls = [], toolCallId } = message
  const callTexts = toolCalls.flatMap((call) => [call.id, call.name, call.arguments])
  yield content.length
  const added = yield* payloadTextInSteps(payload, [content, name, toolCallId, ...callTexts].join('\n'))
  if (added.length > maxMessageCharacters)
    throw new MemoryError(
      'bad-message',
      `A message has ${added.length} characters beside its text; it may have ${maxMessageCharacters}. Send less reasoning.`,
    )
  const tokens = textTokens + (added === '' ? 0 : tokenizer.count(added))
  yield added.length
  const packedPayload = yield* packPayloadInSteps(payload, content)
  return { ...measured, packedPayload, tokens, weight: Math.min(tokens, maxWeight) }
}

const countMessage = (tokenizer: Tokenizer, message: ParsedMessage): MessageCosts =>
  runSync(countMessageInSteps(tokenizer, message))

function* countMessageInSteps(tokenizer: Tokenizer, message: ParsedMessage): Work<MessageCosts> {
  const escaped = yield* escapeMemoryTagsInSteps(message.content)
  const text = `${formatLine(message, true, escaped)}\n\n`
  yield Math.ceil(text.length / countingSpeed)
  const tokens = yield* countRendering(tokenizer, text, [toChatMessage(message, true, escaped)])
  yield Math.ceil(text.length / countingSpeed)
  return [tokens, tokenizer.count(text.slice(0, -1))]
}

/** Counts a message exactly as it is sent to OpenAI. */
export function countChatMessage(tokenizer: Tokenizer, message: ChatMessage): Tokens {
  if (message.role === 'tool')
    return countMessageTokens(tokenizer, { role: 'tool', content: message.content, toolCallId: message.tool_call_id })
  const { role, content, name } = message
  const calls =
    role === 'assistant' ? message.tool_calls?.map((call) => ({ id: call.id, ...call.function })) : undefined
  return countMessageTokens(tokenizer, { role, content, name, toolCalls: calls })
}
