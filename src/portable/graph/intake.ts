import type { Imported, OnExisting } from '../../domain/bundle.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { Store } from '../../domain/ports.ts'
import { emptyHead } from '../../domain/session.ts'
import type { Archive, GraphRow } from '../../graph/archive.ts'
import type { Linked } from '../read.ts'
import type { SessionRecord } from '../records.ts'
import { SessionWriter } from '../write.ts'
import type { GraphAccess } from './access.ts'
import { merge, namesIn } from './merge.ts'

/** A graph on its way into a store, and the line that announced it. */
type Coming = {
  readonly key: Key
  readonly session: SessionRecord
  readonly hash: string
  readonly rows: GraphRow[]
  readonly entries: Linked[]
}

export type Came = Pick<Imported, 'entries' | 'skipped' | 'replaced'> & { readonly isChanged: boolean }

/**
 * The graphs of a bundle on their way into a store. Each waits until the sessions of its scope are written: where one of
 * those takes the place of another, what was drawn from the other is forgotten.
 */
export class GraphIntake {
  private readonly store: Store
  private readonly graph: GraphAccess
  private readonly onExisting: OnExisting
  private coming: Coming | undefined

  constructor(store: Store, graph: GraphAccess, onExisting: OnExisting) {
    this.store = store
    this.graph = graph
    this.onExisting = onExisting
  }

  /** Announces a graph; what follows belongs to it. */
  begin(key: Key, session: SessionRecord, hash: string): this {
    this.coming = { key, session, hash, rows: [], entries: [] }
    return this
  }

  add(linked: Linked): void {
    if ('graph' in linked.record) this.coming?.rows.push(linked.record.graph)
    if ('entry' in linked.record) this.coming?.entries.push(linked)
  }

  /** Writes the graph that waits, unless it is of this scope, whose sessions are still coming. */
  async finish(current?: string): Promise<Came | undefined> {
    const { coming } = this
    if (coming === undefined || coming.key.scope === current) return undefined
    this.coming = undefined
    const archive = coming.rows.length === 0 ? undefined : await this.graph.archive()
    if (archive === undefined && coming.rows.length > 0)
      return { entries: 0, skipped: [formatKey(coming.key)], replaced: [], isChanged: false }
    const isNew = await this.make(coming)
    const { written, others } = archive === undefined ? nothing : await this.join(archive, coming)
    const [isReplaced, isChanged] = [this.onExisting === 'replace', isNew || written > 0]
    return {
      entries: isChanged ? coming.rows.length : 0,
      skipped: isReplaced ? [] : others,
      replaced: isReplaced ? others : [],
      isChanged,
    }
  }

  private async join(archive: Archive, { key, rows }: Coming): Promise<typeof nothing> {
    let others: readonly string[] = []
    const written = await archive.change(key.scope, (held) => {
      const joined = merge(held, rows)
      others = namesIn(key.scope, joined)
      if (others.length > 0 && this.onExisting === 'refuse') throw overtaken(key)
      return this.onExisting === 'replace'
        ? [...joined.writes, ...joined.others.map(({ write }) => write)]
        : joined.writes
    })
    return { written, others }
  }

  /** The session that a graph belongs to is made by the store, with the times it had; whether it was not there. */
  private async make({ key, session, hash, entries }: Coming): Promise<boolean> {
    const { revision, epoch } = await this.store.head(key, 0)
    if (revision > 0) return false
    const writer = new SessionWriter(this.store, emptyHead(key, epoch), session, hash)
    for (const entry of entries) await writer.add(entry)
    await writer.finish()
    return true
  }
}

const nothing: { readonly written: number; readonly others: readonly string[] } = { written: 0, others: [] }

const overtaken = ({ scope }: Key): MemoryError =>
  new MemoryError(
    'conflict',
    `The graph of ${scope} was written to during the import. What was written stays; import the same bundle again.`,
  )
