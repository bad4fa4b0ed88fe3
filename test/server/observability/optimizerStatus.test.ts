import { afterEach, describe, expect, it, vi } from 'vitest'
import type { SearchIndex, Store } from '../../../src/domain/ports.ts'
import { type Memory, openMemory } from '../../../src/index.ts'
import { MemoryRegistry } from '../../../src/server/memoryRegistry.ts'
import { OptimizerStatusReader } from '../../../src/server/observability/optimizerStatus.ts'
import { ramStore } from '../../../src/stores/ram.ts'

type Reads = { count: number; atOnce: number; failsAt: number | undefined }

/** A store in RAM that takes `cost` milliseconds of the clock for every session that is read. */
function openSlowStore(cost: number): { readonly store: Store & SearchIndex; readonly reads: Reads } {
  const inner = ramStore()
  const reads: Reads = { count: 0, atOnce: 0, failsAt: undefined }
  let running = 0
  let spent = 0
  vi.spyOn(performance, 'now').mockImplementation(() => spent)
  const readHead: Store['readHead'] = async (...args) => {
    if (++reads.count === reads.failsAt) throw new Error('The disk is gone.')
    reads.atOnce = Math.max(reads.atOnce, ++running)
    spent += cost
    const head = await inner.readHead(...args)
    running--
    return head
  }
  return { store: { ...inner, readHead }, reads }
}

const sessions = 40

async function openReader(
  store: Store & SearchIndex,
): Promise<AsyncDisposable & { reader: OptimizerStatusReader; memory: Memory }> {
  const memory = await openMemory({ profile: 'agent', store })
  for (let session = 0; session < sessions; session++)
    await memory.append(`acme:s${session}`, [{ role: 'user', content: 'Hello' }])
  await memory.upkeep.whenIdle()
  return {
    memory,
    reader: new OptimizerStatusReader(MemoryRegistry.resolve(memory)),
    [Symbol.asyncDispose]: () => memory.close(),
  }
}

describe('OptimizerStatusReader', () => {
  afterEach(() => void vi.restoreAllMocks())

  it('[R-03] of many sessions › reads one session at a time', async () => {
    const { store, reads } = openSlowStore(0)
    await using opened = await openReader(store)
    reads.atOnce = 0
    await opened.reader.read()
    expect(reads.atOnce).toBe(1)
  })

  it('[R-03] asked often while reading takes long › reads all sessions for a twentieth of the time', async () => {
    const { store, reads } = openSlowStore(10)
    await using opened = await openReader(store)
    reads.count = 0
    const status = await opened.reader.read()
    for (let request = 0; request < 20; request++) expect(await opened.reader.read()).toBe(status)
    expect(reads.count).toBe(sessions)
    // Reading one session takes time of its own, so that what all of them took has passed twenty times.
    for (let request = 0; request < 20 * sessions; request++) await opened.reader.read('acme:s1')
    await opened.reader.read()
    expect(reads.count).toBe(2 * sessions + 20 * sessions)
  })

  it('asked again after a quick reading › reads again', async () => {
    const { store, reads } = openSlowStore(1)
    await using opened = await openReader(store)
    reads.count = 0
    await opened.reader.read()
    await opened.reader.read()
    expect(reads.count).toBe(2 * sessions)
  })

  it('asked by several at the same time › reads once', async () => {
    const { store, reads } = openSlowStore(0)
    await using opened = await openReader(store)
    reads.count = 0
    const statuses = await Promise.all([opened.reader.read(), opened.reader.read(), opened.reader.read()])
    expect(reads.count).toBe(sessions)
    expect(new Set(statuses).size).toBe(1)
  })

  it('after a reading that failed › reads again', async () => {
    const { store, reads } = openSlowStore(10)
    await using opened = await openReader(store)
    Object.assign(reads, { count: 0, failsAt: sessions })
    await expect(opened.reader.read()).rejects.toThrow('The disk is gone.')
    reads.count = 0
    reads.failsAt = undefined
    await opened.reader.read()
    expect(reads.count).toBe(sessions)
  })
})
