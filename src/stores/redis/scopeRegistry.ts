import { formatKey, type Key, parseStoredKey, type Scope } from '../../domain/key.ts'
import { LruCache } from '../../domain/lruCache.ts'
import type { IndexChanges, SessionFilter } from '../../domain/ports.ts'
import { matchesMetadata, type SessionListItem } from '../../domain/session.ts'
import type { RedisConnection } from './connection.ts'
import type { RedisKeys } from './keys.ts'
import { changesScript } from './scripts/read.ts'
import { backstopMs } from './scripts/shared.ts'
import { removeIdScript } from './scripts/write.ts'
import type { Reply } from './transport.ts'

const maxKnownScopes = 100_000
/** Sessions read at once by a list. */
const maxPageSize = 1_000
/** Scopes read at once by a list of all scopes. */
const maxScopesAtOnce = 256

/**
 * The scopes of a store and their sessions. A scope is added to the registry before its first session, and stays there:
 * registry and sessions are on different shards and cannot change together.
 */
export class ScopeRegistry {
  readonly #connection: RedisConnection
  readonly #keys: RedisKeys
  /** First epoch of each scope; another one shows that Redis has lost its data. */
  readonly #bases = new LruCache<Scope, string>({ maxEntries: maxKnownScopes })
  /** First epoch of each scope at the time it was added to the registry. */
  readonly #registered = new LruCache<Scope, string | undefined>({ maxEntries: maxKnownScopes })

  constructor(connection: RedisConnection, keys: RedisKeys) {
    this.#connection = connection
    this.#keys = keys
  }

  setBase(scope: Scope, base: string): void {
    this.#bases.set(scope, base)
  }

