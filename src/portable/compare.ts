import type { DerivedEntry, Message } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key, parseStoredKey, type Scope } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { SessionHead } from '../domain/session.ts'
import { runInSlices } from '../domain/work.ts'
import type { GraphRow } from '../graph/types.ts'
import { yieldWhenLong } from '../stores/yieldToEventLoop.ts'
import { formatMask, unmaskSecrets } from '../text/secrets.ts'
import { toCanonicalJson, toCanonicalJsonInSteps } from './canonical.ts'
import { type GraphAccess, isGraphKey } from './graphAccess.ts'
import { formatConflicts, mergeGraphs } from './graphMerge.ts'
import type { VerifiedRecord } from './read.ts'
import { type BundleRecord, type MessageRecord, type SessionRecord, toMessageRecord } from './records.ts'
import { formatRow, RowCollector } from './rowRecords.ts'
import type { StoredState } from './sessionWriter.ts'

/**
 * The stored copy of a session compared with the bundle: `empty`, the `beginning` (left by an interrupted import, which
 * is continued), the `same`, or `other` contents.
 */
export type SessionComparison = {
  readonly stored: StoredState
  readonly status: 'empty' | 'beginning' | 'same' | 'other'
}

export type BundleComparison = {
  /** The hash of the last line. */
  readonly hash: string
  /** Sessions that exist in the store, by their key there. */
  readonly sessions: ReadonlyMap<string, SessionComparison>
  /** Names of graph rows and table rows that the store has with different contents. */
  readonly rowConflicts: readonly string[]
}

/** Reads a bundle to its end, which verifies it, and compares it with the store. Writes nothing. */
export async function compareBundle(
  store: Store,
  records: AsyncIterable<VerifiedRecord>,
  scope: Scope | undefined,
  graph: GraphAccess,
): Promise<BundleComparison> {
  const sessions = new Map<string, SessionComparison>()
  const graphs = new GraphComparer(graph)
  const rowConflicts: string[] = []
  const rows = new RowCollector(store, async (target, compared) => {
    for (const { record, stored, isSame } of compared)
      if (stored !== undefined && !isSame) rowConflicts.push(formatRow(target, record))
  })
  let comparer: SessionComparer | undefined
  let bundleScope: Scope | undefined
  let lastHash = ''
  for await (const { record, hash } of records) {
    lastHash = hash
    if (endsSession(record)) {
      if (comparer !== undefined) sessions.set(formatKey(comparer.head.key), comparer.result())
      comparer = undefined
      await graphs.finish()
    }
    if ('session' in record) {
      bundleScope = requireOneScope(bundleScope, parseStoredKey(record.session.key).scope, scope)
      const key = targetKey(scope, record.session)
      const head = await store.readHead(key, 0)
      if (head.revision === 0) continue
      if (isGraphKey(key)) graphs.begin(key)
      else comparer = new SessionComparer(store, head, record.session)
    } else if ('graph' in record) graphs.add(record.graph)
    else if ('row' in record) {
      bundleScope = requireOneScope(bundleScope, record.row.scope, scope)
      await rows.add(scope ?? record.row.scope, record.row)
    } else await comparer?.add(record)
  }
  await rows.flush()
  return { hash: lastHash, sessions, rowConflicts: [...graphs.conflicts, ...rowConflicts] }
}

/** True for a record that follows the last record of a session. */
export const endsSession = (record: BundleRecord): boolean => 'session' in record || 'row' in record || 'end' in record

/** Returns the key of a session in the scope it is imported into. */
export function targetKey(scope: Scope | undefined, session: SessionRecord): Key {
  const key = parseStoredKey(session.key)
  if (scope === undefined) return key
  return parseStoredKey(key.id === '' ? scope : `${scope}:${key.id}`)
}

/** Throws when several scopes would be renamed to one, because their sessions could collide. */
function requireOneScope(previous: Scope | undefined, scope: Scope, target: Scope | undefined): Scope {
  if (target === undefined || previous === undefined || previous === scope) return scope
  throw new MemoryError(
    'bad-option',
    `The bundle holds the scopes ${previous} and ${scope}; only a bundle of one scope can be imported into another. Export each scope by itself, or leave scope out.`,
    { param: 'scope' },
  )
}

