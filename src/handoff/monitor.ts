import { randomUUID } from 'node:crypto'
import { measureMessage } from '../context/measureMessage.ts'
import { type MessageInput, parseMessage } from '../domain/chat.ts'
import type { Message, Millis, Tokens } from '../domain/entry.ts'
import { checkOption, MemoryError } from '../domain/error.ts'
import { LruCache } from '../domain/lruCache.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { isExpired } from '../domain/session.ts'
import { internalsOf } from '../memory.ts'
import { type Suggestion, suggestSession } from './chain.ts'
import { isSessionSaved, markDraftSession } from './draftSessions.ts'
import type { PendingWrites } from './pendingWrites.ts'
import { metadataFromRow } from './rows.ts'
import { findSessionOfRecord, ingestMessages } from './save/conversation.ts'
import { parseTokenCount, type SaveRequest } from './save/request.ts'
import type { SaveResult } from './save/save.ts'
import {
  assertIdAvailable,
  findSessionRow,
  parseSessionId,
  sessionExists,
  sessionKey,
  sessionNotFound,
} from './sessions.ts'
import type { HandoffDeps, HandoffSettings, OperationContext } from './settings.ts'

/**
 * Content to count: a stored session, messages, a text, or a count made by the client. Given together, they are added
 * up.
 */
export type CheckRequest = {
  readonly sessionId?: string
  readonly messages?: readonly MessageInput[]
  readonly text?: string
  readonly tokenCount?: Tokens
  /** Token limit of the chat; default: the `limit` setting. */
  readonly limit?: Tokens
  /** Identifies the chat if no session is given: `crossed` is reported once per client. */
  readonly client?: string
}

/** Token usage of a chat. */
export type TokenUsage = {
  readonly tokens: Tokens
  readonly limit: Tokens
  /** Token count from which a save is due. */
  readonly threshold: Tokens
  readonly remaining: Tokens
  readonly usage: number
  readonly saveNow: boolean
  /** True on the first check at or above the threshold: the one time to notify the user. */
  readonly crossed: boolean
  /** False if any count is an upper bound instead of the model's own count. */
  readonly exact: boolean
}

export type AppendRequest = {
  /** Session to append to; a new one is created if omitted. */
  readonly sessionId?: string
  readonly messages: readonly MessageInput[]
  /** Idempotency key: the same operation is stored once. */
  readonly operationId?: string
  readonly limit?: Tokens
}

export type SessionAppendResult = {
  readonly sessionId: string
  readonly messageIds: readonly string[]
  readonly reading: TokenUsage
  /** The session is over the threshold and was saved earlier; messages added since are included when it is restored. */
  readonly wasSaved?: boolean
  /** Result of the save that these messages triggered. */
  readonly saved?: SaveResult
  /** Earlier session that a new session may continue. */
  readonly suggestion?: Suggestion
  /** The store failed: the messages are held in memory and retried. `reading` counts only these messages. */
  readonly degraded?: 'not durable'
}

type Save = (workspace: string, request: SaveRequest, context: OperationContext) => Promise<SaveResult>

type TokenCount = { readonly tokens: Tokens; readonly exact: boolean }

/** Chats remembered as being above their threshold. */
const maxTrackedChats = 10_000

const saveThreshold = ({ threshold, margin }: Pick<HandoffSettings, 'threshold' | 'margin'>, limit: Tokens): Tokens =>
  Math.max(1, Math.floor(threshold * limit) - margin)

/** Tracks the token usage of chats and saves sessions that reach the threshold. */
export class TokenMonitor {
  private readonly deps: HandoffDeps
  private readonly pending: PendingWrites
  private readonly save: Save
  /** Chats above their threshold at the last check. */
  private readonly chatsAboveThreshold = new LruCache<string, true>({ maxEntries: maxTrackedChats })

  constructor(deps: HandoffDeps, pending: PendingWrites, save: Save) {
    this.deps = deps
    this.pending = pending
    this.save = save
  }

