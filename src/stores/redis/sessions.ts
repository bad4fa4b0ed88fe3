import { randomBytes } from 'node:crypto'
import type { Entry, Message } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { AuxiliaryRecord, EraseFilter, PageOptions, RecordRange, StoredRecord } from '../../domain/ports.ts'
import {
  checkMessageIds,
  createEmptyHead,
  findFilledSequence,
  noExpiry,
  type SessionChange,
  type SessionHead,
} from '../../domain/session.ts'
import { createMessage } from '../ram/session.ts'
import type { RedisConnection } from './connection.ts'
import type { RedisKeys } from './keys.ts'
import {
  formatChange,
  formatEntryIds,
  formatExternalId,
  parseDerivedEntries,
  parseGaps,
  parseMessage,
  parseName,
  parseRow,
} from './rows.ts'
import type { ScopeRegistry } from './scopeRegistry.ts'
import { messagesScript, readScript } from './scripts/read.ts'
import { backstopMs } from './scripts/shared.ts'
import { commitScript, eraseScript, recordScript } from './scripts/write.ts'
import {
  buildHead,
  type CachedSession,
  continueSession,
  hasRecent,
  maxTailMessages,
  type SessionCache,
  sliceCached,
} from './sessionCache.ts'
import type { Reply } from './transport.ts'

/** Bytes after which a read from scratch stops at the messages that were asked for. */
const maxReadBytes = 1_000_000
/** Erased sessions per scope whose epochs are kept one by one. */
const maxEpochs = 10_000

/** A session that does not exist, and the epoch that its first writer must name. */
type UnknownSession = { readonly epoch: number }
const isKnown = (session: CachedSession | UnknownSession): session is CachedSession => 'row' in session

type SessionsDeps = {
  readonly connection: RedisConnection
  readonly keys: RedisKeys
  readonly cache: SessionCache
  readonly registry: ScopeRegistry
}

/** Reads and writes sessions; each operation is one script. */
export class RedisSessions {
  readonly #deps: SessionsDeps
  /** Names this process in the tokens of its changes. */
  readonly #process = randomBytes(9).toString('base64url')
  #changes = 0

  constructor(deps: SessionsDeps) {
    this.#deps = deps
  }

  async readHead(key: Key, recent: number, revision?: number): Promise<SessionHead> {
    const session = await this.read(key, recent, revision)
    return isKnown(session) ? buildHead(key, session, recent) : createEmptyHead(key, session.epoch)
  }

  /** Reads messages; from the cache, if Redis confirms it or the caller has just read this revision. */
  async readMessages(key: Key, range: PageOptions, revision?: number): Promise<readonly Message[]> {
    const cached = this.#deps.cache.get(key)
    if (cached !== undefined && sliceCached(cached, range) !== undefined) {
      const current = await this.read(key, 0, revision)
      const messages = isKnown(current) ? sliceCached(current, range) : []
      if (messages !== undefined) return messages
    }
    return this.readPage(key, range)
  }

  /** Reads messages from Redis. */
  async readPage(key: Key, { after = 0, before, limit, newest = false }: PageOptions): Promise<readonly Message[]> {
    const name = this.#deps.keys.messages(key)
    const from = `(${after}`
    const to = before === undefined || before > Number.MAX_SAFE_INTEGER ? '+inf' : `(${before}`
    const count = limit > 2 ** 31 ? '-1' : String(limit)
    const command = newest ? ['ZREVRANGEBYSCORE', name, to, from] : ['ZRANGEBYSCORE', name, from, to]
    const found = await this.#deps.connection.run(name, [...command, 'LIMIT', '0', count], true)
    const messages = (found as readonly string[]).map(parseMessage)
    return newest ? messages.reverse() : messages
  }

  /** Reads messages by their sequence numbers in one command; undefined for those that do not exist. */
  async readMessagesAt(key: Key, sequences: readonly number[]): Promise<readonly (Message | undefined)[]> {
    if (sequences.length === 0) return []
    const { connection, keys } = this.#deps
    const found = await connection.runScript(messagesScript, [keys.messages(key)], sequences.map(String), true)
    return (found as readonly string[]).map((stored) => (stored === '' ? undefined : parseMessage(stored)))
  }

