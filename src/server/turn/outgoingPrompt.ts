import { continuationNotice } from '../../context/anthropic.ts'
import type { LazyContext } from '../../context/composeContext.ts'
import { clientBand, isSpaceReason } from '../../context/receipt.ts'
import { type Message, parseMessageId, type SequenceRange, type Tokens } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import type { Key } from '../../domain/key.ts'
import type { ChatMessage, Ledger, LedgerLine } from '../../domain/ledger.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { runInSlices } from '../../domain/work.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import { countMessageTokens } from '../../text/cost.ts'
import { normalizeSecretsInSteps } from '../../text/secrets.ts'
import type { Preamble } from '../memoryRegistry.ts'
import type { ClientMessage, ParsedRequest, Protocol, RequestBody } from '../protocols/protocol.ts'
import { countInSlices, newestMessages, newestThatFit } from './longRequests.ts'
import type { ReconciledHistory } from './reconcileHistory.ts'
import { normalizeSent } from './reconcileMasked.ts'

/** The request body sent upstream for one turn, and its cost. */
export type OutgoingPrompt = {
  readonly body: RequestBody
  readonly tokens: Tokens
  /** Most tokens the prompt may have. */
  readonly limit: Tokens
  /** Set when the client's messages were sent without memory: they left no room, or memory could not render them. */
  readonly degraded?: 'budget' | 'messages'
  /** True when the oldest turns of the client's conversation were left out. */
  readonly isShortened?: boolean
  /** Tokens of the client's own conversation in full; absent when memory supplied the history. */
  readonly history?: Tokens
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
  /** Context window of the model in tokens. */
  readonly contextWindow: Tokens
  /** True if the upstream holds the conversation; default false. */
  readonly isHeldUpstream?: boolean
  /** Sequence number of the stored question; later messages are not shown. Default: none is stored. */
  readonly question?: number | undefined
  /** Revision at which the turn has read the session. */
  readonly revision?: number
}

/** The reply never takes more than this share of the window, whatever the client asks for. */
const maxReplyShare = 0.5
/** When a conversation is too long, memory gets at least this share of the room for it. */
const minMemoryShare = 0.25
/** With less room than this, nothing is added. */
const minAdditionTokens = 64

/** Messages of the newest turn. */
const newestTurn = ({ messages, turnStart }: ParsedRequest): readonly ClientMessage[] =>
  messages.slice(messages.findLastIndex(({ index }) => index < turnStart) + 1)

/**
 * Builds the prompt. Without `stored`, the turn is not stored. `isHeldUpstream` says that the upstream has the
 * conversation, to which the request refers by ids.
 */
export async function buildPrompt(
  client: PromptInput,
  { stored: before, recent, newFrom, cutFrom, history }: ReconciledHistory,
  stored: { readonly appended: readonly Message[]; readonly question: number } | undefined,
  isHeldUpstream: boolean,
): Promise<OutgoingPrompt> {
  const { request } = client
  const input = { ...client, question: stored?.question || undefined }
  const kept = cutFrom === undefined ? before : before.filter(({ sequence }) => sequence < cutFrom)
  const appended = stored?.appended
  if (isHeldUpstream) {
    const own = { stored: [], newFrom: 0, appended, sentByClient: [[1, Number.MAX_SAFE_INTEGER]] as const }
    return buildFullPrompt({ ...input, isHeldUpstream }, own)
  }
  if (history === 'full') {
    // Message for message, those that differ are other versions: the client has replaced them.
    const versions = kept.length === newFrom ? kept : []
    const all = [...recent, ...(appended ?? [])]
    const sentByClient = await findSentMessages(all, request.messages, new Set(versions))
    return buildFullPrompt(input, { stored: kept, newFrom, appended, sentByClient })
  }
  if (appended === undefined) return buildUnstoredPrompt(input, before, newFrom)
  return buildThinPrompt(input, lastMessages(kept, appended, newestTurn(request).length))
}

/**
 * Ranges of the stored messages that have one of the sent contents, or are earlier versions of sent messages. Secrets
 * are stored masked and not compared.
 */
async function findSentMessages(
  stored: readonly Message[],
  sent: readonly ClientMessage[],
  versions: ReadonlySet<Message>,
): Promise<readonly SequenceRange[]> {
  const contents = new Set(sent.map(({ content }) => content.trim()))
  if (stored.some(hasMask)) for (const { content } of (await normalizeSent(sent)).values()) contents.add(content.trim())
  const ranges: [first: number, last: number][] = []
  for (const message of stored) {
    const { sequence, content } = message
    const text = hasMask(message) ? await runInSlices(normalizeSecretsInSteps(content), yieldWhenLong) : content
    await yieldWhenLong()
    if (!versions.has(message) && !contents.has(text.trim())) continue
    const last = ranges.at(-1)
    if (last?.[1] === sequence - 1) last[1] = sequence
    else ranges.push([sequence, sequence])
  }
  return ranges
}

