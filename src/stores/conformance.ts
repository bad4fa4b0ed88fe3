import type { SearchIndex, Store } from '../domain/ports.ts'
import { externalIdChecks, replacementChecks } from './conformance/messageIds.ts'
import { metadataChecks } from './conformance/metadata.ts'
import { recordChecks } from './conformance/records.ts'
import { withRelativeEpochs } from './conformance/relativeEpochs.ts'
import { searchChecks } from './conformance/search.ts'
import { erasureChecks, sessionChecks } from './conformance/sessions.ts'
import { payloadChecks, slotChecks } from './conformance/slots.ts'
import { tableChecks } from './conformance/table.ts'

/** One check of the `Store` and `Index` contracts; `run` throws if the store violates it. */
export type ConformanceCheck = { readonly name: string; readonly run: () => Promise<void> }

/**
 * Returns checks of the whole store contract for any test runner. Each check calls `open` for an empty store and closes
 * it afterwards.
 *
 * @example
 * for (const { name, run } of storeConformance(() => openMyStore())) it(name, run)
 */
export function storeConformance(open: () => Promise<Store & SearchIndex>): readonly ConformanceCheck[] {
  const checks = {
    ...sessionChecks,
    ...erasureChecks,
    ...payloadChecks,
    ...slotChecks,
    ...externalIdChecks,
    ...replacementChecks,
    ...metadataChecks,
    ...tableChecks,
    ...recordChecks,
    ...searchChecks,
  }
  return Object.entries(checks).map(([name, check]) => ({
    name,
    run: async () => {
      const store = await open()
      try {
        await check(withRelativeEpochs(store))
      } finally {
        await store.close()
      }
    },
  }))
}
