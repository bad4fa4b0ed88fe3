import { zstdCompressSync } from 'node:zlib'
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
})
