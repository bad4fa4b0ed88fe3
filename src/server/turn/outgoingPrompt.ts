import type { LazyContext } from '../../context/composeContext.ts'
import { isSpaceReason } from '../../context/receipt.ts'
import { type Message, parseMessageId, type Tokens } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import type { Key } from '../../domain/key.ts'
import type { ChatMessage, Ledger, LedgerLine } from '../../domain/ledger.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { countMessageTokens } from '../../text/cost.ts'
import type { Preamble } from '../memoryRegistry.ts'
import type { ClientMessage, ParsedRequest, Protocol, RequestBody } from '../protocols/protocol.ts'

/** The request body sent upstream for one turn, and its cost. */
export type OutgoingPrompt = {
  readonly body: RequestBody
  readonly tokens: Tokens
  /** Set when the client's messages were sent unchanged: the newest turn did not fit, or memory could not render it. */
  readonly degraded?: 'budget' | 'messages'
  /** Receipt of the context; absent when `degraded`. */
  readonly ledger?: Ledger
}

export type PromptInput = {
  readonly memory: Memory
  readonly key: Key
  readonly protocol: Protocol
  /** The request without an assistant prefill. */
  readonly request: ParsedRequest
  readonly preamble: Preamble
  readonly person: string | undefined
}

/** Messages of the newest turn. */
export const newestTurn = ({ messages, turnStart }: ParsedRequest): readonly ClientMessage[] =>
  messages.slice(messages.findLastIndex(({ index }) => index < turnStart) + 1)

/** Builds the prompt for a turn whose messages are stored; `stored` is the newest turn in its stored form. */
export function buildPrompt(input: PromptInput, stored: readonly Message[]): Promise<OutgoingPrompt> {
  const turn = newestTurn(input.request)
  return buildWithinBudget(input, extraTokens(input.memory.tokenizer, turn, stored), undefined, (context) =>
    joinMemoryAndTurn(input, context, turn, stored[0]?.sequence ?? 0),
  )
}

/** Builds the prompt for a turn that must not be stored: new messages stand beside what memory shows for them. */
export function buildUnstoredPrompt(
  input: PromptInput,
  stored: readonly Message[],
  newFrom: number,
): Promise<OutgoingPrompt> {
  const { request, memory } = input
  const unstored = request.messages.slice(newFrom)
  const storedTurn = newestTurn(request).filter((message) => !unstored.includes(message))
  const tokens = countMessages(memory.tokenizer, unstored)
  // Part of the newest turn may be stored already: the context then ends with it.
  if (storedTurn.length > 0) {
    const firstSequence = stored.at(-storedTurn.length)?.sequence ?? 0
    return buildWithinBudget(input, tokens, undefined, (context) =>
      joinMemoryAndTurn(input, context, storedTurn, firstSequence),
    )
  }
  const question = unstored.findLast(({ role }) => role === 'user')?.content
  return buildWithinBudget(input, tokens, question, (context) =>
    writePrompt(input, context, context.messages, unstored[0]?.index ?? request.turnStart),
  )
}

/** The client's messages unchanged, behind the template's preamble. */
export function clientPrompt(
  { protocol, memory: { tokenizer }, preamble, request }: PromptInput,
  degraded: NonNullable<OutgoingPrompt['degraded']>,
): OutgoingPrompt {
  const tokens =
    request.promptOverheadTokens +
    preamble.tokens +
    tokenizer.overhead.reply +
    countMessages(tokenizer, request.messages)
  return { body: protocol.buildRequest(request, preamble.messages, 0), tokens, degraded }
}

/**
 * Builds a context for the budget left beside the client's own text; `extra` are tokens of it that memory does not
 * count.
 */
async function buildWithinBudget(
  input: PromptInput,
  extra: Tokens,
  query: string | undefined,
  write: (context: LazyContext) => OutgoingPrompt,
): Promise<OutgoingPrompt> {
  const { memory, request, preamble, key, person } = input
  const budget = memory.profile.budget - request.promptOverheadTokens - preamble.tokens - extra
  if (budget < 1) return clientPrompt(input, 'budget')
  try {
    const context = await internalsOf(memory).buildContext(key, {
      budget,
      ...(query !== undefined && { query }),
      ...(person !== undefined && { person }),
    })
    const prompt = write(context)
    return prompt.ledger === undefined || extra === 0 ? prompt : { ...prompt, tokens: prompt.tokens + extra }
  } catch (error) {
    if (error instanceof MemoryError && error.code === 'budget-too-small') return clientPrompt(input, 'budget')
    throw error
  }
}

/** Tokens of the newest turn beyond its stored form: a client may decorate a message it sent before. */
function extraTokens(tokenizer: Tokenizer, turn: readonly ClientMessage[], stored: readonly Message[]): Tokens {
  let extra = 0
  turn.forEach((message, index) => {
    const storedMessage = stored[index]
    if (storedMessage !== undefined && storedMessage.content !== message.content)
      extra += countMessageTokens(tokenizer, message) - storedMessage.tokens
  })
  return Math.max(0, extra)
}

/**
 * Writes the client's instructions, memory, then the newest turn exactly as sent. The context ends with the stored form
 * of `turn`, from sequence number `firstSequence` on, which the client's own messages replace.
 */
function joinMemoryAndTurn(
  input: PromptInput,
  context: LazyContext,
  turn: readonly ClientMessage[],
  firstSequence: number,
): OutgoingPrompt {
  const { messages, ledger } = context
  const turnStart = messages.length - turn.length
  const degraded = turn.length === 0 ? undefined : reasonTurnIsIncomplete(ledger, firstSequence)
  if (degraded !== undefined) return clientPrompt(input, degraded)
  if (turnStart < 0 || !turn.every((message, index) => messages[turnStart + index]?.role === message.role))
    return clientPrompt(input, 'messages')
  return writePrompt(input, context, messages.slice(0, turnStart))
}

function writePrompt(
  { protocol, request, preamble }: PromptInput,
  { ledger }: LazyContext,
  memoryMessages: readonly ChatMessage[],
  from?: number,
): OutgoingPrompt {
  const messages = preamble.messages.length === 0 ? memoryMessages : [...preamble.messages, ...memoryMessages]
  return {
    body: protocol.buildRequest(request, messages, from),
    tokens: request.promptOverheadTokens + preamble.tokens + ledger.spent,
    ledger,
  }
}

/** The reason the newest turn is not shown whole, if it is not. */
function reasonTurnIsIncomplete(ledger: Ledger, firstSequence: number): OutgoingPrompt['degraded'] {
  const lines = ledger.lines.filter((line) => line.verdict !== 'whole' && coversSequence(line, firstSequence))
  if (lines.length === 0) return undefined
  return lines.some((line) => line.verdict === 'shortened' || isSpaceReason(line.why)) ? 'budget' : 'messages'
}

const coversSequence = ({ entries }: LedgerLine, sequence: number): boolean =>
  entries !== null && (parseMessageId(entries[1]) ?? 0) >= sequence

const countMessages = (tokenizer: Tokenizer, messages: readonly ClientMessage[]): Tokens =>
  messages.reduce((sum, message) => sum + countMessageTokens(tokenizer, message), 0)
