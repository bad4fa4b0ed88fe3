import { describe, expect } from 'vitest'
import type { Work } from '../../src/domain/work.ts'
import { type SnapshotReader, SnapshotReaders } from '../../src/graph/sqlite/snapshotReader.ts'
import { createLongReads } from '../../src/stores/sqlite/wipe/longReads.ts'
import { verifies } from '../requirements/verifies.ts'
import { useSlowClock } from '../support/slowClock.ts'

/** Creates readers without a file, and the largest number that was open at a time. */
function createReaders() {
  const counts = { open: 0, most: 0 }
  const noOperation = () => undefined
  const open = () => {
    counts.most = Math.max(counts.most, ++counts.open)
    const close = () => void counts.open--
    return { begin: noOperation, check: noOperation, end: noOperation, close } as unknown as SnapshotReader
  }
  return { readers: new SnapshotReaders(open, createLongReads()), counts }
}

function* readRows(): Work<string> {
  for (let page = 0; page < 5; page++) yield 1
  return 'rows'
}

function* readDamagedRow(): Work<string> {
  yield* readRows()
  throw new Error('damaged row')
}

describe('SnapshotReaders', () => {
  verifies('R-03', 'hundreds of long reads at a time › share few connections › all end', async () => {
    using _ = useSlowClock()
    const { readers, counts } = createReaders()
    const works = Array.from({ length: 300 }, (_, at) => (at % 3 === 0 ? readDamagedRow : readRows))
    const results = await Promise.allSettled(works.map((work) => readers.read(work)))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(200)
    expect(counts.most).toBeLessThan(12)
    readers.close()
    expect(counts.open).toBe(0)
  })
})
