import type { MessageInput, ParsedMessage, Payload } from '../../domain/chat.ts'
import type { Message } from '../../domain/entry.ts'
import { hasErrorCode, MemoryError } from '../../domain/error.ts'
import { formatKey, isInternalKey, type Key, parseKey } from '../../domain/key.ts'
import type { Ledger } from '../../domain/ledger.ts'
import { isExpired, isInRanges, type SessionHead } from '../../domain/session.ts'
import type { AppendOptions, AppendResult, InternalAppendOptions } from '../../memory/append.ts'
import { wipeStores } from '../../memory/forget.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { yieldToEventLoop } from '../../stores/yieldToEventLoop.ts'
import { describeFault } from '../http/httpError.ts'
import type { ClientMessage, ParsedRequest } from '../protocols/protocol.ts'
import { storeReceipt } from '../receipts.ts'
import type { UpstreamResponse } from '../upstreams/backend.ts'
import { buildReceipt, isRefusal } from './accounting.ts'
import { appendLate, branchOff, findBranchWith, readMessageAt, restoreBranch } from './branches.ts'
import { isLongRequest } from './longRequests.ts'
import { type ReconciledHistory, recentMessagesNeeded } from './reconcileHistory.ts'
import type { Turn, TurnRequest } from './turn.ts'

/** Part of a turn that is known once its question is stored. */
export type StoredQuestion = Pick<Turn, 'branch' | 'cutFrom' | 'epoch' | 'question' | 'appended'>

/** A turn whose messages were compared with the stored ones; `stored` is undefined if storage is disabled. */
export type ReconciledTurn = { readonly change: ReconciledHistory; readonly stored: StoredQuestion | undefined }

type TurnToStore = { readonly memory: Memory; readonly parsed: ParsedRequest; readonly change: ReconciledHistory }

/**
 * Stores the new messages of a turn and moves those that the client has taken back into a branch.
 *
 * @throws MemoryError `conflict` if the session has changed since `head` was read.
 */
export async function storeQuestion(
  { context, protocol, headers }: TurnRequest,
  key: Key,
  { memory, parsed, change }: TurnToStore,
  head: SessionHead,
): Promise<StoredQuestion> {
  const { newFrom, cutFrom, branch, stored } = change
  const conversation = branch === 'new' ? undefined : branch
  const messages = parsed.messages.slice(newFrom)
  const base = cutFrom === undefined ? head : await cutConversation(memory, key, head, cutFrom, conversation)
  const openReplies = context.server.activity.reserveReplies(formatKey(key), head.lastSequence)
  const isDue = messages[0]?.role !== 'assistant' && isReplyDue(base) && !isExpired(base, context.server.clock())
  const reserve = Math.max(openReplies, isDue ? 1 : 0)
  const appended = await appendMessages(
    memory,
    key,
    messages,
    {
      ...(branch !== undefined && { branch }),
      ...(reserve > 0 && { reserve }),
      // A retry finds fewer new messages if only some of them were stored.
      ...(headers.idempotencyKey !== undefined && { operationId: `turn ${newFrom} ${headers.idempotencyKey}` }),
      payloadOf: (position) => protocol.payloadOf(parsed, newFrom + position),
      isLong: isLongRequest(context.request),
    },
    base,
  )
  const kept = cutFrom === undefined ? stored : stored.filter(({ sequence }) => sequence < cutFrom)
  return {
    branch: appended.stored[0]?.branch ?? conversation,
    cutFrom,
    epoch: appended.epoch,
    question: (appended.stored.at(-1) ?? kept.at(-1))?.sequence ?? 0,
    appended: appended.stored,
  }
}

/**
 * Continues a turn whose messages an earlier request with the same idempotency key has stored, perhaps on another
 * server. If they were answered, the reply moves into a branch, because its client has not received it.
 */
export async function resumeQuestion(
  { parsed: { messages } }: TurnRequest,
  key: Key,
  { memory, change }: TurnToStore,
  { question, appended, epoch }: StoredQuestion,
): Promise<ReconciledTurn> {
  const { sessions } = internalsOf(memory)
  const branch = appended[0]?.branch
  const range = { before: question + 2, limit: recentMessagesNeeded(messages.length) + 1, newest: true }
  const recent = await sessions.readMessages(key, range)
  const reply = recent.find((message) => message.sequence > question && message.branch === branch)
  const cutFrom = reply?.role === 'assistant' ? reply.sequence : undefined
  if (cutFrom !== undefined) await branchOff(memory, key, [cutFrom, cutFrom], branch)
  const stored = recent.filter((message) => message.branch === branch && message.sequence <= question)
  return {
    change: { ...change, stored, recent, newFrom: messages.length, cutFrom, relation: 'regenerated', branch },
    stored: { branch, cutFrom, epoch, question, appended: [] },
  }
}

/** Moves the end of a conversation into a branch and returns the session without it. */
async function cutConversation(
  memory: Memory,
  key: Key,
  { lastSequence, epoch }: SessionHead,
  cutFrom: number,
  conversation: number | undefined,
): Promise<SessionHead> {
  await branchOff(memory, key, [cutFrom, lastSequence], conversation)
  const head = await internalsOf(memory).sessions.readHead(key, 1)
  if (head.lastSequence === lastSequence && head.epoch === epoch) return head
  throw new MemoryError('conflict', `Session ${formatKey(key)} has changed. Try again.`)
}

/**
 * True if the newest message waits for a reply, perhaps on another server: the number after it is then left free. Gaps
 * do no harm if the reply never comes.
 */
