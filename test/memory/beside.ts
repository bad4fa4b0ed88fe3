import type { Knowledge } from '../../src/domain/entry.ts'
import { filesKey, formatKey, type Key, personKey } from '../../src/domain/key.ts'
import type { Index, Store } from '../../src/domain/ports.ts'
import { never } from '../../src/domain/session.ts'
import { internalsOf, Memory } from '../../src/memory.ts'
import { whenIn } from '../../src/text/dates.ts'

/** Puts passages of a file where a tenant's files are kept. */
export async function upload(store: Store, scope: string, name: string, ...chunks: readonly string[]): Promise<void> {
  const key = filesKey(scope)
  const { epoch } = await store.head(key, 0)
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
  await store.commit({ key, at: 1, epoch, append, put: [], drop: [], expiresAt: never })
}

/** Puts something that is known of a person where it is kept. */
export async function learn(store: Store, scope: string, person: string, known: string, value: string): Promise<void> {
  const key = personKey(scope, person)
  const { epoch, derived } = await store.head(key, 0)
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
  await store.commit({ key, at: 1, epoch, append: [], put: [entry], drop: [], expiresAt: never })
}

/** The same memory where questions may name a time. */
export function withDates(memory: Memory): Memory {
  const dated = { ...internalsOf(memory), dates: whenIn }
  return new Memory(dated)
}

/** A store that tells what it is asked for. */
export function watched(store: Store & Index): { readonly store: Store & Index; readonly asked: string[] } {
  const asked: string[] = []
  const told = (name: string, where: Partial<Key> & { readonly scope: string }): void => {
    asked.push(`${name} ${where.id === undefined ? where.scope : formatKey(where as Key)}`)
  }
  const watching = new Proxy(store, {
    get: (from, name) => {
      const method: unknown = Reflect.get(from, name)
      if (typeof method !== 'function') return method
      return (...given: readonly [Key, ...unknown[]]) => {
        if (name === 'head' || name === 'search') told(name, given[0])
        return method.apply(from, given)
      }
    },
  })
  return { store: watching, asked }
}
