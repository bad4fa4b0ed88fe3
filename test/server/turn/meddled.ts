import type { Key } from '../../../src/domain/key.ts'
import type { Index, Store } from '../../../src/domain/ports.ts'
import type { Change } from '../../../src/domain/session.ts'

/** What happens just before something is written or erased; what is thrown there is the store's own failure. */
type Meddling = { readonly commit?: (change: Change) => Promise<void>; readonly erase?: (key: Key) => Promise<void> }

/**
 * A real store in whose way something comes at the worst moment.
 *
 * @example
 * meddled(ramStore(), { erase: () => Promise.reject(new Error('power cut')) })
 */
export function meddled(store: Store & Index, { commit, erase }: Meddling): Store & Index {
  const others: Partial<Store> = {
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
      const member: unknown = Reflect.get(others, name) ?? Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
