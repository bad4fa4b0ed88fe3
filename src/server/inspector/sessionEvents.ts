import type { Millis } from '../../domain/entry.ts'
import { formatKey, isInternalKey, type Key, type Scope } from '../../domain/key.ts'
import type { StoreChange } from '../../stores/changeListener.ts'

/**
 * A change that clients are told about: of a session, of its receipts, of knowledge or files of a tenant, or the end
 * of a session. Keys and times, never text.
 */
export type SessionEvent = {
  readonly type: 'session' | 'receipt' | 'ended' | 'scope'
  readonly key: string
  readonly at: Millis
}

type Subscriber = { readonly isVisible: (scope: Scope) => boolean; readonly send: (event: SessionEvent) => void }

/** Distributes changes of the stores to the open event streams. */
export class SessionEvents {
  private readonly subscribers = new Set<Subscriber>()
  private readonly closing = new AbortController()

  /** Aborts when the server shuts down. */
  get closed(): AbortSignal {
    return this.closing.signal
  }

  /** Adds a subscriber, which receives the events of the scopes it may see; returns a function that removes it. */
  subscribe(subscriber: Subscriber): () => void {
    this.subscribers.add(subscriber)
    return () => void this.subscribers.delete(subscriber)
  }

  publish({ kind, key }: StoreChange, at: Millis): void {
    if (this.subscribers.size === 0) return
    const event = toEvent(kind, key, at)
    for (const { isVisible, send } of this.subscribers) if (isVisible(key.scope)) send(event)
  }

  close(): void {
    this.closing.abort()
  }
}

/** Internal keys belong to the memory of their tenant. */
function toEvent(kind: StoreChange['kind'], key: Key, at: Millis): SessionEvent {
  if (key.id === '' || isInternalKey(key)) return { type: kind === 'record' ? 'receipt' : 'scope', key: key.scope, at }
  const type = kind === 'record' ? 'receipt' : kind === 'erased' ? 'ended' : 'session'
  return { type, key: formatKey(key), at }
}
