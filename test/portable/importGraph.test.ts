import { describe, expect } from 'vitest'
import type { GraphRow } from '../../src/graph/types.ts'
import { chainStart, createChainLine, type LineBody } from '../../src/portable/chain.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { importBundle } from '../../src/portable/import.ts'
import { bundleHeader } from '../../src/portable/records.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { openChunks, readAll } from './byteStreams.ts'

const emptyResult = { sessions: 0, messages: 0, entries: 0, unchanged: 0, skipped: [], replaced: [] }

const newFile = createTempPaths()
const entity = (id: string, city: string): GraphRow => ({
  entity: { id, type: 'person', properties: { city }, createdAt: 1_000, updatedAt: 1_000, origins: [] },
})
const node = (name: string): GraphRow => ({ node: { name, entityType: 'person', observations: [] } })

/** Writes a bundle with the graphs of scopes, each of which also has a session without messages. */
function createBundle(graphs: Readonly<Record<string, readonly GraphRow[]>>, touchedAt = 2_000): Buffer {
  const times = { startedAt: 1_000, touchedAt, expiresAt: 9_000_000 }
  const bodies: LineBody[] = [bundleHeader]
  let entries = 0
  for (const [scope, rows] of Object.entries(graphs)) {
    entries += rows.length
    bodies.push({ session: { key: `${scope}::graph`, ...times, last: 0, messages: 0, entries: rows.length } })
    bodies.push(...rows.map((graph) => ({ graph })))
    bodies.push({ session: { key: `${scope}:ann`, ...times, last: 0, messages: 0, entries: 0 } })
  }
  bodies.push({ end: { sessions: 2 * Object.keys(graphs).length, messages: 0, entries } })
  let hash = chainStart
  const lines = bodies.map((body) => {
    const next = createChainLine(hash, body)
    hash = next.hash
    return `${next.line}\n`
  })
  return Buffer.from(lines.join(''))
}

describe('importBundle with graphs', () => {
  verifies('X-12', 'into a store without them › writes them after the sessions of their scope', async () => {
    const store = sqliteStore(newFile())
    const bundle = createBundle({ acme: [entity('ann', 'Oslo'), node('Bob')], beta: [node('Eve')] })
    const progress: number[] = []
    const onProgress = ({ sessions }: { sessions: number }) => progress.push(sessions)
    expect(await importBundle(store, openChunks(bundle), { onProgress })).toEqual({
      ...emptyResult,
      sessions: 4,
      entries: 3,
    })
    expect(progress).toEqual([0, 0, 2, 2, 4])
    expect((await readAll(exportBundle(store))).equals(bundle)).toBe(true)
    expect(await importBundle(store, openChunks(bundle))).toEqual({ ...emptyResult, unchanged: 4 })
    await store.close()
  })

  verifies('X-12', 'into a store with other contents › refuses, skips or replaces them', async () => {
    const store = sqliteStore(newFile())
    const bergen = createBundle({ acme: [entity('ann', 'Bergen'), node('Bob')], beta: [node('Eve')] })
    const oslo = createBundle({ acme: [entity('ann', 'Oslo'), node('Bob')], beta: [node('Eve')] })
    await importBundle(store, openChunks(bergen))
    await expect(importBundle(store, openChunks(oslo))).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('other contents for the entity ann of acme. Nothing was imported.'),
    })
    const name = 'the entity ann of acme'
    expect(await importBundle(store, openChunks(oslo), { onExisting: 'skip' })).toEqual({
      ...emptyResult,
      unchanged: 3,
      skipped: [name],
    })
    expect((await readAll(exportBundle(store))).equals(bergen)).toBe(true)
    expect(await importBundle(store, openChunks(oslo), { onExisting: 'replace' })).toEqual({
      ...emptyResult,
      sessions: 1,
      entries: 2,
      unchanged: 3,
      replaced: [name],
    })
    expect((await readAll(exportBundle(store))).equals(oslo)).toBe(true)
    await store.close()
  })

  verifies('X-12', 'into a store that cannot hold graphs › skips them', async () => {
    const store = ramStore()
    const bundle = createBundle({ acme: [node('Bob')], beta: [node('Eve')] })
    const expected = { ...emptyResult, skipped: ['acme::graph', 'beta::graph'] }
    expect(await importBundle(store, openChunks(bundle))).toEqual({ ...expected, sessions: 2 })
    expect(await importBundle(store, openChunks(bundle))).toEqual({ ...expected, unchanged: 2 })
  })
})
