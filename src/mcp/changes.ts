import type { Scope } from '../domain/key.ts'

/** Something that can be read has changed. */
export type Change = { readonly workspace: Scope; readonly uri: string }

/** Tells whoever listens in this process what has changed. */
export class Changes {
  private readonly listeners = new Set<(change: Change) => void>()

  tell(workspace: Scope, uri: string): void {
    for (const listener of this.listeners) listener({ workspace, uri })
  }

  /** Listens until what is returned is called. */
  listen(listener: (change: Change) => void): () => void {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }
}