  /** Counts the tokens of a chat and reports whether a save is due. */
  async check(workspace: string, request: CheckRequest): Promise<TokenUsage> {
    const { tokenizer } = this.deps.memory
    const { limit = this.deps.settings.limit, messages, text, tokenCount } = request
    const sessionId = request.sessionId === undefined ? undefined : parseSessionId(workspace, request.sessionId)
    checkOption('limit', limit, Number.isSafeInteger(limit) && limit >= 1, 'a whole number of tokens, 1 or more')
    const now = this.deps.clock()
    const counts: readonly TokenCount[] = [
      ...(sessionId === undefined ? [] : [await this.countStored(workspace, sessionId)]),
      ...(messages === undefined ? [] : [countMessages(tokenizer, messages, now)]),
      ...(text === undefined ? [] : [{ tokens: tokenizer.count(text), exact: tokenizer.isExact(text) }]),
      ...(tokenCount === undefined ? [] : [{ tokens: parseTokenCount(tokenCount), exact: true }]),
    ]
    if (counts.length === 0)
      throw new MemoryError('bad-option', 'There is nothing to count. Give sessionId, messages, text or tokenCount.', {
        param: 'messages',
      })
    const isExact = tokenizer.kind === 'exact' && counts.every(({ exact }) => exact)
    return this.updateUsage(
      `${workspace}:${sessionId ?? `:${request.client ?? ''}`}`,
      sumTokens(counts),
      limit,
      isExact,
    )
  }

  /**
   * Appends messages and saves the session when it crosses the threshold. Messages a failing store rejects are queued.
   */
  async append(workspace: string, request: AppendRequest, context: OperationContext): Promise<SessionAppendResult> {
    const { clock, generateSessionId } = this.deps
    if (request.messages.length === 0) throw nothingToAppend()
    // Timestamps are fixed now, even if the messages are written later.
    const { messages, records } = await ingestMessages(this.deps, workspace, request.messages, clock())
    const knownId =
      request.sessionId === undefined
        ? await findSessionOfRecord(this.deps, workspace, records)
        : parseSessionId(workspace, request.sessionId)
    if (messages.length === 0 && knownId === undefined) throw nothingToAppend()
    const sessionId = knownId ?? generateSessionId(clock())
    const limit = request.limit === undefined ? {} : { limit: request.limit }
    const stored = await this.storeOrEnqueue(workspace, { ...request, sessionId, messages }, knownId !== undefined)
    if (stored === undefined)
      return {
        sessionId,
        messageIds: [],
        reading: await this.check(workspace, { messages, ...limit }),
        degraded: 'not durable',
      }
    const reading = await this.check(workspace, { sessionId, ...limit })
    const saved = reading.crossed ? await this.saveCrossed(workspace, sessionId, context) : undefined
    const isNewSession = stored[0]?.sequence === 1
    const suggestion = isNewSession ? await this.suggestPredecessor(workspace, sessionId, messages) : undefined
    return {
      sessionId,
      messageIds: stored.map(({ id }) => id),
      reading,
      wasSaved: saved === undefined && reading.saveNow && (await isSessionSaved(this.deps, workspace, sessionId)),
      ...(saved === undefined ? {} : { saved }),
      ...(suggestion === undefined ? {} : { suggestion }),
    }
  }

  /** Stores messages; resolves to undefined if they were queued because the store fails. */
  private async storeOrEnqueue(
    workspace: string,
    request: AppendRequest & { readonly sessionId: string },
    mustExist: boolean,
  ): Promise<readonly Message[] | undefined> {
    const { memory } = this.deps
    const { sessionId: session, messages, operationId = randomUUID() } = request
    const key = sessionKey(workspace, session)
    const write = async (): Promise<readonly Message[]> => {
      await assertIdAvailable(this.deps, workspace, session)
      if (mustExist && !(await sessionExists(this.deps, workspace, session))) throw sessionNotFound(session)
      if (messages.length === 0) return []
      await markDraftSession(this.deps, workspace, session)
      return memory.append(key, messages, { operationId })
    }
    await this.pending.retry()
    if (!this.pending.has(workspace, session)) {
      try {
        return await write()
      } catch (error) {
        if (!this.pending.isRetryable(error)) throw error
      }
    }
    this.pending.enqueue({ workspace, session, bytes: JSON.stringify(messages).length, write })
    return undefined
  }

