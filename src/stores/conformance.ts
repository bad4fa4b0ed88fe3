import type { Index, Store } from '../domain/ports.ts'
import { forgetting } from './conformance/forgetting.ts'
import { searching } from './conformance/searching.ts'
import { writing } from './conformance/writing.ts'

/** One promise of the `Store` and `Index` ports; `run` throws when the store breaks it. */
export type StorePromise = { readonly name: string; readonly run: () => Promise<void> }

/**
 * Everything a store promises, as checks for any test runner. Each check opens a store of its own, empty.
 *
 * @example
 * for (const { name, run } of storeConformance(() => openMyStore())) it(name, run)
 */
export function storeConformance(open: () => Promise<Store & Index>): readonly StorePromise[] {
  return Object.entries({ ...writing, ...forgetting, ...searching }).map(([name, check]) => ({
    name,
    run: async () => {
      const store = await open()
      try {
        await check(store)
      } finally {
        await store.close()
      }
    },
  }))
}