/** Masks start with a rare character; text that only looks like one is compared as well. */
const hasMask = ({ content }: Message): boolean => content.includes('⟨')

/** The last `count` messages of a session, given its stored messages and those just appended. */
function lastMessages(stored: readonly Message[], appended: readonly Message[], count: number): readonly Message[] {
  const missing = count - appended.length
  if (missing === 0) return appended
  return missing < 0 ? appended.slice(-missing) : [...stored.slice(-missing), ...appended]
}

/** A client's own conversation in relation to what is stored. */
type OwnConversation = {
  /** Stored messages of the conversation before the new ones. */
  readonly stored: readonly Message[]
  /** Position of the first new message. */
  readonly newFrom: number
  /** The new messages as they were stored; undefined when nothing is stored. */
  readonly appended: readonly Message[] | undefined
  /** Stored messages that the conversation contains. */
  readonly sentByClient: readonly SequenceRange[]
}

/**
 * Builds the prompt of a client that sends its own conversation: the conversation unchanged, and what memory knows
 * beyond it. A conversation over the limit is shortened.
 */
async function buildFullPrompt(input: PromptInput, own: OwnConversation): Promise<OutgoingPrompt> {
  const { limit, memoryTokens } = promptLimits(input)
  const { sentByClient } = own
  const ownTokens = fixedTokens(input) + (await countConversation(input.memory.tokenizer, input.request.messages, own))
  if (ownTokens > limit) return shortenConversation(input, own, ownTokens)
  // The upstream keeps what was added to an earlier response of the chain.
  if (input.isHeldUpstream && input.request.previousResponseId !== undefined)
    return { ...(await clientPrompt(input)), tokens: ownTokens }
  const budget = Math.min(memoryTokens, limit - ownTokens)
  if (budget < minAdditionTokens) return { ...(await clientPrompt(input, 'budget')), tokens: ownTokens }
  return addMemory(input, { budget, ownTokens, conversationTokens: ownTokens, sentByClient, from: 0 })
}

/** Builds the prompt for a thin client whose messages are stored; `stored` is the newest turn in its stored form. */
function buildThinPrompt(input: PromptInput, stored: readonly Message[]): Promise<OutgoingPrompt> {
  const turn = newestTurn(input.request)
  return buildWithinBudget(input, extraTokens(input.memory.tokenizer, turn, stored), undefined, (context) =>
    joinMemoryAndTurn(input, context, turn, stored[0]?.sequence ?? 0),
  )
}

/** Builds the prompt for a turn that must not be stored: new messages stand beside what memory shows for them. */
async function buildUnstoredPrompt(
  input: PromptInput,
  stored: readonly Message[],
  newFrom: number,
): Promise<OutgoingPrompt> {
  const { request, memory } = input
  const unstored = request.messages.slice(newFrom)
  const storedTurn = newestTurn(request).filter((message) => !unstored.includes(message))
  const tokens = await countInSlices(memory.tokenizer, unstored)
  // Part of the newest turn may be stored already: the context then ends with it.
  if (storedTurn.length > 0) {
    const firstSequence = stored.at(-storedTurn.length)?.sequence ?? 0
    return buildWithinBudget(input, tokens, undefined, (context) =>
      joinMemoryAndTurn(input, context, storedTurn, firstSequence),
    )
  }
  return buildWithinBudget(input, tokens, questionOf(unstored), (context) =>
    writePrompt(input, context, context.messages, unstored[0]?.index ?? request.turnStart),
  )
}

/**
 * The client's messages behind the template's preamble, without memory. Over the limit, the oldest turns are left out;
 * a newest turn that exceeds the limit by itself leaves the request unchanged.
 */
export async function clientPrompt(
  input: PromptInput,
  degraded?: NonNullable<OutgoingPrompt['degraded']>,
): Promise<OutgoingPrompt> {
  const { protocol, memory, preamble, request, isHeldUpstream } = input
  const { limit } = promptLimits(input)
  const fixed = fixedTokens(input)
  const total = await countInSlices(memory.tokenizer, request.messages)
  const kept = fixed + total <= limit ? request.messages : await fitToLimit(input, limit - fixed)
  const isShortened = kept.length < request.messages.length
  return {
    body: protocol.extendRequest(request, {
      preamble: preamble.messages,
      isHeldUpstream,
      ...(isShortened && { from: kept[0]?.index }),
    }),
    tokens: fixed + (isShortened ? await countInSlices(memory.tokenizer, kept) : total),
    limit,
    history: fixed + total,
    ...(degraded !== undefined && { degraded }),
    ...(isShortened && { isShortened }),
  }
}

