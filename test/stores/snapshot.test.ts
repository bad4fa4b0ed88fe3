import { crc32, zstdCompressSync } from 'node:zlib'
import { describe, expect, it, vi } from 'vitest'
import { runSync } from '../../src/domain/work.ts'
import { LexicalIndex } from '../../src/search/lexicalIndex.ts'
import type { ScopeIndexSnapshot } from '../../src/search/scopeIndex.ts'
import { compressSnapshot, decodeSnapshot, encodeSnapshotInSteps } from '../../src/stores/sqlite/snapshot.ts'
import { verifies } from '../requirements/verifies.ts'

/** Snapshot of an index with columns of 8 MB. */
function createSnapshot(): ScopeIndexSnapshot {
  const messageIndex = runSync(new LexicalIndex().snapshotInSteps())
  const times = new Float64Array(1_000_000).map((_, at) => at)
  return { messageIndex: { ...messageIndex, times } } as unknown as ScopeIndexSnapshot
}

describe('a snapshot of a search index', () => {
  verifies('R-03', 'of many megabytes › is checked and copied in steps, and restored unchanged', async () => {
    const snapshot = createSnapshot()
    const pause = vi.fn(() => undefined)
    const encoded = runSync(encodeSnapshotInSteps(snapshot))
    expect(await decodeSnapshot(compressSnapshot(encoded), pause)).toEqual(snapshot)
    expect(pause.mock.calls.length).toBeGreaterThanOrEqual(2 * Math.floor(encoded.length / 2_000_000))
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
    const former = Buffer.from(
      `\0\0\0\0\0\0\0\0${JSON.stringify({ stamp: 1, lineage: '1', sessions: [], names: [''], terms: [], lengths: Array(12).fill(0) })}`,
    )
    former.writeUInt32LE(former.length - 8)
    former.writeUInt32LE(crc32(former), 4)
    expect(await decodeSnapshot(zstdCompressSync(former), () => undefined)).toBeUndefined()
  })
})
