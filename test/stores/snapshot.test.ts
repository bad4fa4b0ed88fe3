import { crc32, zstdCompressSync } from 'node:zlib'
import { describe, expect, it, vi } from 'vitest'
import type { Knowledge } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { runSync, toSlices } from '../../src/domain/work.ts'
import { ScopeIndex, type ScopeIndexSnapshot } from '../../src/search/scopeIndex.ts'
import { compressSnapshot, decodeSnapshot, encodeSnapshotInSteps } from '../../src/stores/sqlite/snapshot.ts'
import { verifies } from '../requirements/verifies.ts'

/** Snapshot of an index with columns of 8 MB. */
function createSnapshot(): ScopeIndexSnapshot {
  const snapshot = runSync(new ScopeIndex().snapshotInSteps())
  const times = new Float64Array(1_000_000).map((_, at) => at)
  return { ...snapshot, messageIndex: { ...snapshot.messageIndex, times } }
}

const entryCount = 10_000

/** Index of two sessions without messages, of which the second has all derived entries. */
function createDerivedIndex(): ScopeIndex {
  const index = new ScopeIndex()
  const shared = { kind: 'knowledge', category: 'domain', confidence: 1, usedAt: 0, sources: [] } as const
  const entries: Knowledge[] = Array.from({ length: entryCount }, (_, at) => ({
    ...{ ...shared, id: `k${at}`, at, key: `customer ${at}` },
    value: `“Ünal”\nis\u2028waiting for a reply, \ud83d, about order ${at}.`,
  }))
  index.setDerived(parseKey('acme:ann'), [])
  index.setDerived(parseKey('acme:bob'), entries)
  return index
}

describe('a snapshot of a search index', () => {
  verifies('R-03', 'of many megabytes › is checked and copied in steps, and restored unchanged', async () => {
    const snapshot = createSnapshot()
    const pause = vi.fn(() => undefined)
    const encoded = runSync(encodeSnapshotInSteps(snapshot))
    expect(await decodeSnapshot(compressSnapshot(encoded), pause)).toEqual(snapshot)
    expect(pause.mock.calls.length).toBeGreaterThanOrEqual(2 * Math.floor(encoded.length / 2_000_000))
  })

  verifies('R-03', 'with many derived entries › is copied, decoded and restored in steps', async () => {
    const index = createDerivedIndex()
    const snapshot = runSync(index.snapshotInSteps())
    const slices = toSlices(encodeSnapshotInSteps(snapshot))
    let encodedSlices = 0
    let encoded = slices.next()
    for (; encoded.done !== true; encoded = slices.next()) encodedSlices++
    const pause = vi.fn(() => undefined)
    const decoded = await decodeSnapshot(compressSnapshot(encoded.value), pause)
    expect(decoded).toEqual(snapshot)
    const restored = new ScopeIndex()
    const restoredSlices = [...restored.restore(decoded as ScopeIndexSnapshot)].length
    for (const count of [encodedSlices, pause.mock.calls.length, restoredSlices])
      expect(count).toBeGreaterThan(entryCount / 100)
    const query = { text: 'order 7', limit: 9 }
    expect(restored.search(query)).toEqual(index.search(query))
  })

  it('that is damaged, cut or missing › is not used', async () => {
    const encoded = runSync(encodeSnapshotInSteps(createSnapshot()))
    const compressed = compressSnapshot(encoded)
    const changed = Uint8Array.from(encoded)
    changed[1_000] = 255
    const cases = [undefined, new Uint8Array(), compressed.subarray(0, -9), encoded, zstdCompressSync(changed)]
    for (const bytes of cases) expect(await decodeSnapshot(bytes, () => undefined)).toBeUndefined()
  })

  it('read by a former version › is damaged to it, so that it builds the index again', () => {
    const encoded = Buffer.from(runSync(encodeSnapshotInSteps(createSnapshot())))
    const checksum = encoded.readUInt32LE(4)
    // Former versions accept any header under a checksum without a seed.
    expect(checksum).not.toBe(crc32(encoded.fill(0, 4, 8)))
  })

  it('written by a former version › is not used', async () => {
    const header = { stamp: 1, lineage: '1', sessions: [], names: [''], terms: [], lengths: Array(12).fill(0) }
    const former = Buffer.from('\0'.repeat(8) + JSON.stringify(header))
    former.writeUInt32LE(former.length - 8)
    former.writeUInt32LE(crc32(former), 4)
    expect(await decodeSnapshot(zstdCompressSync(former), () => undefined)).toBeUndefined()
  })
})
