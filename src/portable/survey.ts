import type { Derived, Message } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key, parseStoredKey, type Scope } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { Head } from '../domain/session.ts'
import { canonical } from './canonical.ts'
import { type GraphAccess, isGraphKey } from './graph/access.ts'
import { GraphComparison } from './graph/compare.ts'
import type { Linked } from './read.ts'
import { type BundleRecord, type MessageRecord, recordOf, type SessionRecord } from './records.ts'
import type { Held } from './write.ts'

/**
 * What a store already has of a session: nothing of it (`empty`), the `beginning`, which an import that was interrupted
 * leaves behind and which is continued, all of it (`same`), or something else (`other`).
 */
export type Standing = { readonly held: Held; readonly has: 'empty' | 'beginning' | 'same' | 'other' }

/** A bundle that is whole, by its last hash, the sessions of it that the store knows, and the rows of graphs that it has with other contents. */
export type Survey = {
  readonly hash: string
  readonly known: ReadonlyMap<string, Standing>
  readonly rows: readonly string[]
}

/** Reads a bundle to its end, and so proves it, and compares it with the store; writes nothing. */
export async function survey(
  store: Store,
  records: AsyncIterable<Linked>,
  scope: Scope | undefined,
  graph: GraphAccess,
): Promise<Survey> {
  const known = new Map<string, Standing>()
  const graphs = new GraphComparison(graph)
  let comparison: Comparison | undefined
  let from: Scope | undefined
  let hash = ''
  for await (const linked of records) {
    hash = linked.hash
    if ('session' in linked.record || 'end' in linked.record) {
      if (comparison !== undefined) known.set(formatKey(comparison.head.key), comparison.standing())
      comparison = undefined
      await graphs.finish()
    }
    if ('session' in linked.record) {
      from = onlyScope(from, linked.record.session, scope)
      const key = keyIn(scope, linked.record.session)
      const head = await store.head(key, 0)
      if (head.revision === 0) continue
      if (isGraphKey(key)) graphs.begin(key)
      else comparison = new Comparison(store, head, linked.record.session)
    } else if ('graph' in linked.record) graphs.take(linked.record.graph)
    else await comparison?.take(linked.record)
  }
  return { hash, known, rows: graphs.others }
}

/** The key of a session in the scope it is imported into. */
export function keyIn(scope: Scope | undefined, session: SessionRecord): Key {
  const key = parseStoredKey(session.key)
  if (scope === undefined) return key
  return parseStoredKey(key.id === '' ? scope : `${scope}:${key.id}`)
}

/** Two scopes renamed to one would run into each other. */
function onlyScope(before: Scope | undefined, session: SessionRecord, renamed: Scope | undefined): Scope {
  const { scope } = parseStoredKey(session.key)
  if (renamed === undefined || before === undefined || before === scope) return scope
  throw new MemoryError(
    'bad-option',
    `The bundle holds the scopes ${before} and ${scope}; only a bundle of one scope can be imported into another. Export each scope by itself, or leave scope out.`,
    { param: 'scope' },
  )
}

/** A session of the store beside the same session of the bundle, read a page at a time. */
class Comparison {
  readonly head: Head
  private readonly store: Store
  private readonly session: SessionRecord
  /** What the bundle has not shown yet. */
  private readonly derived: Map<string, Derived>
  private page: Message[] = []
  private matched = 0
  private differs: boolean

  constructor(store: Store, head: Head, session: SessionRecord) {
    this.store = store
    this.head = head
    this.session = session
    this.derived = new Map(head.derived.map((entry) => [entry.id, entry]))
    this.differs = head.startedAt !== session.startedAt || head.last > session.last
  }

  async take(record: BundleRecord): Promise<void> {
    if (this.differs) return
    if ('message' in record) await this.message(record.message)
    if ('entry' in record) {
      const held = this.derived.get(record.entry.id)
      this.differs = held !== undefined && canonical(held) !== canonical(record.entry)
      this.derived.delete(record.entry.id)
    }
  }

  standing(): Standing {
    const { key, revision, epoch, touchedAt, expiresAt, last } = this.head
    return { held: { key, revision, epoch, touchedAt, expiresAt, last }, has: this.outcome() }
  }

  private outcome(): Standing['has'] {
    const { head, session } = this
    if (head.last === 0 && head.derived.length === 0) return isSame(head, session) ? 'same' : 'empty'
    if (this.differs || this.matched < head.messages || this.derived.size > 0) return 'other'
    return isSame(head, session) ? 'same' : 'beginning'
  }

  /** Messages match from the first one on; those that the store does not have yet stand behind all it ever had. */
  private async message(message: MessageRecord): Promise<void> {
    if (this.matched === this.head.messages) {
      this.differs = message.sequence <= this.head.last
      return
    }
    if (this.page.length === 0)
      this.page = [...(await this.store.page(this.head.key, { after: message.sequence - 1, limit: 500 }))]
    const held = this.page.shift()
    this.differs = held === undefined || canonical(recordOf(held)) !== canonical(message)
    this.matched++
  }
}

/** Whether nothing would change, given that all the store has is in the bundle too. */
function isSame(head: Head, session: SessionRecord): boolean {
  const { startedAt, touchedAt, expiresAt, last, messages, derived } = head
  return (
    canonical({ startedAt, touchedAt, expiresAt, last, messages, entries: derived.length }) ===
    canonical({ ...session, key: undefined })
  )
}
