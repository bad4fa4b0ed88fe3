import fc from 'fast-check'
import { expect } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import type { Store } from '../../src/domain/ports.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { importBundle } from '../../src/portable/import.ts'
import { isCampaign } from '../context/campaign.ts'
import { openChunks, readAll } from './byteStreams.ts'
import { applyHistories, type History, historiesArbitrary } from './histories.ts'

type OpenStore = () => Promise<Store>

/** Checks that a bundle of one store, imported into the other and exported again, has the same bytes. */
export async function expectRoundTrip(
  openSource: OpenStore,
  openTarget: OpenStore,
  runs = isCampaign ? 60 : 20,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(historiesArbitrary, fc.integer({ min: 1, max: 3_000 }), async (histories, chunkSize) => {
      const [source, target] = await Promise.all([openSource(), openTarget()])
      try {
        await applyHistories(source, histories)
        const bundle = await readAll(exportBundle(source))
        await importBundle(target, openChunks(bundle, chunkSize))
        expect((await readAll(exportBundle(target))).equals(bundle)).toBe(true)
        expect(await readHeads(target, histories)).toEqual(await readHeads(source, histories))
        expect(await importBundle(target, openChunks(bundle, chunkSize))).toEqual({
          ...emptyResult,
          unchanged: histories.length,
        })
      } finally {
        await Promise.all([source.close(), target.close()])
      }
    }),
    { numRuns: runs },
  )
}

const emptyResult = { sessions: 0, messages: 0, entries: 0, unchanged: 0, skipped: [], replaced: [] }

/** Reads the heads without revision, epoch and entries, which differ between stores. */
async function readHeads(store: Store, histories: readonly History[]): Promise<unknown> {
  const heads = await Promise.all(histories.map(({ key }) => store.readHead(parseKey(key), 3)))
  return heads.map(({ revision: _, epoch: __, derived: ___, ...head }) => head)
}