  /** Adds a scope, unless this process has done so since Redis was started. */
  async register(scope: Scope): Promise<void> {
    const base = this.#bases.peek(scope)
    if (base !== undefined && this.#registered.get(scope) === base) return
    await this.#connection.run(this.#keys.scopes, ['ZADD', this.#keys.scopes, '0', scope], true)
    this.#registered.set(scope, base)
  }

  /** Lists all scopes, or those from one on, in order. */
  async listScopes(from: Scope = ''): Promise<readonly Scope[]> {
    const command = ['ZRANGEBYLEX', this.#keys.scopes, from === '' ? '-' : `[${from}`, '+']
    return (await this.#connection.run(this.#keys.scopes, command, true)) as readonly string[]
  }

  /** Counts the sessions of a scope, or of all. */
  async countSessions(scope?: Scope): Promise<number> {
    const scopes = scope === undefined ? await this.listScopes() : [scope]
    const counts = await Promise.all(
      scopes.map((name) => this.#connection.run(this.#keys.sessions(name), ['ZCARD', this.#keys.sessions(name)], true)),
    )
    return counts.reduce<number>((sum, count) => sum + Number(count), 0)
  }

  async list(filter: SessionFilter): Promise<readonly SessionListItem[]> {
    const { scope, after = '', limit } = filter
    const [afterScope = '', afterId = ''] = after.split(/:(.*)/s)
    const scopes = scope === undefined ? await this.listScopes(afterScope) : scope >= afterScope ? [scope] : []
    const found: SessionListItem[] = []
    for (let at = 0, count = 1; at < scopes.length && found.length < limit; at += count, count = nextCount(count)) {
      const pages = await Promise.all(
        scopes
          .slice(at, at + count)
          .map((name) => this.#listScope(name, name === afterScope ? afterId : undefined, filter)),
      )
      for (const page of pages) for (const item of page) found.push(item)
    }
    return found.slice(0, limit)
  }

  /** Iterates over the keys of all sessions in order, from one on. */
  async *listKeys(from: string): AsyncIterable<Key> {
    if (from !== '') yield parseStoredKey(from)
    for (let after = from; ; ) {
      const page = await this.list({ after, limit: maxPageSize })
      for (const { key } of page) yield key
      const last = page.at(-1)
      if (last === undefined || page.length < maxPageSize) return
      after = formatKey(last.key)
    }
  }

  async changes(scope: Scope, since: number): Promise<IndexChanges> {
    const keys = [this.#keys.meta(scope), this.#keys.stamps(scope)]
    const reply = (await this.#connection.runScript(
      changesScript,
      keys,
      [String(since), String(backstopMs)],
      true,
    )) as readonly Reply[]
    const [base, removals, stamp, sessions] = reply
    return {
      stamp: Number(stamp),
      lineage: `${base}.${removals}`,
      sessions: (sessions as readonly string[]).map((id) => toKey(scope, id)),
    }
  }

  async #listScope(
    scope: Scope,
    afterId: string | undefined,
    filter: SessionFilter,
  ): Promise<readonly SessionListItem[]> {
    const { expiredBy, limit } = filter
    const found: SessionListItem[] = []
    for (let after = afterId; ; ) {
      const ids =
        expiredBy === undefined ? await this.#pageIds(scope, after) : await this.#expiredIds(scope, after, expiredBy)
      for (const item of await this.#readItems(scope, ids, filter)) found.push(item)
      if (expiredBy !== undefined || ids.length < maxPageSize || found.length >= limit) return found
      after = ids.at(-1)
    }
  }

  async #pageIds(scope: Scope, after: string | undefined): Promise<readonly string[]> {
    const name = this.#keys.sessions(scope)
    const from = after === undefined ? '-' : `(${after}`
    const command = ['ZRANGEBYLEX', name, from, '+', 'LIMIT', '0', String(maxPageSize)]
    return (await this.#connection.run(name, command, true)) as readonly string[]
  }

  async #expiredIds(scope: Scope, after: string | undefined, expiredBy: number): Promise<readonly string[]> {
    const name = this.#keys.expiry(scope)
    const ids = await this.#connection.run(name, ['ZRANGEBYSCORE', name, '-inf', String(expiredBy)], true)
    return (ids as string[]).filter((id) => after === undefined || id > after).sort()
  }

  async #readItems(
    scope: Scope,
    ids: readonly string[],
    { expiredBy, metadata: wanted }: SessionFilter,
  ): Promise<readonly SessionListItem[]> {
    const items = await Promise.all(ids.map((id) => this.#readItem(toKey(scope, id))))
    return items.filter(
      (item) =>
        item !== undefined &&
        (expiredBy === undefined || item.expiresAt <= expiredBy) &&
        (wanted === undefined || matchesMetadata(item.metadata, wanted)),
    ) as SessionListItem[]
  }

  /** Undefined for a session that was erased meanwhile, or that Redis has dropped by itself. */
  async #readItem(key: Key): Promise<SessionListItem | undefined> {
    const name = this.#keys.row(key)
    const command = ['HMGET', name, 'started', 'touched', 'expires', 'messages', 'about']
    const [started, touched, expires, messages, about] = (await this.#connection.run(name, command, true)) as readonly (
      | string
      | null
    )[]
    if (started === null) return this.#removeId(key)
    const item = {
      key,
      startedAt: Number(started),
      touchedAt: Number(touched),
      expiresAt: Number(expires),
      messages: Number(messages),
    }
    return typeof about === 'string' ? { ...item, metadata: JSON.parse(about) } : item
  }

  async #removeId(key: Key): Promise<undefined> {
    const { scope, id } = key
    const keys = [this.#keys.row(key), this.#keys.sessions(scope), this.#keys.stamps(scope), this.#keys.expiry(scope)]
    await this.#connection.runScript(removeIdScript, keys, [id])
  }
}

/** Starts with one scope, because the caller may want one session, and reads more at once then. */
const nextCount = (count: number): number => Math.min(maxScopesAtOnce, count * 16)

const toKey = (scope: Scope, id: string): Key => parseStoredKey(id === '' ? scope : `${scope}:${id}`)
