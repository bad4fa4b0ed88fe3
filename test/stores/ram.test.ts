import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../src/domain/ports.ts'
import { noExpiry, type SessionChange } from '../../src/domain/session.ts'
import { newMessage } from '../../src/stores/conformance/fixtures.ts'
import { storeConformance } from '../../src/stores/conformance.ts'
import { type Compressor, type RamStore, ramStore } from '../../src/stores/ram.ts'
import { zstdCompressor } from '../../src/stores/zstd.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'
import type { MemoryUsage } from './ramMemoryUsage.ts'

/** Creates a store that compresses all sessions before each call. */
function alwaysCompressed(compressor: Compressor): Store & SearchIndex {
  const store = ramStore({ compressor })
  return new Proxy(store, {
    get: (target, name) => {
      const method = Reflect.get(target, name) as unknown
      if (typeof method !== 'function') return method
      return (...args: unknown[]) => {
        target.capabilities.memoryLimit.compressIdle(noExpiry)
        return method.apply(target, args)
      }
    },
  })
}

const identity: Compressor = { compress: (bytes) => bytes.slice(), decompress: (bytes) => bytes }

/** Compressor that copies the bytes and records the keys of the sessions. */
const recordKeys = (keys: string[]): Compressor => ({
  ...identity,
  compress: (bytes) => {
    keys.push(/acme:\w+/.exec(new TextDecoder().decode(bytes))?.[0] ?? '')
    return identity.compress(bytes)
  },
})

describe('ramStore', () => {
  for (const { name, run } of storeConformance(async () => ramStore())) it(name, run)
})

describe('ramStore with all sessions compressed', () => {
  for (const { name, run } of storeConformance(async () => alwaysCompressed(identity))) it(name, run)
})

describe('ramStore with all sessions compressed by Zstandard', () => {
  for (const { name, run } of storeConformance(async () => alwaysCompressed(zstdCompressor ?? identity))) it(name, run)
})

const changeAt = (time: number, key: string, overrides: Partial<SessionChange> = {}): SessionChange => ({
  key: parseKey(key),
  at: time,
  epoch: 0,
  append: [newMessage(key, { at: time })],
  put: [],
  drop: [],
  expiresAt: noExpiry,
  ...overrides,
})

