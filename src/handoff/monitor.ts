import { randomUUID } from 'node:crypto'
import { weighed } from '../context/render.ts'
import { type Incoming, parseMessage } from '../domain/chat.ts'
import type { Message, Millis, Tokens } from '../domain/entry.ts'
import { check, MemoryError } from '../domain/error.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { isExpired } from '../domain/session.ts'
import { internalsOf } from '../memory.ts'
import { type Suggestion, suggested } from './continuation.ts'
import { isSaved, noteBegun } from './draftSessions.ts'
import type { Pending } from './pending.ts'
import { metadataOf } from './records.ts'
import { countOf } from './save/accept.ts'
import { chatOf, toldIn } from './save/told.ts'
import type { SaveRequest, SaveResult } from './save.ts'
import { idIn, isThere, keyOf, notFound, refuseTaken, sessionRow } from './sessions.ts'
import type { Attending, HandoffParts, HandoffSettings } from './settings.ts'

/** What to count: a session as it is stored, messages, a text, or a count that the client has made. */
export type CheckRequest = {
  readonly sessionId?: string
  readonly messages?: readonly Incoming[]
  readonly text?: string
  readonly tokenCount?: Tokens
  /** What the chat holds at most. */
  readonly limit?: Tokens
  /** Who asks, if it is no session that is asked about: crossings are told once to each. */
  readonly client?: string
}

/** How full a chat is. */
export type Reading = {
  readonly tokens: Tokens
  readonly limit: Tokens
  /** From so many tokens on a save is due. */
  readonly threshold: Tokens
  readonly remaining: Tokens
  readonly usage: number
  readonly saveNow: boolean
  /** Whether it was below the threshold when it was last looked at: the one time to tell somebody. */
  readonly crossed: boolean
  /** Whether every text was counted as the model does, and none bounded from above. */
  readonly exact: boolean
}

export type AppendRequest = {
  /** A new session begins when left out. */
  readonly sessionId?: string
  readonly messages: readonly Incoming[]
  /** The same once more is stored once. */
  readonly operationId?: string
  readonly limit?: Tokens
}

export type Appended = {
  readonly sessionId: string
  readonly messageIds: readonly string[]
  readonly reading: Reading
  /** Whether it was saved when it came near the limit: what comes since is part of it whenever it is restored. */
  readonly wasSaved?: boolean
  /** The save that became due with these messages. */
  readonly saved?: SaveResult
  /** For a session that begins: another one that it may be going on from. */
  readonly suggestion?: Suggestion
  /** The store failed: the messages are kept in memory and written as soon as they can be; only they are counted. */
  readonly degraded?: 'not durable'
}

type Save = (workspace: string, request: SaveRequest, attending: Attending) => Promise<SaveResult>

/** So many chats are remembered to have been above their threshold. */
const mostChats = 10_000

/** From so many tokens on a save is due: the threshold's part of the limit, less what the system's own messages need. */
const thresholdOf = ({ threshold, margin }: Pick<HandoffSettings, 'threshold' | 'margin'>, limit: Tokens): Tokens =>
  Math.max(1, Math.floor(threshold * limit) - margin)

/** Watches how full chats become, and has them saved in time. */
export class Monitor {
  private readonly parts: HandoffParts
  private readonly pending: Pending
  private readonly save: Save
  /** Chats that were above their threshold when last looked at, the one looked at last at the end. */
  private readonly above = new Set<string>()

  constructor(parts: HandoffParts, pending: Pending, save: Save) {
    this.parts = parts
    this.pending = pending
    this.save = save
  }

  /** Counts, and tells whether it is time to save. */
  async check(workspace: string, request: CheckRequest): Promise<Reading> {
    const { tokenizer } = this.parts.memory
    const { limit = this.parts.settings.limit, messages, text, tokenCount } = request
    const sessionId = request.sessionId === undefined ? undefined : idIn(workspace, request.sessionId)
    check('limit', limit, Number.isSafeInteger(limit) && limit >= 1, 'a whole number of tokens, 1 or more')
    const now = this.parts.clock()
    const counts: readonly Count[] = [
      ...(sessionId === undefined ? [] : [await this.stored(workspace, sessionId)]),
      ...(messages === undefined ? [] : [weightOf(tokenizer, messages, now)]),
      ...(text === undefined ? [] : [{ tokens: tokenizer.count(text), exact: tokenizer.isExact(text) }]),
      ...(tokenCount === undefined ? [] : [{ tokens: countOf(tokenCount), exact: true }]),
    ]
    if (counts.length === 0)
      throw new MemoryError('bad-option', 'There is nothing to count. Give sessionId, messages, text or tokenCount.', {
        param: 'messages',
      })
    const tokens = counts.reduce((sum, count) => sum + count.tokens, 0)
    return this.reading(
      `${workspace}:${sessionId ?? `:${request.client ?? ''}`}`,
      tokens,
      limit,
      tokenizer.kind === 'exact' && counts.every(({ exact }) => exact),
    )
  }

