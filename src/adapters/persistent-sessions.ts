import { asTurn, Renderer, weighed } from '../context/render.ts'
import { lastOf, unitsOf } from '../context/unit.ts'
import { type Incoming, parseMessage, wellFormed } from '../domain/chat.ts'
import {
  type Derived,
  isBlank,
  type Message,
  type Millis,
  type Role,
  type Summary,
  sequenceOf,
  type Tokens,
} from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key, parseKey, type Scope } from '../domain/key.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Clock, Store, Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import { type Head, isExpired, never, placeOf } from '../domain/session.ts'
import { Forgetting, type Forgotten } from '../memory/forget.ts'
import { Barrier } from '../memory/secretMasker.ts'
import { upperBound } from '../text/upperBound.ts'

export type SessionsOptions = {
  /** Where sessions are kept; what it has at hand is the cache in front, and follows what other processes write. */
  readonly store: Store
  /** Whose conversations these are: a conversation's id is that of a session of this scope. */
  readonly scope: Scope
  readonly tokenizer?: Tokenizer
  readonly clock?: Clock
  readonly newId?: () => string
  /** What happens to keys and passwords in what is said: see `secrets` of a profile; `mask` when left out. */
  readonly secrets?: Profile['secrets']
}

export type SessionMessage = {
  readonly id: string
  readonly role: Role
  readonly content: string
  /** ISO 8601. */
  readonly timestamp: string
  /** What the message costs a model. */
  readonly tokenCount: Tokens
  /** Whether a summary stands for it; it is kept and shown to people all the same. */
  readonly isCompressed: boolean
}

export type SessionInfo = {
  readonly id: string
  readonly createdAt: string
  readonly updatedAt: string
  readonly messageCount: number
}

export type PersistentSession = SessionInfo & {
  /** Everything that was said, in order, and where the compressed messages end the summary of them. */
  readonly messages: readonly SessionMessage[]
  /** What all that was said would cost. */
  readonly totalTokens: Tokens
  /** What a model is shown costs: the summary, and the messages that are not compressed. */
  readonly contextTokens: Tokens
}

/** What a message may have besides its role and its words. */
export type MessageDetails = Pick<Incoming, 'name' | 'tool_calls' | 'tool_call_id'>

const everything = Number.MAX_SAFE_INTEGER
const marker = '[CONTEXT SUMMARY]'

/**
 * Whole conversations in a store, each with a summary in place of its older messages. Nothing that was said is deleted
 * or changed by compressing: the summary is an entry of its own beside the transcript.
 *
 * @example
 * const sessions = new PersistentSessions({ store: sqliteStore('memory.db'), scope: 'acme' })
 * await sessions.addMessage('task-1', 'user', 'Open example.com and extract the title.')
 * const { id } = await sessions.addMessage('task-1', 'assistant', 'The title is Example Domain.')
 * await sessions.compressMessages('task-1', id, 'The user wants the title of example.com.')
 * await sessions.getContextMessages('task-1') // the summary, then the assistant's message
 */
export class PersistentSessions {
  private readonly store: Store
  private readonly scope: Scope
  private readonly renderer: Renderer
  private readonly clock: Clock
  private readonly newId: () => string
  private readonly barrier: Barrier

  constructor({
    store,
    scope,
    tokenizer = upperBound,
    clock = Date.now,
    newId = () => crypto.randomUUID(),
    secrets = 'mask',
  }: SessionsOptions) {
    this.store = store
    this.scope = scope
    this.renderer = new Renderer(tokenizer)
    this.clock = clock
    this.newId = newId
    this.barrier = new Barrier(secrets, tokenizer)
  }

  /** The session of a conversation, begun if there is none: it is stored and listed from then on. */
  async getOrCreate(conversationId: string): Promise<PersistentSession> {
    const key = this.key(conversationId)
    let head = await this.head(key)
    if (head.revision === 0) {
      // One name for this step: two processes that both find nothing create one session.
      await this.store.commit({
        id: 'created',
        key,
        at: this.clock(),
        epoch: head.epoch,
        append: [],
        put: [],
        drop: [],
        expiresAt: never,
      })
      head = await this.head(key)
    }
    const said = await this.store.page(key, { limit: everything })
    return { ...infoOf({ ...head, messages: said.length }), ...this.shown(said, summaryIn(head.derived)) }
  }

