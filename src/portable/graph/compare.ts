import type { Key } from '../../domain/key.ts'
import type { GraphRow } from '../../graph/archive.ts'
import type { GraphAccess } from './access.ts'
import { merge, namesIn } from './merge.ts'

/** The graphs of a bundle beside those that a store has, one after the other; writes nothing. */
export class GraphComparison {
  /** The names of rows that the store has with other contents. */
  readonly others: string[] = []
  private readonly graph: GraphAccess
  private coming: { readonly key: Key; readonly rows: GraphRow[] } | undefined

  constructor(graph: GraphAccess) {
    this.graph = graph
  }

  /** Announces a graph that the store has too; its rows follow. */
  begin(key: Key): void {
    this.coming = { key, rows: [] }
  }

  take(row: GraphRow): void {
    this.coming?.rows.push(row)
  }

  /** To be called when a graph has come whole. */
  async finish(): Promise<void> {
    const { coming } = this
    this.coming = undefined
    if (coming === undefined || coming.rows.length === 0) return
    const held = (await (await this.graph.archive())?.rows(coming.key.scope)) ?? []
    this.others.push(...namesIn(coming.key.scope, merge(held, coming.rows)))
  }
}