/** The newest messages of a longer conversation within `room`; all messages if the newest turn alone takes more. */
async function fitToLimit(
  { memory: { tokenizer }, request }: PromptInput,
  room: Tokens,
): Promise<readonly ClientMessage[]> {
  const { messages } = request
  const turn = newestTurn(request)
  const isTooLong = (await countInSlices(tokenizer, turn)) > room
  return isTooLong ? messages : newestThatFit(tokenizer, messages, turn.length, room)
}

/** The most tokens a prompt may have, and the most that memory may take of them. */
function promptLimits({ memory: { profile }, request, contextWindow }: PromptInput): {
  readonly limit: Tokens
  readonly memoryTokens: Tokens
} {
  if (profile.budgetMode !== 'auto') return { limit: profile.budget, memoryTokens: profile.budget }
  const replyTokens = Math.min(request.maxTokens ?? 0, Math.floor(contextWindow * maxReplyShare))
  return { limit: contextWindow - replyTokens, memoryTokens: profile.budget }
}

/** Tokens that every prompt of the request has: instructions, tools, preamble and the start of the reply. */
const fixedTokens = ({ request, preamble, memory: { tokenizer } }: PromptInput): Tokens =>
  request.promptOverheadTokens + preamble.tokens + tokenizer.overhead.reply

type MemoryAddition = {
  readonly budget: Tokens
  /** Tokens of the prompt without memory, and those of the client's conversation before it was shortened. */
  readonly ownTokens: Tokens
  readonly conversationTokens: Tokens
  readonly sentByClient: readonly SequenceRange[]
  /** Index in the client's list from which its conversation is sent. */
  readonly from: number
}

/** Sends the client's conversation with what memory knows beyond it. */
async function addMemory(
  input: PromptInput,
  { budget, ownTokens, conversationTokens, sentByClient, from }: MemoryAddition,
): Promise<OutgoingPrompt> {
  const { memory, key, person, protocol, request, preamble, isHeldUpstream, question, revision } = input
  const { messages, ledger } = await internalsOf(memory).buildAdditions(key, {
    budget,
    query: questionOf(request.messages),
    sentByClient,
    until: question,
    revision,
    ...(person !== undefined && { person }),
  })
  const text = messages.map(({ content }) => content).join('\n')
  // The start of the reply is part of the client's own tokens.
  const tokens = ownTokens + (text === '' ? 0 : ledger.spent - memory.tokenizer.overhead.reply)
  return {
    body: protocol.extendRequest(request, {
      preamble: preamble.messages,
      memory: text === '' ? undefined : text,
      from,
      isHeldUpstream,
    }),
    tokens,
    limit: promptLimits(input).limit,
    history: conversationTokens,
    ...(from > 0 && { isShortened: true }),
    ledger: {
      ...ledger,
      budget: promptLimits(input).limit,
      spent: tokens,
      history: conversationTokens,
      // The next prompt of a client that resends its conversation begins with all of this one but the memory.
      cacheable: { messages: request.messages.length, tokens: ownTokens - memory.tokenizer.overhead.reply },
      lines: addClientTokens(text === '' ? ledger.lines.filter(({ entries }) => entries !== null) : ledger.lines, {
        tokens: ownTokens,
        count: request.messages.length,
      }),
    },
  }
}

/** Adds the tokens of the client's own messages to the line about them. */
function addClientTokens(
  lines: readonly LedgerLine[],
  { tokens, count }: { readonly tokens: Tokens; readonly count: number },
): readonly LedgerLine[] {
  const at = lines.findIndex(({ band }) => band === clientBand)
  if (at >= 0) return lines.map((line, index) => (index === at ? { ...line, tokens } : line))
  return [{ band: clientBand, entries: null, count, verdict: 'whole', tokens, why: 'sent by the client' }, ...lines]
}

/**
 * Shortens a conversation to the limit. If it is stored word for word and the profile has a fixed budget, the context
 * is built as for a client that leaves its history to memory. Otherwise the oldest turns are left out, and memory
 * recalls from them what the question needs. The newest turn is always whole.
 */
