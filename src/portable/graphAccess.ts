import { graphKey, type Key } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { GraphArchive } from '../graph/types.ts'

/** Checks for the session that holds the graph of its scope. */
export const isGraphKey = (key: Key): boolean => key.id === graphKey(key.scope).id

/** Opens the graph archive of a store on first use, because most bundles contain no graph. */
export class GraphAccess implements AsyncDisposable {
  private readonly store: Store
  private graph: ReturnType<typeof openGraph> | undefined

  constructor(store: Store) {
    this.store = store
  }

  /** Returns undefined when the store does not support graphs. */
  async openArchive(): Promise<GraphArchive | undefined> {
    this.graph ??= openGraph(this.store)
    return (await this.graph)?.archive
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.graph)?.close()
  }
}

async function openGraph(store: Store) {
  const { openStoreGraph } = await import('../graph/graph.ts')
  return openStoreGraph(store)
}
