import type { MessageInput, ParsedMessage, Payload } from '../../domain/chat.ts'
import type { Message } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, isInternalKey, type Key, parseKey } from '../../domain/key.ts'
import type { Ledger } from '../../domain/ledger.ts'
import { isInRanges, type SessionHead } from '../../domain/session.ts'
import type { AppendOptions, AppendResult } from '../../memory/append.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { yieldToEventLoop } from '../../stores/yieldToEventLoop.ts'
import { describeFault } from '../http/httpError.ts'
import type { ClientMessage } from '../protocols/protocol.ts'
import { storeReceipt } from '../receipts.ts'
import type { UpstreamResponse } from '../upstreams/backend.ts'
import { buildReceipt, isRefusal } from './accounting.ts'
import { appendLate, findBranchWith, readMessageAt, restoreBranch } from './branches.ts'
import type { Turn } from './turn.ts'

/** A reply and the question it answers, by sequence number, in the epoch in which it was asked. */
export type ReplyToStore = {
  readonly reply: MessageInput
  readonly question: number
  readonly epoch: number
  readonly ledger: Ledger | undefined
  /** Conversation of the question within its session. */
  readonly branch: number | undefined
  /** Numbers after the question that are kept for its replies, because another question has arrived meanwhile. */
  readonly reserved: number
}

/** A stored reply, and the session that it belongs to by now, directly or in a branch. */
export type StoredReply = { readonly key: Key; readonly message: Message }

/**
 * Stores a reply after its question. If the question was cut into a branch meanwhile, the reply goes there; if it was
 * forgotten, the reply is dropped; if the session was transferred, the reply follows it.
 */
export async function storeReply(memory: Memory, key: Key, input: ReplyToStore): Promise<StoredReply | undefined> {
  const { reply, question, epoch, ledger, branch, reserved } = input
  const internals = internalsOf(memory)
  try {
    const head = await internals.sessions.readHead(key, 1)
    const isNewest = head.recent[0]?.sequence === question
    const isCut = !isNewest && (await readMessageAt(memory, key, question)) === undefined
    const target = isCut ? await findBranchWith(memory, key, question) : key
    if (target === undefined) return await storeInTransferredSession(memory, key, input)
    const options = {
      epoch,
      ...(reserved > 0 && { sequence: findReservedSequence(head, question, reserved) }),
      ...(branch !== undefined && { branch }),
      ...(ledger !== undefined && { answers: ledger }),
    }
    const message = isCut
      ? await appendLate(memory, key, target, reply)
      : (await internals.append(key, [reply], options, isNewest ? head : undefined)).stored[0]
    if (message === undefined) return undefined
    if (await isQuestionStored(memory, key, question)) return { key, message }
    // `forget` does not wait for replies: a question erased while its reply was being stored takes the reply with it.
    await (isCut
      ? internals.sessions.erase(target, { entries: [message.id] })
      : memory.forget({ key: formatKey(key), messageId: message.id }))
    return undefined
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    if (error.code === 'erased') return undefined
    if (error.code !== 'moved' || error.to === undefined) throw error
    return storeReply(memory, parseKey(error.to), { ...input, epoch: await memory.epoch(error.to) })
  }
}

/** The first number after a question that is still kept for one of its replies. */
function findReservedSequence({ gaps }: SessionHead, question: number, reserved: number): number {
  for (let sequence = question + 1; sequence <= question + reserved; sequence++)
    if (isInRanges(gaps, sequence)) return sequence
  return question + 1
}

async function isQuestionStored(memory: Memory, key: Key, question: number): Promise<boolean> {
  if ((await readMessageAt(memory, key, question)) !== undefined) return true
  return (await findBranchWith(memory, key, question)) !== undefined
}

/** A transferred session keeps the sequence numbers of its questions. */
async function storeInTransferredSession(
  memory: Memory,
  key: Key,
  input: ReplyToStore,
): Promise<StoredReply | undefined> {
  const session = isInternalKey(key) ? undefined : (await memory.metadata(key))?.movedTo
  if (session === undefined) return undefined
  const to = parseKey(`${key.scope}:${session}`)
  return storeReply(memory, to, { ...input, epoch: await memory.epoch(to) })
}

/** The client's prefill and the model's continuation are one reply. */
export function joinPrefill(prefill: ClientMessage, { payload: _payload, ...reply }: MessageInput): MessageInput {
  return { ...reply, content: prefill.content + (typeof reply.content === 'string' ? reply.content : '') }
}

/** Characters stored per batch; between batches other requests get their turn. */
const batchCharacters = 262_144
/** Characters that take as long to store as a message beside its text: a batch has up to 1,000 messages. */
const messageCharacters = 262

export type AppendTurnOptions = Pick<AppendOptions, 'branch' | 'reserve'> & {
  /** Original form of the message at a position of `messages`. */
  readonly payloadOf: (position: number) => Payload | undefined
  /** True for a long request, which is handled with pauses. */
  readonly isLong: boolean
}