  /** Saves a session that crossed the threshold. If the save fails, the next append crosses again. */
  private async saveCrossed(workspace: string, sessionId: string, context: OperationContext): Promise<SaveResult> {
    try {
      return await this.save(workspace, { sessionId }, context)
    } catch (error) {
      this.forget(workspace, sessionId)
      throw error
    }
  }

  /** Suggests an earlier session for a new one, unless its predecessor is known. */
  private async suggestPredecessor(
    workspace: string,
    session: string,
    messages: readonly MessageInput[],
  ): Promise<Suggestion | undefined> {
    const row = await findSessionRow(this.deps, workspace, session)
    if (row !== undefined && metadataFromRow(row).continuedFrom !== undefined) return undefined
    const firstText = messages.find(({ role, content }) => role === 'user' && typeof content === 'string')?.content
    return typeof firstText === 'string'
      ? suggestSession(this.deps, workspace, firstText, new Set([session]))
      : undefined
  }

  /** Forgets that a session was above its threshold. */
  forget(workspace: string, session: string): void {
    this.chatsAboveThreshold.delete(`${workspace}:${session}`)
  }

  /**
   * Counts a stored session. Without gaps, the newest message's offset gives the total and no other message is read.
   */
  private async countStored(workspace: string, session: string): Promise<TokenCount> {
    const { memory, clock } = this.deps
    const pendingMessages = await this.pending.preview(workspace, session)?.readMessages()
    if (pendingMessages !== undefined) return { tokens: sumTokens(pendingMessages), exact: true }
    const head = await internalsOf(memory).sessions.readHead(sessionKey(workspace, session), 1)
    const newest = head.recent.at(-1)
    if (newest === undefined || isExpired(head, clock())) {
      if ((await findSessionRow(this.deps, workspace, session)) === undefined) throw sessionNotFound(session)
      return { tokens: 0, exact: true }
    }
    if (head.gaps.length === 0 && memory.profile.maxMessageTokens === undefined)
      return { tokens: newest.offset + newest.weight, exact: true }
    return { tokens: sumTokens(await memory.transcript(sessionKey(workspace, session))), exact: true }
  }

  private updateUsage(chat: string, tokens: Tokens, limit: Tokens, exact: boolean): TokenUsage {
    const threshold = saveThreshold(this.deps.settings, limit)
    const saveNow = tokens >= threshold
    const crossed = saveNow && !this.chatsAboveThreshold.has(chat)
    if (saveNow) this.chatsAboveThreshold.set(chat, true)
    else this.chatsAboveThreshold.delete(chat)
    return {
      tokens,
      limit,
      threshold,
      remaining: Math.max(0, limit - tokens),
      usage: Math.round((10_000 * tokens) / limit) / 10_000,
      saveNow,
      crossed,
      exact,
    }
  }
}

const nothingToAppend = (): MemoryError =>
  new MemoryError('bad-option', 'There is nothing to append. Give at least one message.', { param: 'messages' })

const sumTokens = (counts: readonly { readonly tokens: Tokens }[]): Tokens =>
  counts.reduce((sum, { tokens }) => sum + tokens, 0)

function countMessages(tokenizer: Tokenizer, messages: readonly MessageInput[], now: Millis): TokenCount {
  const counted = messages.map((message, index) => measureMessage(tokenizer, parseMessage(message, index, now)))
  return { tokens: sumTokens(counted), exact: counted.every(({ content }) => tokenizer.isExact(content)) }
}