  /** Stores messages, and saves the session when that takes it over the threshold. What a failing store does not take waits in memory. */
  async append(workspace: string, request: AppendRequest, attending: Attending): Promise<Appended> {
    const { clock, name } = this.parts
    const { limit } = request
    if (request.messages.length === 0) throw nothing()
    // Said now, whenever it is written.
    const { said: messages, records } = await toldIn(this.parts, workspace, request.messages, clock())
    const known =
      request.sessionId === undefined
        ? await chatOf(this.parts, workspace, records)
        : idIn(workspace, request.sessionId)
    if (messages.length === 0 && known === undefined) throw nothing()
    const sessionId = known ?? name(clock())
    const within = limit === undefined ? {} : { limit }
    const stored = await this.kept(workspace, { ...request, sessionId, messages }, known !== undefined)
    if (stored === undefined)
      return {
        sessionId,
        messageIds: [],
        reading: await this.check(workspace, { messages, ...within }),
        degraded: 'not durable',
      }
    const reading = await this.check(workspace, { sessionId, ...within })
    const saved = reading.crossed ? await this.savedNow(workspace, sessionId, attending) : undefined
    const suggestion = stored[0]?.sequence === 1 ? await this.suggestion(workspace, sessionId, messages) : undefined
    return {
      sessionId,
      messageIds: stored.map(({ id }) => id),
      reading,
      wasSaved: saved === undefined && reading.saveNow && (await isSaved(this.parts, workspace, sessionId)),
      ...(saved === undefined ? {} : { saved }),
      ...(suggestion === undefined ? {} : { suggestion }),
    }
  }

  /** The messages as they were stored; undefined if they wait for the store, in their order. */
  private async kept(
    workspace: string,
    request: AppendRequest & { readonly sessionId: string },
    isKnown: boolean,
  ): Promise<readonly Message[] | undefined> {
    const { memory } = this.parts
    const { sessionId: session, messages, operationId = randomUUID() } = request
    const key = keyOf(workspace, session)
    const write = async (): Promise<readonly Message[]> => {
      await refuseTaken(this.parts, workspace, session)
      if (isKnown && !(await isThere(this.parts, workspace, session))) throw notFound(session)
      if (messages.length === 0) return []
      await noteBegun(this.parts, workspace, session)
      return memory.append(key, messages, { operationId })
    }
    await this.pending.retry()
    if (!this.pending.isWaiting(workspace, session)) {
      try {
        return await write()
      } catch (error) {
        if (!this.pending.takes(error)) throw error
      }
    }
    this.pending.keep({ workspace, session, bytes: JSON.stringify(messages).length, write })
    return undefined
  }

  /** A crossing whose save fails is none yet: the next message crosses once more. */
  private async savedNow(workspace: string, sessionId: string, attending: Attending): Promise<SaveResult> {
    try {
      return await this.save(workspace, { sessionId }, attending)
    } catch (error) {
      this.forget(workspace, sessionId)
      throw error
    }
  }

  /** An earlier session that one which begins like this may be going on from. */
  private async suggestion(
    workspace: string,
    session: string,
    messages: readonly Incoming[],
  ): Promise<Suggestion | undefined> {
    const row = await sessionRow(this.parts, workspace, session)
    // It is known already what it goes on from.
    if (row !== undefined && metadataOf(row).continuedFrom !== undefined) return undefined
    const beginning = messages.find(({ role, content }) => role === 'user' && typeof content === 'string')?.content
    return typeof beginning === 'string' ? suggested(this.parts, workspace, beginning, new Set([session])) : undefined
  }

  forget(workspace: string, session: string): void {
    this.above.delete(`${workspace}:${session}`)
  }

  /** What the messages of a session cost together, without reading them: each knows what lies before it. */
  private async stored(workspace: string, session: string): Promise<Count> {
    const { memory, clock } = this.parts
    const waiting = await this.pending.kept(workspace, session)?.messages()
    if (waiting !== undefined) return { tokens: sumOf(waiting), exact: true }
    const head = await internalsOf(memory).sessions.head(keyOf(workspace, session), 1)
    const newest = head.recent.at(-1)
    if (newest === undefined || isExpired(head, clock())) {
      if ((await sessionRow(this.parts, workspace, session)) === undefined) throw notFound(session)
      return { tokens: 0, exact: true }
    }
    const isWhole = head.gaps.length === 0 && memory.profile.cap === undefined
    const messages = isWhole ? [] : await memory.transcript(keyOf(workspace, session))
    return { tokens: isWhole ? newest.offset + newest.weight : sumOf(messages), exact: true }
  }

  private reading(chat: string, tokens: Tokens, limit: Tokens, exact: boolean): Reading {
    const threshold = thresholdOf(this.parts.settings, limit)
    const saveNow = tokens >= threshold
    const crossed = saveNow && !this.above.has(chat)
    this.above.delete(chat)
    if (saveNow) this.above.add(chat)
    for (const oldest of this.above) {
      if (this.above.size <= mostChats) break
      this.above.delete(oldest)
    }
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

const nothing = (): MemoryError =>
  new MemoryError('bad-option', 'There is nothing to append. Give at least one message.', { param: 'messages' })

type Count = { readonly tokens: Tokens; readonly exact: boolean }

const sumOf = (messages: readonly { readonly tokens: Tokens }[]): Tokens =>
  messages.reduce((sum, { tokens }) => sum + tokens, 0)

function weightOf(tokenizer: Tokenizer, messages: readonly Incoming[], now: Millis): Count {
  const said = messages.map((message, place) => weighed(tokenizer, parseMessage(message, place, now)))
  return { tokens: sumOf(said), exact: said.every(({ content }) => tokenizer.isExact(content)) }
}