function isReplyDue({ recent, lastSequence }: SessionHead): boolean {
  const newest = recent.at(-1)
  return newest?.sequence === lastSequence && (newest.role === 'user' || newest.role === 'tool')
}

/** Replies that lose to other writers this often in a row are not stored. */
const maxReplyAttempts = 200

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
export async function storeReply(
  memory: Memory,
  key: Key,
  input: ReplyToStore,
  attempts = 1,
): Promise<StoredReply | undefined> {
  const { reply, question, epoch, ledger, branch, reserved } = input
  const internals = internalsOf(memory)
  try {
    const direct = await storeNextMessage(memory, key, input)
    if (direct !== undefined) return direct
    const head = await internals.sessions.readHead(key, 1)
    const isNewest = head.recent[0]?.sequence === question
    const isCut = !isNewest && (await readMessageAt(memory, key, question)) === undefined
    const target = isCut ? await findBranchWith(memory, key, question) : key
    if (target === undefined) return await storeInTransferredSession(memory, key, input)
    // Another server may store a question meanwhile, which the reply must not part from its own.
    const options = {
      epoch,
      ifUnchanged: true,
      ...placeOfReply(head, question, reserved),
      ...(branch !== undefined && { branch }),
      ...(ledger !== undefined && { answers: ledger }),
    }
    const message = isCut
      ? await appendLate(memory, key, target, reply)
      : (await internals.append(key, [reply], options, head)).stored[0]
    if (message === undefined) return undefined
    if (await isQuestionStored(memory, key, question)) return { key, message }
    // `forget` does not wait for replies: a question erased while its reply was being stored takes the reply with it.
    await (isCut
      ? internals.sessions.erase(target, { entries: [message.id] }).then(() => wipeStores([internals.sessions]))
      : memory.forget({ key: formatKey(key), messageId: message.id }))
    return undefined
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    if (error.code === 'erased') return undefined
    if (error.code === 'conflict' && attempts < maxReplyAttempts) return storeReply(memory, key, input, attempts + 1)
    if (error.code !== 'moved' || error.to === undefined) throw error
    return storeReply(memory, parseKey(error.to), { ...input, epoch: await memory.epoch(error.to) })
  }
}

/**
 * Stores a reply if the session is as the store has cached it and ends with the question; undefined otherwise. Needs
 * neither a read before nor a check afterwards.
 */
async function storeNextMessage(
  memory: Memory,
  key: Key,
  { reply, question, epoch, ledger, branch }: ReplyToStore,
): Promise<StoredReply | undefined> {
  const { sessions, append } = internalsOf(memory)
  const head = await sessions.readHead(key, 1, 0)
  if (head.epoch !== epoch || head.recent[0]?.sequence !== question || head.lastSequence !== question) return undefined
  const options = {
    epoch,
    ifUnchanged: true,
    ...(branch !== undefined && { branch }),
    ...(ledger !== undefined && { answers: ledger }),
  }
  try {
    const [message] = (await append(key, [reply], options, head)).stored
    return message && { key, message }
  } catch (error) {
    if (hasErrorCode(error, 'conflict')) return undefined
    throw error
  }
}

/**
 * The first number after a question that is left for one of its replies. A reply whose number is taken goes to the end,
 * but not between another question and its reply.
 */
function placeOfReply(
  head: SessionHead,
  question: number,
  reserved: number,
): Pick<AppendOptions, 'sequence' | 'reserve'> {
  for (let sequence = question + 1; sequence <= question + Math.max(1, reserved); sequence++)
    if (isInRanges(head.gaps, sequence) || sequence === head.lastSequence + 1) return { sequence }
  return isReplyDue(head) ? { reserve: 1 } : {}
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

type AppendTurnOptions = Pick<AppendOptions, 'branch' | 'reserve' | 'operationId'> & {
  /** Original form of the message at a position of `messages`. */
  readonly payloadOf: (position: number) => Payload | undefined
  /** True for a long request, which is handled with pauses. */
  readonly isLong: boolean
}

/** Messages whose original form is read in a row. */
const messagesBetweenPauses = 200

/**
 * Stores the new messages of a turn if the session is still as it was read in `head`. A long history is stored in
 * batches; after a crash the client resends what is missing.
 */
async function appendMessages(
  memory: Memory,
  key: Key,
  messages: readonly ParsedMessage[],
  { payloadOf, isLong, operationId, ...options }: AppendTurnOptions,
  head: SessionHead,
): Promise<AppendResult> {
  const { append, sessions } = internalsOf(memory)
  const inputs: MessageInput[] = []
  for (const [position, message] of messages.entries()) {
    inputs.push(toIncoming(message, payloadOf(position)))
    if (isLong && position % messagesBetweenPauses === 0) await yieldToEventLoop()
  }
  const stored: Message[] = []
  let batchOptions: InternalAppendOptions = { replyFollows: true, ifUnchanged: true, ...options }
  const idOf = (from: number) => operationId !== undefined && { operationId: `${operationId} ${from}` }
  if (messages.length === 1) return append(key, inputs, { ...batchOptions, ...idOf(0) }, head)
  for (let from = 0, to = 0; from < messages.length; from = to) {
    if (from > 0) await yieldToEventLoop()
    for (let characters = 0; to < messages.length && (to === from || characters < batchCharacters); to++)
      characters += messageCharacters + (messages[to]?.content.length ?? 0)
    const batchHead = from === 0 ? head : undefined
    const batch = await append(key, inputs.slice(from, to), { ...batchOptions, ...idOf(from) }, batchHead)
    stored.push(...batch.stored)
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