  /** Stores what was said at the end of a conversation, which begins with it if there is none. */
  async addMessage(
    conversationId: string,
    role: Incoming['role'],
    content: Incoming['content'],
    details: MessageDetails = {},
  ): Promise<SessionMessage> {
    const key = this.key(conversationId)
    const at = this.clock()
    const said = weighed(
      this.renderer.tokenizer,
      await this.barrier.masked(key, parseMessage({ ...details, role, content }, 0, at)),
    )
    const { epoch } = await this.head(key)
    const [stored] = await this.store.commit({ key, at, epoch, append: [said], put: [], drop: [], expiresAt: never })
    return this.message(stored as Message, false)
  }

  /**
   * Puts a summary in the place of all messages before the one named; undefined if there are none. It stands for
   * everything it replaces, an earlier summary included: what of that should be kept is part of the new one. A tool's
   * results stay with the call they answer, so that what is left can be sent.
   */
  async compressMessages(
    conversationId: string,
    olderThanId: string,
    summary: string,
  ): Promise<SessionMessage | undefined> {
    const key = this.key(conversationId)
    if (isBlank(summary))
      throw new MemoryError('bad-option', 'summary is empty; say in it what the messages it stands for said.', {
        param: 'summary',
      })
    const text = await this.barrier.text(key, wellFormed(summary))
    for (;;) {
      const head = await this.head(key)
      const earlier = summaryIn(head.derived)
      const since = await this.store.page(key, { after: earlier?.covers[1] ?? 0, limit: everything })
      const older = olderThan(key, since, olderThanId, earlier)
      const at = this.clock()
      const put = summarised(older, earlier, { text, at, id: earlier?.id ?? this.newId() })
      if (put === undefined) return undefined
      try {
        const { epoch, revision: base, expiresAt } = head
        await this.store.commit({ key, at, epoch, base, append: [], put: [put], drop: [], expiresAt })
        return this.summary(put)
      } catch (error) {
        // Somebody else was quicker: what they wrote is read again.
        if (!(error instanceof MemoryError && error.code === 'conflict')) throw error
      }
    }
  }

  /** What a model is shown: the summary, then what it does not stand for, as a provider takes it. */
  async getContextMessages(conversationId: string): Promise<readonly ChatMessage[]> {
    const key = this.key(conversationId)
    const kept = summaryIn((await this.head(key)).derived)
    const summary = kept && (this.barrier.shownEntry(key, kept) as Summary)
    const said = await this.store.page(key, { after: summary?.covers[1] ?? 0, limit: everything })
    const turns = unitsOf(said.map((message) => this.barrier.shown(key, message))).flatMap(
      (unit) => this.renderer.unit(unit, asTurn, { as: 'whole' }, Number.POSITIVE_INFINITY)?.chat ?? [],
    )
    return summary === undefined ? turns : [{ role: 'system', content: marked(summary) }, ...turns]
  }

  /** Forgets a conversation for good: its messages, its summary, their vectors, and what the scope has learnt from it. */
  async delete(conversationId: string): Promise<Forgotten> {
    const key = formatKey(this.key(conversationId))
    this.barrier.drop(this.scope, conversationId)
    return new Forgetting({ sessions: this.store, store: this.store }, async () => undefined).forget(
      { key },
      this.clock(),
    )
  }

  /** All conversations of the scope, in order of their ids. */
  async list(): Promise<readonly SessionInfo[]> {
    const now = this.clock()
    const listed = await this.store.list({ scope: this.scope, limit: everything })
    return listed.filter(({ key, expiresAt }) => key.id !== '' && expiresAt > now).map(infoOf)
  }

  private key(conversationId: string): Key {
    return parseKey(`${this.scope}:${conversationId}`)
  }

  /** A session may have been given an end by a profile; once that has come, the conversation begins anew. */
  private async head(key: Key): Promise<Head> {
    const now = this.clock()
    const head = await this.store.head(key, 0)
    if (!isExpired(head, now)) return head
    await this.store.erase(key, { expiredBy: now })
    return this.store.head(key, 0)
  }

