import { measureMessage } from '../context/measureMessage.ts'
import { groupIntoUnits, lastSequence, Renderer, turnMode } from '../context/render.ts'
import { type MessageInput, parseMessage, replaceLoneSurrogates } from '../domain/chat.ts'
import { checkOptions, type OptionChecks } from '../domain/checkOptions.ts'
import {
  type DerivedEntry,
  isBlank,
  type Message,
  type Millis,
  parseMessageId,
  type Role,
  type Summary,
  type Tokens,
} from '../domain/entry.ts'
import { anyFunction, anyObject, anyText, anyValue, MemoryError, oneOf } from '../domain/error.ts'
import { formatKey, type Key, parseKey, type Scope } from '../domain/key.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Clock, Store, Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import { findMessageIndex, isExpired, noExpiry, type SessionHead } from '../domain/session.ts'
import { ForgetOperation, type ForgetResult, wipeStores } from '../memory/forget.ts'
import { SecretMasker } from '../memory/secretMasker.ts'
import { upperBound } from '../text/upperBound.ts'

/** Options of `PersistentSessions`. */
export type PersistentSessionsOptions = {
  /** Its cache follows the writes of other processes. */
  readonly store: Store
  /** The scope of all conversations; a conversation's id is the session id in this scope. */
  readonly scope: Scope
  /** Default: an upper bound that needs no tables. */
  readonly tokenizer?: Tokenizer
  /** Default: `Date.now`. */
  readonly clock?: Clock
  /** Creates the ids of summaries. Default: random UUIDs. */
  readonly createId?: () => string
  /** Handling of keys and passwords in messages; see `secrets` of a profile. Default: `mask`. */
  readonly secrets?: Profile['secrets']
}

const optionChecks: OptionChecks<PersistentSessionsOptions> = {
  store: anyObject,
  scope: anyText,
  tokenizer: anyObject,
  clock: anyFunction,
  createId: anyFunction,
  secrets: oneOf('mask', 'hide', 'keep'),
}

/** A message of a conversation, or the summary that replaces older ones. */
export type SessionMessage = {
  readonly id: string
  readonly role: Role
  readonly content: string
  /** ISO 8601. */
  readonly timestamp: string
  /** Tokens of the message in a prompt. */
  readonly tokenCount: Tokens
  /** True when a summary replaces the message in the context; the message stays in the transcript. */
  readonly isCompressed: boolean
}

/** A conversation without its messages. */
export type SessionInfo = {
  readonly id: string
  readonly createdAt: string
  readonly updatedAt: string
  readonly messageCount: number
}

/** A conversation with its messages and sizes. */
export type PersistentSession = SessionInfo & {
  /** All messages in order; the summary follows the compressed ones. */
  readonly messages: readonly SessionMessage[]
  /** Tokens of all messages without the summary. */
  readonly totalTokens: Tokens
  /** Tokens of the context: the summary and the messages that are not compressed. */
  readonly contextTokens: Tokens
}

/** Optional fields of a message. */
export type MessageDetails = Pick<MessageInput, 'name' | 'tool_calls' | 'tool_call_id'>

const noLimit = Number.MAX_SAFE_INTEGER
const summaryMarker = '[CONTEXT SUMMARY]'