  async findMessages(key: Key, externalIds: readonly string[]): Promise<readonly Message[]> {
    if (externalIds.length === 0) return []
    const { connection, keys } = this.#deps
    const name = keys.externalIds(key)
    const found = await connection.run(name, ['HMGET', name, ...externalIds.map(formatExternalId)], true)
    const sequences = [...new Set((found as readonly (string | null)[]).flatMap((value) => value ?? []))].map(Number)
    const messages = await this.readMessagesAt(
      key,
      sequences.sort((a, b) => a - b),
    )
    return messages.filter((message) => message !== undefined)
  }

  /**
   * Reads the state of a session with at least its `wanted` newest messages. With a revision, the cache answers if it
   * has seen that revision; otherwise Redis sends what is newer than the cached state.
   */
  async read(key: Key, wanted: number, revision?: number): Promise<CachedSession | UnknownSession> {
    const { cache, connection, keys, registry } = this.#deps
    const seen = revision === undefined ? undefined : cache.getSince(key, revision)
    if (seen !== undefined && hasRecent(seen, wanted)) return seen
    const known = cache.get(key)
    const args = formatRead(key, known, wanted)
    const reply = (await connection.runScript(readScript, keys.forRead(key), args, true)) as readonly Reply[]
    const [base, epoch, state] = reply
    registry.setBase(key.scope, String(base))
    if (state === 0) {
      cache.drop(key)
      return { epoch: Number(epoch) }
    }
    if (state === 1) return known as CachedSession
    const session = parseRead(reply, known)
    cache.set(key, session)
    return session
  }

  async commit(change: SessionChange): Promise<readonly Message[]> {
    const { connection, keys, registry } = this.#deps
    const { key, at, expiresAt } = change
    await registry.register(key.scope)
    const ttl = expiresAt >= noExpiry ? '' : String(Math.round(Math.max(0, expiresAt - at)) + backstopMs)
    const args = formatChange(change, `${this.#process}.${++this.#changes}`, ttl)
    const reply = (await connection.runScript(commitScript, keys.forWrite(key), args, true)) as readonly Reply[]
    return this.#parseCommit(change, reply)
  }

  async erase(key: Key, only?: EraseFilter): Promise<readonly string[]> {
    const { connection, keys, cache } = this.#deps
    const entries = only !== undefined && 'entries' in only ? only.entries : []
    const args = [
      key.id,
      eraseMode(only),
      only !== undefined && 'expiredBy' in only ? String(only.expiredBy) : '',
      String(backstopMs),
      keys.erasures,
      formatKey(key),
      String(maxEpochs),
      String(entries.length),
      ...formatEntryIds(entries),
    ]
    const [erased] = (await connection.runScript(eraseScript, keys.forWrite(key), args)) as readonly Reply[]
    cache.drop(key)
    return (erased as readonly string[]).map(parseName)
  }

  async appendRecord(key: Key, { id, at, body }: AuxiliaryRecord, keep: number): Promise<boolean> {
    const { connection, keys } = this.#deps
    const args = [JSON.stringify({ id, at, body }), String(keep)]
    return (await connection.runScript(recordScript, [keys.row(key), keys.records(key)], args)) === 1
  }