async function shortenConversation(
  input: PromptInput,
  own: OwnConversation,
  conversationTokens: Tokens,
): Promise<OutgoingPrompt> {
  const { memory, request } = input
  if (memory.profile.budgetMode !== 'auto' && own.appended !== undefined && isStoredLiterally(request.messages, own)) {
    const stored = [...own.stored, ...own.appended].slice(-newestTurn(request).length)
    const prompt = await buildThinPrompt(input, stored)
    // Memory shows no blank turn; the client's own messages are then shortened.
    if (prompt.degraded !== 'messages') return { ...prompt, history: conversationTokens }
  }
  const { limit, memoryTokens } = promptLimits(input)
  const room = limit - fixedTokens(input)
  const turn = newestTurn(request)
  const turnTokens = await countInSlices(memory.tokenizer, turn)
  if (turnTokens > room) return clientPrompt(input, 'budget')
  const share = Math.min(memoryTokens, Math.floor(room * minMemoryShare), room - turnTokens)
  const kept = await newestThatFit(memory.tokenizer, request.messages, turn.length, room - share)
  const keptTokens = await countInSlices(memory.tokenizer, kept)
  return addMemory(input, {
    budget: Math.max(1, Math.min(memoryTokens, room - keptTokens)),
    ownTokens: fixedTokens(input) + keptTokens,
    conversationTokens,
    sentByClient: newestMessages(own.sentByClient, kept.length),
    from: kept[0]?.index ?? 0,
  })
}

/** True if the stored messages of the conversation are those that the client sends, one by one. */
const isStoredLiterally = (messages: readonly ClientMessage[], { stored, newFrom }: OwnConversation): boolean =>
  stored.length === newFrom &&
  stored.every(({ role, content }, index) => role === messages[index]?.role && content === messages[index]?.content)

const questionOf = (messages: readonly ClientMessage[]): string =>
  messages.findLast(({ role }) => role === 'user')?.content ?? ''

/**
 * Builds a context for the budget left beside the client's own text; `extra` are tokens of it that memory does not
 * count.
 */
async function buildWithinBudget(
  input: PromptInput,
  extra: Tokens,
  query: string | undefined,
  write: (context: LazyContext) => OutgoingPrompt | Promise<OutgoingPrompt>,
): Promise<OutgoingPrompt> {
  const { memory, protocol, request, preamble, key, person, question, revision } = input
  const { limit, memoryTokens } = promptLimits(input)
  // Anthropic's format has a notice before a conversation that begins with a reply.
  const notice = { role: 'user', content: continuationNotice } as const
  const noticeTokens = protocol.name === 'messages' ? countMessageTokens(memory.tokenizer, notice) : 0
  const budget = Math.min(memoryTokens, limit - request.promptOverheadTokens - preamble.tokens - extra - noticeTokens)
  if (budget < 1) return clientPrompt(input, 'budget')
  try {
    const context = await internalsOf(memory).buildContext(key, {
      budget,
      until: question,
      revision,
      ...(query !== undefined && { query }),
      ...(person !== undefined && { person }),
    })
    const prompt = await write(context)
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
): OutgoingPrompt | Promise<OutgoingPrompt> {
  const { messages, ledger } = context
  const turnStart = messages.length - turn.length
  const degraded = turn.length === 0 ? undefined : reasonTurnIsIncomplete(ledger, firstSequence)
  if (degraded !== undefined) return clientPrompt(input, degraded)
  if (turnStart < 0 || !turn.every((message, index) => messages[turnStart + index]?.role === message.role))
    return clientPrompt(input, 'messages')
  return writePrompt(input, context, messages.slice(0, turnStart))
}

function writePrompt(
  input: PromptInput,
  { ledger }: LazyContext,
  memoryMessages: readonly ChatMessage[],
  from?: number,
): OutgoingPrompt {
  const { protocol, request, preamble } = input
  const messages = preamble.messages.length === 0 ? memoryMessages : [...preamble.messages, ...memoryMessages]
  const isWhole = memoryMessages.length === 0 && newestTurn(request).length === request.messages.length
  const refersToMemory = request.previousResponseId !== undefined || request.conversationId !== undefined
  return {
    body:
      isWhole && !refersToMemory
        ? protocol.extendRequest(request, { preamble: preamble.messages })
        : protocol.buildRequest(request, messages, from),
    tokens: request.promptOverheadTokens + preamble.tokens + ledger.spent,
    limit: promptLimits(input).limit,
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

/** Counts a conversation, with the counts of the stored messages for those that the client resends unchanged. */
const countConversation = (
  tokenizer: Tokenizer,
  messages: readonly ClientMessage[],
  { stored, newFrom, appended }: OwnConversation,
): Promise<Tokens> =>
  countInSlices(tokenizer, messages, (message, position) => {
    const known = position < newFrom ? stored[stored.length - newFrom + position] : appended?.[position - newFrom]
    return known !== undefined && known.content === message.content && known.tokenizer === tokenizer.name
      ? known.tokens
      : undefined
  })