/** Messages whose original form is read in a row. */
const messagesBetweenPauses = 200

/**
 * Stores the new messages of a turn. A long history is stored in batches; after a crash the client resends what is
 * missing. `head` spares reading the session again; it must have been read just now.
 */
export async function appendMessages(
  memory: Memory,
  key: Key,
  messages: readonly ParsedMessage[],
  { payloadOf, isLong, ...options }: AppendTurnOptions,
  head: SessionHead | undefined,
): Promise<AppendResult> {
  const { append, sessions } = internalsOf(memory)
  const inputs: MessageInput[] = []
  for (const [position, message] of messages.entries()) {
    inputs.push(toIncoming(message, payloadOf(position)))
    if (isLong && position % messagesBetweenPauses === 0) await yieldToEventLoop()
  }
  if (messages.length === 1) return append(key, inputs, { replyFollows: true, ...options }, head)
  const stored: Message[] = []
  let batchOptions: AppendOptions = { replyFollows: true, ...options }
  for (let from = 0, to = 0; from < messages.length; from = to) {
    if (from > 0) await yieldToEventLoop()
    for (let characters = 0; to < messages.length && (to === from || characters < batchCharacters); to++)
      characters += messageCharacters + (messages[to]?.content.length ?? 0)
    stored.push(...(await append(key, inputs.slice(from, to), batchOptions)).stored)
    // Further batches belong to the conversation that the first one began.
    const branch = stored[0]?.branch
    batchOptions = { replyFollows: true, ...(branch !== undefined && { branch }) }
  }
  return { stored, epoch: (await sessions.readHead(key, 0)).epoch }
}

function toIncoming(message: ParsedMessage, payload: Payload | undefined): MessageInput {
  const { role, name, toolCalls: calls, toolCallId } = message
  const content = splitContent(message)
  if (name === undefined && calls === undefined && toolCallId === undefined && payload === undefined)
    return { role, content }
  const toolCalls = calls?.map((call) => ({
    id: call.id,
    type: 'function' as const,
    function: { name: call.name, arguments: call.arguments },
  }))
  return {
    role,
    content,
    ...(name !== undefined && { name }),
    ...(toolCalls && { tool_calls: toolCalls }),
    ...(toolCallId !== undefined && { tool_call_id: toolCallId }),
    ...(payload !== undefined && { payload }),
  }
}

/** Returns the content in the parts in which the client sent it: a secret may be split over them. */
function splitContent({ content, partEnds }: ParsedMessage): NonNullable<MessageInput['content']> {
  if (partEnds === undefined) return content
  return [...partEnds, content.length].map((end, index) => ({
    type: 'text',
    text: content.slice(index === 0 ? 0 : (partEnds[index - 1] ?? 0) + 1, end),
  }))
}

/**
 * Takes a turn that the upstream refused out of the session; its receipt stays. After any other failure the question
 * stays too, so that a retry continues it.
 */
export async function rollBackIfRefused(turn: Turn, response: UpstreamResponse): Promise<void> {
  const { request, key, resolved, cutFrom, epoch } = turn
  if (epoch === undefined || !isRefusal(response)) return
  const { server, id } = request.context
  const { sessions, clock } = internalsOf(resolved.memory)
  try {
    await server.sessionLocks.run(formatKey(key), async () => {
      const hasFollower = await eraseQuestion(turn)
      // Newer messages belong to the edited conversation, so the taken-back ones stay in their branch.
      if (cutFrom !== undefined && !hasFollower) await restoreBranch(resolved.memory, key, cutFrom)
      await storeReceipt(sessions, key, buildReceipt(server.prices, turn, { sequence: null, at: clock() }))
    })
  } catch (error) {
    server.onFault(id, describeFault(error))
  }
}

/**
 * Erases a refused question where it is by now, unless another request has got an answer to it or may still get one.
 * Returns true if messages have followed in its conversation.
 */
async function eraseQuestion({ request, key, resolved, question, branch, appended }: Turn): Promise<boolean> {
  const { sessions } = internalsOf(resolved.memory)
  const later = await sessions.readMessages(key, { after: question, limit: Number.MAX_SAFE_INTEGER })
  const followers = later.filter((message) => message.branch === branch)
  const { activity } = request.context.server
  const ids = appended.map(({ id }) => id)
  const entries = followers[0]?.role === 'assistant' ? [] : activity.refuse(formatKey(key), question, ids)
  if (entries.length > 0) {
    const isMoved = (await readMessageAt(resolved.memory, key, question)) === undefined
    const place = isMoved ? await findBranchWith(resolved.memory, key, question) : key
    if (place !== undefined) await sessions.erase(place, { entries })
  }
  return followers.length > 0
}
