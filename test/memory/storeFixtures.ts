import type { Knowledge } from '../../src/domain/entry.ts'
import { filesKey, formatKey, type Key, personKey } from '../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../src/domain/ports.ts'
import { noExpiry, type SessionChange } from '../../src/domain/session.ts'
import { internalsOf, Memory } from '../../src/memory.ts'
import { findPeriod } from '../../src/text/dates.ts'

/** Stores passages of a file under the tenant's file key. */
export async function storeFileChunks(
  store: Store,
  scope: string,
  name: string,
  ...chunks: readonly string[]
): Promise<void> {
  const key = filesKey(scope)
  const { epoch } = await store.readHead(key, 0)
  const append = chunks.map((content) => ({
    at: 1,
    role: 'tool' as const,
    name,
    content,
    tokens: 1,
    lineTokens: 1,
    tokenizer: 'none',
    weight: 1,
  }))
  await store.commit({ key, at: 1, epoch, append, put: [], drop: [], expiresAt: noExpiry })
}

/** Stores knowledge about a person. */
export async function storePersonKnowledge(
  store: Store,
  scope: string,
  person: string,
  known: string,
  value: string,
): Promise<void> {
  const key = personKey(scope, person)
  const { epoch, derived } = await store.readHead(key, 0)
  const id = `k${derived.length + 1}`
  const entry: Knowledge = {
    kind: 'knowledge',
    id,
    at: 1,
    category: 'user_preference',
    key: known,
    value,
    confidence: 0.9,
    usedAt: 1,
    sources: [],
  }
  await store.commit({ key, at: 1, epoch, append: [], put: [entry], drop: [], expiresAt: noExpiry })
}

/** Returns the memory with date phrases in queries enabled. */
export function enableDatePhrases(memory: Memory): Memory {
  const dated = { ...internalsOf(memory), parseDates: findPeriod }
  return new Memory(dated)
}

/** Wraps a store and records its reads. */
export function recordReads(store: Store & SearchIndex): {
  readonly store: Store & SearchIndex
  readonly reads: string[]
} {
  const reads: string[] = []
  const record = (name: string, where: Partial<Key> & { readonly scope: string }): void => {
    reads.push(`${name} ${where.id === undefined ? where.scope : formatKey(where as Key)}`)
  }
  const proxy = new Proxy(store, {
    get: (from, name) => {
      const method: unknown = Reflect.get(from, name)
      if (typeof method !== 'function') return method
      return (...given: readonly [Key, ...unknown[]]) => {
        if (name === 'readHead' || name === 'search') record(name, given[0])
        return method.apply(from, given)
      }
    },
  })
  return { store: proxy, reads }
}

/** Hooks that run before a write or an erase; an error thrown there is reported as the store's own. */
type StoreHooks = {
  readonly commit?: (change: SessionChange) => Promise<void>
  readonly erase?: (key: Key) => Promise<void>
}

/**
 * Wraps a store with hooks, to inject failures and concurrent changes.
 *
 * @example
 * interceptStore(ramStore(), { erase: () => Promise.reject(new Error('power cut')) })
 */
export function interceptStore(store: Store & SearchIndex, { commit, erase }: StoreHooks): Store & SearchIndex {
  const overrides: Partial<Store> = {
    commit: async (change) => {
      await commit?.(change)
      return store.commit(change)
    },
    erase: async (key, only) => {
      await erase?.(key)
      return store.erase(key, only)
    },
  }
  return new Proxy(store, {
    get: (target, name) => {
      const member: unknown = Reflect.get(overrides, name) ?? Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
