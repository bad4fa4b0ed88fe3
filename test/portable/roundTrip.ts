import fc from 'fast-check'
import { expect } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import type { Store } from '../../src/domain/ports.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { importBundle } from '../../src/portable/import.ts'
import { file, gathered } from './bytes.ts'
import { type History, memory, remember } from './memories.ts'

type Open = () => Promise<Store>

/** Proves for two kinds of stores that what one exports, the other imports and exports again, byte for byte. */
export async function proveRoundTrip(openOne: Open, openOther: Open, runs = 60): Promise<void> {
  await fc.assert(
    fc.asyncProperty(memory, fc.integer({ min: 1, max: 3_000 }), async (histories, piece) => {
      const [one, other] = await Promise.all([openOne(), openOther()])
      try {
        await remember(one, histories)
        const bundle = await gathered(exportBundle(one))
        await importBundle(other, file(bundle, piece))
        expect((await gathered(exportBundle(other))).equals(bundle)).toBe(true)
        expect(await known(other, histories)).toEqual(await known(one, histories))
        expect(await importBundle(other, file(bundle, piece))).toEqual({ ...nothing, unchanged: histories.length })
      } finally {
        await Promise.all([one.close(), other.close()])
      }
    }),
    { numRuns: runs },
  )
}

const nothing = { sessions: 0, messages: 0, entries: 0, unchanged: 0, skipped: [], replaced: [] }

/** What stores say of their sessions, beyond what a bundle spells out; revision, epoch and the order of entries are their own. */
async function known(store: Store, histories: readonly History[]): Promise<unknown> {
  const heads = await Promise.all(histories.map(({ key }) => store.head(parseKey(key), 3)))
  return heads.map(({ revision: _, epoch: __, derived: ___, ...head }) => head)
}