describe('ramStore memory', () => {
  /** Erases sessions until the others fit; returns their ids in order. */
  async function evict(store: RamStore): Promise<string[]> {
    const evicted: string[] = []
    for (
      let key = store.capabilities.memoryLimit.evictionCandidate();
      key !== undefined;
      key = store.capabilities.memoryLimit.evictionCandidate()
    ) {
      evicted.push(key.id)
      await store.erase(key)
    }
    return evicted
  }

  verifies(
    'T-08',
    'over the limit proposes the least recently used sessions for eviction, but never the one used last',
    async () => {
      const store = ramStore({ maxBytes: 2_600 })
      for (const [time, name] of ['acme:a', 'acme:b', 'acme:c'].entries()) await store.commit(changeAt(time, name))
      expect(store.capabilities.memoryLimit.memoryUsage).toEqual({ usedBytes: 3 * 806, maxBytes: 2_600 })
      expect(await evict(store)).toEqual([])
      await store.commit(changeAt(9, 'acme:a'))
      await store.commit(changeAt(9, 'acme:d'))
      expect(await evict(store)).toEqual(['b', 'c'])
      await store.commit(changeAt(10, 'acme:d', { append: [newMessage('x'.repeat(5_000))] }))
      expect(await evict(store)).toEqual(['a'])
      expect(store.capabilities.memoryLimit.evictionCandidate()).toBeUndefined()
    },
  )

  verifies('T-08', 'by default proposes sessions for eviction beyond 512 MB', async () => {
    const [store, unlimited] = [ramStore(), ramStore({ maxBytes: Number.POSITIVE_INFINITY })]
    // All messages share one string.
    const append = [newMessage('x'.repeat(8_000_000))]
    for (let number = 10; number < 75; number++) {
      await store.commit(changeAt(number, `acme:s${number}`, { append }))
      await unlimited.commit(changeAt(number, `acme:s${number}`, { append }))
    }
    const { memoryLimit } = store.capabilities
    expect(memoryLimit.memoryUsage).toMatchObject({ maxBytes: 512_000_000 })
    expect(memoryLimit.memoryUsage.usedBytes).toBeGreaterThan(520_000_000)
    expect([await evict(store), await evict(unlimited)]).toEqual([['s10', 's11'], []])
    expect(memoryLimit.memoryUsage.usedBytes).toBeLessThanOrEqual(512_000_000)
  })

  it('does not count upkeep as a use, nor scope data against the limit', async () => {
    const store = ramStore({ maxBytes: 2_000 })
    await store.commit(changeAt(1, 'acme', { append: [newMessage('x'.repeat(5_000))] }))
    await store.commit(changeAt(2, 'acme:a'))
    await store.commit(changeAt(3, 'acme:b'))
    // Without messages and with the time of the last use, this is no use.
    await store.commit(changeAt(2, 'acme:a', { append: [] }))
    await store.commit(changeAt(4, 'acme:c'))
    expect(await evict(store)).toEqual(['a'])
  })

  it('over the uncompressed limit compresses the least recently used sessions and still reads them', async () => {
    const compressed: string[] = []
    // Each session takes 806 bytes, so two stay uncompressed.
    const store = ramStore({ compressor: recordKeys(compressed), maxUncompressedBytes: 1_700 })
    for (const [time, name] of ['acme:a', 'acme:b', 'acme:c', 'acme:d'].entries())
      await store.commit(changeAt(time, name))
    expect(compressed).toEqual(['acme:a', 'acme:b'])
    expect(
      await Promise.all(
        ['acme:a', 'acme:d'].map(async (name) =>
          (await store.readMessages(parseKey(name), { limit: 9 })).map(({ content }) => content),
        ),
      ),
    ).toEqual([['acme:a'], ['acme:d']])
    await store.commit(changeAt(9, 'acme:c', { append: [newMessage('acme:c again')] }))
    expect(compressed).toEqual(['acme:a', 'acme:b', 'acme:d'])
  })

  it('over the uncompressed limit leaves large sessions and scope data uncompressed', async () => {
    const compressed: string[] = []
    const store = ramStore({ compressor: recordKeys(compressed), maxUncompressedBytes: 1_000 })
    await store.commit(changeAt(1, 'acme'))
    await store.commit(changeAt(1, 'acme:large', { append: [newMessage('x'.repeat(70_000))] }))
    await store.commit(changeAt(2, 'acme:a'))
    expect(compressed).toEqual([])
    await store.commit(changeAt(3, 'acme:b'))
    expect(compressed).toEqual(['acme:a'])
  })

  it('is counted consistently across compression, use, erased entries and erased sessions', async () => {
    const store = ramStore({ compressor: identity })
    await store.commit(changeAt(1, 'acme:a', { append: [newMessage('one'), newMessage('two')] }))
    const { usedBytes } = store.capabilities.memoryLimit.memoryUsage
    store.capabilities.memoryLimit.compressIdle(600_000)
    expect(store.capabilities.memoryLimit.memoryUsage.usedBytes).toBe(usedBytes)
    store.capabilities.memoryLimit.compressIdle(600_001)
    expect(store.capabilities.memoryLimit.memoryUsage.usedBytes).not.toBe(usedBytes)
    await store.commit(changeAt(600_002, 'acme:a', { append: [newMessage('three')] }))
    await store.erase(parseKey('acme:a'), { entries: ['m3'] })
    expect(store.capabilities.memoryLimit.memoryUsage.usedBytes).toBe(usedBytes)
    await store.erase(parseKey('acme:a'))
    expect(store.capabilities.memoryLimit.memoryUsage.usedBytes).toBe(0)
  })

  verifies(
    'T-18',
    'is at most 1 KB per empty session, 2.2 times the text of an active one and the text of a compressed one',
    async () => {
      const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', 'test/stores/ramMemoryUsage.ts'], {
        cwd: root,
      })
      const { empty, chat } = JSON.parse(stdout) as Record<'empty' | 'chat', MemoryUsage>
      expect(empty.activeBytes).toBeLessThanOrEqual(1_024)
      expect(empty.idleBytes).toBeLessThanOrEqual(1_024)
      expect(chat.activeBytes).toBeLessThanOrEqual(2.2 * chat.textBytes)
      expect(chat.idleBytes).toBeLessThanOrEqual(chat.textBytes)
    },
  )
})