const pageSize = 500

/** Compares a stored session with the records of the bundle; reads messages page by page. */
class SessionComparer {
  readonly head: SessionHead
  private readonly store: Store
  private readonly session: SessionRecord
  /** Stored entries that the bundle has not contained so far. */
  private readonly unmatchedEntries: Map<string, DerivedEntry>
  private page: Message[] = []
  private matchedMessages = 0
  private differs: boolean

  constructor(store: Store, head: SessionHead, session: SessionRecord) {
    this.store = store
    this.head = head
    this.session = session
    this.unmatchedEntries = new Map(head.derived.map((entry) => [entry.id, entry]))
    this.differs = head.startedAt !== session.startedAt || head.lastSequence > session.last
  }

  async add(record: BundleRecord): Promise<void> {
    if (this.differs) return
    if ('message' in record) await this.addMessage(record.message)
    if ('entry' in record) {
      const stored = this.unmatchedEntries.get(record.entry.id)
      this.differs = stored !== undefined && !(await isSame(stored, record.entry))
      this.unmatchedEntries.delete(record.entry.id)
    }
  }

  result(): SessionComparison {
    const { key, revision, epoch, touchedAt, expiresAt, lastSequence } = this.head
    return { stored: { key, revision, epoch, touchedAt, expiresAt, lastSequence }, status: this.status() }
  }

  private status(): SessionComparison['status'] {
    const { head, session } = this
    if (head.lastSequence === 0 && head.derived.length === 0) return hasSameMetadata(head, session) ? 'same' : 'empty'
    if (this.differs || this.matchedMessages < head.messages || this.unmatchedEntries.size > 0) return 'other'
    return hasSameMetadata(head, session) ? 'same' : 'beginning'
  }

  /** Messages must match from the first one on; additional ones must follow all that the store ever had. */
  private async addMessage(message: MessageRecord): Promise<void> {
    if (this.matchedMessages === this.head.messages) {
      this.differs = message.sequence <= this.head.lastSequence
      return
    }
    if (this.page.length === 0)
      this.page = [...(await this.store.readMessages(this.head.key, { after: message.sequence - 1, limit: pageSize }))]
    const stored = this.page.shift()
    this.differs = stored === undefined || !(await isSame(toMessageRecord(stored), message))
    this.matchedMessages++
  }
}

/** Replaces all masks of a text by one: another process has given the same secrets other numbers. */
const normalizeMasks = (text: string): string => unmaskSecrets(text, () => formatMask(0))

/** Compares by canonical JSON, in which all masks are equal. */
async function isSame(stored: unknown, record: unknown): Promise<boolean> {
  const storedJson = await runInSlices(toCanonicalJsonInSteps(stored), yieldWhenLong)
  const json = await runInSlices(toCanonicalJsonInSteps(record), yieldWhenLong)
  return normalizeMasks(storedJson) === normalizeMasks(json)
}

function hasSameMetadata(head: SessionHead, session: SessionRecord): boolean {
  const { startedAt, touchedAt, expiresAt, lastSequence, messages, derived } = head
  return (
    toCanonicalJson({ startedAt, touchedAt, expiresAt, last: lastSequence, messages, entries: derived.length }) ===
    toCanonicalJson({ ...session, key: undefined })
  )
}

/** Compares the graphs of a bundle with those of a store, one after the other. */
class GraphComparer {
  readonly conflicts: string[] = []
  private readonly graph: GraphAccess
  private current: { readonly key: Key; readonly rows: GraphRow[] } | undefined

  constructor(graph: GraphAccess) {
    this.graph = graph
  }

  /** Starts a graph that exists in the store. */
  begin(key: Key): void {
    this.current = { key, rows: [] }
  }

  add(row: GraphRow): void {
    this.current?.rows.push(row)
  }

  async finish(): Promise<void> {
    const { current } = this
    this.current = undefined
    if (current === undefined || current.rows.length === 0) return
    const stored = (await (await this.graph.openArchive())?.readAll(current.key.scope)) ?? []
    const merged = await runInSlices(mergeGraphs(stored, current.rows), yieldWhenLong)
    for (const conflict of formatConflicts(current.key.scope, merged)) this.conflicts.push(conflict)
  }
}