/**
 * Stores conversations and replaces their older messages by a summary in the context. Compressing deletes no message:
 * the summary is an entry of its own beside the transcript.
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
  private readonly createId: () => string
  private readonly secretMasker: SecretMasker

  constructor(options: PersistentSessionsOptions) {
    checkOptions<PersistentSessionsOptions>('PersistentSessions', options, optionChecks)
    const { store, scope, tokenizer = upperBound, clock = Date.now, secrets = 'mask' } = options
    const { createId = () => crypto.randomUUID() } = options
    this.store = store
    this.scope = scope
    this.renderer = new Renderer(tokenizer)
    this.clock = clock
    this.createId = createId
    this.secretMasker = new SecretMasker(secrets, tokenizer)
  }

  /** Returns the session of a conversation; creates and stores it if there is none. */
  async getOrCreate(conversationId: string): Promise<PersistentSession> {
    const key = this.key(conversationId)
    let head = await this.head(key)
    if (head.revision === 0) {
      this.secretMasker.checkKey(key)
      // The fixed operation id makes concurrent creations idempotent.
      await this.store.commit({
        id: 'created',
        key,
        at: this.clock(),
        epoch: head.epoch,
        append: [],
        put: [],
        drop: [],
        expiresAt: noExpiry,
      })
      head = await this.head(key)
    }
    const messages = await this.store.readMessages(key, { limit: noLimit })
    const info = toSessionInfo({ ...head, messages: messages.length })
    return { ...info, ...this.describeMessages(messages, findSummary(head.derived)) }
  }

  /**
   * Appends a message to a conversation; creates the conversation if there is none.
   *
   * @throws MemoryError `bad-key` or `bad-message` for invalid input.
   */
  async addMessage(
    conversationId: string,
    role: MessageInput['role'],
    content: MessageInput['content'],
    details: MessageDetails = {},
  ): Promise<SessionMessage> {
    const key = this.key(conversationId)
    // The fields are part of the message and checked with it.
    checkOptions<MessageDetails>('addMessage', details, {
      name: anyValue,
      tool_calls: anyValue,
      tool_call_id: anyValue,
    })
    const at = this.clock()
    const message = measureMessage(
      this.renderer.tokenizer,
      await this.secretMasker.maskMessage(key, parseMessage({ ...details, role, content }, 0, at)),
    )
    const { epoch, revision } = await this.head(key)
    if (revision === 0) this.secretMasker.checkKey(key)
    const [stored] = await this.store.commit({
      key,
      at,
      epoch,
      append: [message],
      put: [],
      drop: [],
      expiresAt: noExpiry,
    })
    return this.toSessionMessage(stored as Message, false)
  }

  /**
   * Replaces all messages before `olderThanId` by a summary in the context; returns undefined if there are none. The
   * summary also replaces an earlier one, so it must include what that one said. Tool results stay with their call,
   * because providers reject one without the other.
   *
   * @throws MemoryError `bad-option` for an empty summary or an unknown message, `conflict` if the message is
   * compressed already.
   */
  async compressMessages(
    conversationId: string,
    olderThanId: string,
    summary: string,
  ): Promise<SessionMessage | undefined> {
    const key = this.key(conversationId)
    if (isBlank(summary))
      throw new MemoryError('bad-option', 'summary is empty. Pass the text that replaces the older messages.', {
        param: 'summary',
      })
    const text = await this.secretMasker.maskText(key, replaceLoneSurrogates(summary))
    for (;;) {
      const head = await this.head(key)
      const earlier = findSummary(head.derived)
      const since = await this.store.readMessages(key, { after: earlier?.covers[1] ?? 0, limit: noLimit })
      const older = messagesBefore(key, since, olderThanId, earlier)
      const at = this.clock()
      const put = buildSummary(older, earlier, { text, at, id: earlier?.id ?? this.createId() })
      if (put === undefined) return undefined
      try {
        const { epoch, revision: base, expiresAt } = head
        await this.store.commit({ key, at, epoch, base, append: [], put: [put], drop: [], expiresAt })
        return this.toSummaryMessage(put)
      } catch (error) {
        // Another process wrote first: read its changes and try again.
        if (!(error instanceof MemoryError && error.code === 'conflict')) throw error
      }
    }
  }

  /** Returns the context for a model: the summary, then the messages that are not compressed. */
  async getContextMessages(conversationId: string): Promise<ChatMessage[]> {
    const key = this.key(conversationId)
    const stored = findSummary((await this.head(key)).derived)
    const summary = stored && (this.secretMasker.restoreEntry(key, stored) as Summary)
    const messages = await this.store.readMessages(key, { after: summary?.covers[1] ?? 0, limit: noLimit })
    const turns = groupIntoUnits(messages.map((message) => this.secretMasker.restoreMessage(key, message))).flatMap(
      (unit) => this.renderer.renderUnit(unit, turnMode, { as: 'whole' }, Number.POSITIVE_INFINITY)?.chat ?? [],
    )
    return summary === undefined ? turns : [{ role: 'system', content: formatSummary(summary) }, ...turns]
  }

  /** Erases a conversation: messages, summary, vectors, and knowledge that the scope derived from it. */
  async delete(conversationId: string): Promise<ForgetResult> {
    const key = formatKey(this.key(conversationId))
    this.secretMasker.drop(this.scope, conversationId)
    const operation = new ForgetOperation({ sessions: this.store, store: this.store }, async () => undefined)
    const forgotten = await operation.forget({ key }, this.clock())
    await wipeStores([this.store])
    return forgotten
  }

  /** Lists all conversations of the scope in order of their ids. */
  async list(): Promise<readonly SessionInfo[]> {
    const now = this.clock()
    const sessions = await this.store.list({ scope: this.scope, limit: noLimit })
    return sessions.filter(({ key, expiresAt }) => key.id !== '' && expiresAt > now).map(toSessionInfo)
  }

  private key(conversationId: string): Key {
    return parseKey(`${this.scope}:${conversationId}`)
  }

  /** Reads a session; one that a profile let expire is erased first. */
  private async head(key: Key): Promise<SessionHead> {
    const now = this.clock()
    const head = await this.store.readHead(key, 0)
    if (!isExpired(head, now)) return head
    await this.store.erase(key, { expiredBy: now })
    return this.store.readHead(key, 0)
  }

  private describeMessages(
    transcript: readonly Message[],
    summary: Summary | undefined,
  ): Pick<PersistentSession, 'messages' | 'totalTokens' | 'contextTokens'> {
    const compressed = findMessageIndex(transcript, (summary?.covers[1] ?? 0) + 1)
    const messages = transcript.map((message, index) => this.toSessionMessage(message, index < compressed))
    const summaryMessages = summary === undefined ? [] : [this.toSummaryMessage(summary)]
    return {
      messages: messages.toSpliced(compressed, 0, ...summaryMessages),
      totalTokens: sumTokens(messages),
      contextTokens: sumTokens([...summaryMessages, ...messages.slice(compressed)]),
    }
  }

  private toSessionMessage(message: Message, isCompressed: boolean): SessionMessage {
    const { tokenizer } = this.renderer
    const { tokens } = message.tokenizer === tokenizer.name ? message : measureMessage(tokenizer, message)
    return {
      id: message.id,
      role: message.role,
      content: message.content,
      timestamp: toIsoTime(message.at),
      tokenCount: tokens,
      isCompressed,
    }
  }

  private toSummaryMessage(entry: Summary): SessionMessage {
    const message = { role: 'system' as const, content: formatSummary(entry), at: entry.at }
    const { tokens } = measureMessage(this.renderer.tokenizer, message)
    return {
      id: entry.id,
      role: message.role,
      content: message.content,
      timestamp: toIsoTime(message.at),
      tokenCount: tokens,
      isCompressed: false,
    }
  }
}

