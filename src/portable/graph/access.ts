import type { Key } from '../../domain/key.ts'
import type { Store } from '../../domain/ports.ts'
import type { Archive } from '../../graph/archive.ts'
import { graphKey } from '../../stores/sqlite/graph.ts'

/** Whether a session is the one that the graph of its scope belongs to. */
export const isGraphKey = (key: Key): boolean => key.id === graphKey(key.scope).id

/** The graphs of a store, opened when the first of them is needed: most bundles hold none. */
export class GraphAccess implements AsyncDisposable {
  private readonly store: Store
  private opened: ReturnType<typeof graphOf> | undefined

  constructor(store: Store) {
    this.store = store
  }

  /** Undefined where a store has no place for graphs. */
  async archive(): Promise<Archive | undefined> {
    this.opened ??= graphOf(this.store)
    return (await this.opened)?.archive
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.opened)?.close()
  }
}

async function graphOf(store: Store) {
  const { graphBeside } = await import('../../graph/beside.ts')
  return graphBeside(store)
}
