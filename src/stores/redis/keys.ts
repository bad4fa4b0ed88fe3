import type { Key, Scope } from '../../domain/key.ts'

/**
 * Names of the keys in Redis. The part in braces decides the slot of a cluster, so that everything of a scope is on one
 * shard and every operation is one atomic script.
 */
export class RedisKeys {
  readonly #prefix: string

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** Sorted set of the scopes that were ever written to. */
  get scopes(): string {
    return `${this.#prefix}:scopes`
  }

  /** Channel on which erased sessions are announced. */
  get erasures(): string {
    return `${this.#prefix}:erased`
  }

  /** Token bucket of a client. */
  tokenBucket(name: string): string {
    return `{${this.#prefix}:bucket ${name}}`
  }

  /** Hash of a scope's own counters. */
  meta(scope: Scope): string {
    return this.#of(scope, 'meta')
  }

  /** Sorted set of the sessions of a scope by id. */
  sessions(scope: Scope): string {
    return this.#of(scope, 'sessions')
  }

  /** Sorted set of the sessions of a scope by the number of their last change. */
  stamps(scope: Scope): string {
    return this.#of(scope, 'stamps')
  }

  /** Sorted set of the sessions of a scope that expire, by time. */
  expiry(scope: Scope): string {
    return this.#of(scope, 'expiry')
  }

  /** Hash of the vectors of a scope, and sorted set of their names by position. */
  vectors(scope: Scope): readonly [vectors: string, positions: string] {
    return [this.#of(scope, 'vectors'), this.#of(scope, 'vector-positions')]
  }

  /** Hash of the rows of a scope, and sorted set of their names. */
  table(scope: Scope): readonly [rows: string, names: string] {
    return [this.#of(scope, 'rows'), this.#of(scope, 'row-names')]
  }

  row(key: Key): string {
    return this.#of(key.scope, `session:${key.id}`)
  }

  messages(key: Key): string {
    return this.#of(key.scope, `messages:${key.id}`)
  }

  derived(key: Key): string {
    return this.#of(key.scope, `derived:${key.id}`)
  }

  externalIds(key: Key): string {
    return this.#of(key.scope, `external-ids:${key.id}`)
  }

  records(key: Key): string {
    return this.#of(key.scope, `records:${key.id}`)
  }

  /** Keys of the script that reads a session, in its order. */
  forRead(key: Key): readonly string[] {
    return [this.meta(key.scope), this.#of(key.scope, 'epochs'), this.row(key), this.messages(key), this.derived(key)]
  }

  /** Keys of the scripts that write a session, in their order. */
  forWrite(key: Key): readonly string[] {
    const { scope, id } = key
    return [
      ...this.forRead(key),
      this.#of(scope, `changes:${id}`),
      this.externalIds(key),
      this.records(key),
      ...this.vectors(scope),
      this.sessions(scope),
      this.stamps(scope),
      this.expiry(scope),
    ]
  }

  #of(scope: Scope, name: string): string {
    return `{${this.#prefix}:${scope}}:${name}`
  }
}