/** Finds the batch summary that covers most; other code may have stored more than one. */
function findSummary(derived: readonly DerivedEntry[]): Summary | undefined {
  const summaries = derived.filter((entry): entry is Summary => entry.kind === 'summary' && entry.tier === 'batch')
  return summaries.sort((a, b) => b.covers[1] - a.covers[1])[0]
}

/** Returns the uncompressed messages before `id`; a tool call only together with its results. */
function messagesBefore(
  key: Key,
  since: readonly Message[],
  id: string,
  earlier: Summary | undefined,
): readonly Message[] {
  const sequence = parseMessageId(id) ?? 0
  if (earlier !== undefined && sequence > 0 && sequence <= earlier.covers[1]) {
    throw new MemoryError(
      'conflict',
      `Message ${id} of ${formatKey(key)} is compressed already. Read the session again and pass the id of a later message.`,
    )
  }
  if (!since.some((message) => message.id === id)) {
    throw new MemoryError(
      'bad-option',
      `${formatKey(key)} has no message ${JSON.stringify(id)}. Pass the id of the first message to keep uncompressed.`,
      {
        param: 'olderThanId',
      },
    )
  }
  return groupIntoUnits(since)
    .filter((unit) => lastSequence(unit) < sequence)
    .flatMap((unit) => unit.messages)
}

/** Builds a summary entry that covers these messages and those of an earlier summary; undefined if there are none. */
function buildSummary(
  older: readonly Message[],
  earlier: Summary | undefined,
  { id, at, text }: { readonly id: string; readonly at: Millis; readonly text: string },
): Summary | undefined {
  const [first, last] = earlier?.covers ?? [older[0]?.sequence, undefined]
  const newest = older.at(-1)
  const end = newest?.sequence ?? last
  if (first === undefined || end === undefined) return undefined
  const reach = newest === undefined ? (earlier?.endOffset ?? 0) : newest.offset + newest.weight
  const sources = [...(earlier?.sources ?? []), ...older.map(({ id: message }) => ({ message }))]
  const version = (earlier?.version ?? 0) + 1
  return {
    kind: 'summary',
    tier: 'batch',
    id,
    at,
    text,
    covers: [first, end],
    endOffset: reach,
    version,
    by: 'caller',
    sources,
    lossyRanges: [],
  }
}

const sumTokens = (messages: readonly SessionMessage[]): Tokens =>
  messages.reduce((sum, { tokenCount }) => sum + tokenCount, 0)

const formatSummary = ({ text }: Summary): string => `${summaryMarker} ${text}`

const toSessionInfo = ({
  key,
  startedAt,
  touchedAt,
  messages,
}: Pick<SessionHead, 'key' | 'startedAt' | 'touchedAt' | 'messages'>): SessionInfo => ({
  id: key.id,
  createdAt: toIsoTime(startedAt),
  updatedAt: toIsoTime(touchedAt),
  messageCount: messages,
})

/** Formats a time; times outside the range of `Date` are clamped. */
const toIsoTime = (at: Millis): string => new Date(Math.max(-8.64e15, Math.min(8.64e15, at))).toISOString()