  private shown(
    said: readonly Message[],
    summary: Summary | undefined,
  ): Pick<PersistentSession, 'messages' | 'totalTokens' | 'contextTokens'> {
    const end = placeOf(said, (summary?.covers[1] ?? 0) + 1)
    const messages = said.map((message, place) => this.message(message, place < end))
    const standIn = summary === undefined ? [] : [this.summary(summary)]
    return {
      messages: messages.toSpliced(end, 0, ...standIn),
      totalTokens: sumOf(messages),
      contextTokens: sumOf([...standIn, ...messages.slice(end)]),
    }
  }

  private message(message: Message, isCompressed: boolean): SessionMessage {
    const { tokenizer } = this.renderer
    const { tokens } = message.tokenizer === tokenizer.name ? message : weighed(tokenizer, message)
    return {
      id: message.id,
      role: message.role,
      content: message.content,
      timestamp: isoOf(message.at),
      tokenCount: tokens,
      isCompressed,
    }
  }

  private summary(entry: Summary): SessionMessage {
    const said = { role: 'system' as const, content: marked(entry), at: entry.at }
    const { tokens } = weighed(this.renderer.tokenizer, said)
    return {
      id: entry.id,
      role: said.role,
      content: said.content,
      timestamp: isoOf(said.at),
      tokenCount: tokens,
      isCompressed: false,
    }
  }
}

/** The summary that reaches furthest: there is one, unless somebody else keeps such summaries too. */
function summaryIn(derived: readonly Derived[]): Summary | undefined {
  const summaries = derived.filter((entry): entry is Summary => entry.kind === 'summary' && entry.tier === 'batch')
  return summaries.sort((a, b) => b.covers[1] - a.covers[1])[0]
}

/** The messages before the one named that no summary stands for yet, calls only with their results. */
function olderThan(key: Key, since: readonly Message[], id: string, earlier: Summary | undefined): readonly Message[] {
  const sequence = sequenceOf(id) ?? 0
  if (earlier !== undefined && sequence > 0 && sequence <= earlier.covers[1]) {
    throw new MemoryError(
      'conflict',
      `Message ${id} of ${formatKey(key)} is compressed already. Read the session again and name a later one.`,
    )
  }
  if (!since.some((message) => message.id === id)) {
    throw new MemoryError(
      'bad-option',
      `${formatKey(key)} has no message ${JSON.stringify(id)}. Name the first message that should stay as it is.`,
      {
        param: 'olderThanId',
      },
    )
  }
  return unitsOf(since)
    .filter((unit) => lastOf(unit) < sequence)
    .flatMap((unit) => unit.messages)
}

/** The summary of these messages and of all that an earlier one stood for; undefined if that is nothing. */
function summarised(
  older: readonly Message[],
  earlier: Summary | undefined,
  { id, at, text }: { readonly id: string; readonly at: Millis; readonly text: string },
): Summary | undefined {
  const [first, last] = earlier?.covers ?? [older[0]?.sequence, undefined]
  const newest = older.at(-1)
  const end = newest?.sequence ?? last
  if (first === undefined || end === undefined) return undefined
  const reach = newest === undefined ? (earlier?.reach ?? 0) : newest.offset + newest.weight
  const sources = [...(earlier?.sources ?? []), ...older.map(({ id: message }) => ({ message }))]
  const version = (earlier?.version ?? 0) + 1
  return {
    kind: 'summary',
    tier: 'batch',
    id,
    at,
    text,
    covers: [first, end],
    reach,
    version,
    by: 'caller',
    sources,
    lost: [],
  }
}

const sumOf = (messages: readonly SessionMessage[]): Tokens =>
  messages.reduce((sum, { tokenCount }) => sum + tokenCount, 0)

const marked = ({ text }: Summary): string => `${marker} ${text}`

const infoOf = ({
  key,
  startedAt,
  touchedAt,
  messages,
}: Pick<Head, 'key' | 'startedAt' | 'touchedAt' | 'messages'>): SessionInfo => ({
  id: key.id,
  createdAt: isoOf(startedAt),
  updatedAt: isoOf(touchedAt),
  messageCount: messages,
})

/** A message may bear any number as its time; a date ends somewhere. */
const isoOf = (at: Millis): string => new Date(Math.max(-8.64e15, Math.min(8.64e15, at))).toISOString()
