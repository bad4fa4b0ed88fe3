import type { ExistingSessionPolicy, ImportResult } from '../domain/bundle.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import { createEmptyHead } from '../domain/session.ts'
import type { GraphArchive, GraphRow } from '../graph/types.ts'
import type { GraphAccess } from './graphAccess.ts'
import { formatConflicts, mergeGraphs } from './graphMerge.ts'
import type { VerifiedRecord } from './read.ts'
import type { SessionRecord } from './records.ts'
import { SessionWriter } from './sessionWriter.ts'

/** A graph of the bundle that is not written yet. */
type PendingGraph = {
  readonly key: Key
  readonly session: SessionRecord
  readonly hash: string
  readonly rows: GraphRow[]
  readonly entries: VerifiedRecord[]
}

export type GraphImportResult = Pick<ImportResult, 'entries' | 'skipped' | 'replaced'> & { readonly isChanged: boolean }

type MergeResult = { readonly written: number; readonly conflicts: readonly string[] }

/**
 * Imports the graphs of a bundle. A graph is written after the sessions of its scope, because replacing a session
 * erases the rows that were derived from it.
 */
export class GraphImporter {
  private readonly store: Store
  private readonly graph: GraphAccess
  private readonly onExisting: ExistingSessionPolicy
  private pending: PendingGraph | undefined

  constructor(store: Store, graph: GraphAccess, onExisting: ExistingSessionPolicy) {
    this.store = store
    this.graph = graph
    this.onExisting = onExisting
  }

  /** Starts a graph; the following records belong to it. */
  begin(key: Key, session: SessionRecord, hash: string): this {
    this.pending = { key, session, hash, rows: [], entries: [] }
    return this
  }

  add(verified: VerifiedRecord): void {
    if ('graph' in verified.record) this.pending?.rows.push(verified.record.graph)
    if ('entry' in verified.record) this.pending?.entries.push(verified)
  }

  /** Writes the pending graph, unless sessions of its scope are still to come. */
  async finish(currentScope?: string): Promise<GraphImportResult | undefined> {
    const { pending } = this
    if (pending === undefined || pending.key.scope === currentScope) return undefined
    this.pending = undefined
    const archive = pending.rows.length === 0 ? undefined : await this.graph.openArchive()
    if (archive === undefined && pending.rows.length > 0)
      return { entries: 0, skipped: [formatKey(pending.key)], replaced: [], isChanged: false }
    const isNew = await this.createSession(pending)
    const { written, conflicts } =
      archive === undefined ? { written: 0, conflicts: [] } : await this.mergeRows(archive, pending)
    const isReplacing = this.onExisting === 'replace'
    const isChanged = isNew || written > 0
    return {
      entries: isChanged ? pending.rows.length : 0,
      skipped: isReplacing ? [] : conflicts,
      replaced: isReplacing ? conflicts : [],
      isChanged,
    }
  }

  private async mergeRows(archive: GraphArchive, { key, rows }: PendingGraph): Promise<MergeResult> {
    let conflicts: readonly string[] = []
    const { onExisting } = this
    const written = await archive.update(key.scope, function* (stored) {
      const merged = yield* mergeGraphs(stored, rows)
      conflicts = formatConflicts(key.scope, merged)
      if (conflicts.length > 0 && onExisting === 'refuse') throw concurrentWriteError(key)
      return onExisting === 'replace'
        ? [...merged.writes, ...merged.conflicts.map(({ write }) => write)]
        : merged.writes
    })
    return { written, conflicts }
  }

  /** Creates the session of the graph with its original times; returns false if it exists. */
  private async createSession({ key, session, hash, entries }: PendingGraph): Promise<boolean> {
    const { revision, epoch } = await this.store.readHead(key, 0)
    if (revision > 0) return false
    const writer = new SessionWriter(this.store, createEmptyHead(key, epoch), session, hash)
    for (const entry of entries) await writer.add(entry)
    await writer.finish()
    return true
  }
}

const concurrentWriteError = ({ scope }: Key): MemoryError =>
  new MemoryError(
    'conflict',
    `The graph of ${scope} was written to during the import. What was written stays; import the same bundle again.`,
  )