  async records(key: Key, { before, limit }: RecordRange): Promise<readonly StoredRecord[]> {
    const name = this.#deps.keys.records(key)
    const from = before === undefined ? '+inf' : `(${before}`
    const count = limit > 2 ** 31 ? '-1' : String(limit)
    const command = ['ZREVRANGEBYSCORE', name, from, '-inf', 'LIMIT', '0', count]
    const found = (await this.#deps.connection.run(name, command, true)) as readonly string[]
    return found.map((member) => {
      const colon = member.indexOf(':')
      return { ...(JSON.parse(member.slice(colon + 1)) as AuxiliaryRecord), number: Number(member.slice(0, colon)) }
    })
  }

  /** Reads all entries of a session. */
  async readEntries(key: Key): Promise<{ readonly epoch: number; readonly entries: readonly Entry[] }> {
    const [session, messages] = await Promise.all([
      this.read(key, 0),
      this.readPage(key, { limit: Number.MAX_SAFE_INTEGER }),
    ])
    return isKnown(session)
      ? { epoch: session.row.epoch, entries: [...messages, ...session.derived] }
      : { epoch: session.epoch, entries: [] }
  }

  #parseCommit(change: SessionChange, [outcome, first, second, third]: readonly Reply[]): readonly Message[] {
    if (outcome === 'repeated') return (first as readonly string[]).map(parseMessage)
    if (outcome !== 'stored') return this.#reject(change, String(outcome), String(first), String(second))
    const row = parseRow(first as readonly Reply[])
    let [sequence, offset] = [Number(second), Number(third)]
    const stored = change.append.map((input) => {
      const message = createMessage(input, sequence++, offset)
      offset += input.weight
      return message
    })
    this.#deps.cache.applyCommit(change.key, change, row, stored)
    return stored
  }

  #reject(change: SessionChange, outcome: string, first: string, second: string): never {
    const { key, epoch, base } = change
    const name = formatKey(key)
    if (outcome === 'erased') {
      this.#deps.cache.drop(key)
      const isLost = first === '' || epoch < Number(first)
      throw new MemoryError(
        'erased',
        isLost
          ? `Session ${name} is gone: Redis was restarted without its data, or the session ended long ago. Nothing was stored. Read the session again and retry if the change is still needed.`
          : `Session ${name} was erased while this change was in progress; nothing was stored. Read the session again and retry if the change is still needed.`,
      )
    }
    if (outcome === 'gap') findFilledSequence(change, { lastSequence: Number(first), gaps: parseGaps(second) })
    if (outcome === 'missing' || outcome === 'taken')
      checkMessageIds(change, {
        hasMessage: (id) =>
          outcome !== 'missing' || change.replace?.findIndex((found) => found.id === id) !== Number(first),
        findExternalId: (id) => (outcome === 'taken' && formatExternalId(id) === first ? '' : undefined),
      })
    this.#deps.cache.setLatest(key, { epoch, revision: Number(first) })
    throw new MemoryError(
      'conflict',
      `Session ${name} is at revision ${first}, not ${base}. Read the session again and retry.`,
    )
  }
}

function eraseMode(only: EraseFilter | undefined): string {
  if (only === undefined) return 'all'
  if ('entries' in only) return 'entries'
  return 'records' in only ? 'records' : 'expired'
}

/** Formats the arguments of the read script: the state that is known, and the number of messages wanted. */
function formatRead(key: Key, known: CachedSession | undefined, wanted: number): readonly string[] {
  const limits = [String(wanted), String(backstopMs), String(maxTailMessages), String(maxReadBytes)]
  if (known === undefined) return [key.id, '', '', '', '', '', '0', ...limits]
  const { row, tail } = known
  const hasMessages = wanted === 0 ? tail.length > 0 || row.messageCount === 0 : hasRecent(known, wanted)
  return [
    key.id,
    String(row.epoch),
    String(row.revision),
    String(row.removals),
    String(tail.at(-1)?.sequence ?? 0),
    String(row.derivedVersion),
    hasMessages ? '1' : '0',
    ...limits,
  ]
}

/** Parses the reply of the read script for a session that has changed or was not known. */
function parseRead(reply: readonly Reply[], known: CachedSession | undefined): CachedSession {
  const [, , state, columns, stored, first, user, hasDerived, flat] = reply
  const row = parseRow(columns as readonly Reply[])
  const messages = (stored as readonly string[]).map(parseMessage)
  const derived =
    hasDerived === 1 || known === undefined ? parseDerivedEntries(flat as readonly Reply[]) : known.derived
  if (state === 2 && known !== undefined) return continueSession(known, row, messages, derived)
  const firstMessage = first === '' ? messages[0] : parseMessage(String(first))
  const userMessage = user === '' ? undefined : parseMessage(String(user))
  const lastUserMessage = [userMessage, ...messages, firstMessage].find(
    (message) => message?.sequence === row.lastUserSequence,
  )
  return { row, tail: messages, first: firstMessage, lastUserMessage, derived }
}
