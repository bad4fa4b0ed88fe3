import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import type { Index, Store } from '../../src/domain/ports.ts'
import { type Change, never } from '../../src/domain/session.ts'
import { said } from '../../src/stores/conformance/stage.ts'
import { storeConformance } from '../../src/stores/conformance.ts'
import { zstd } from '../../src/stores/pack.ts'
import { Expiries } from '../../src/stores/ram/expiries.ts'
import { type Bounded, type Pack, ramStore } from '../../src/stores/ram.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'
import type { Weight } from './ramWeights.ts'

/** A store in which everything is packed away again after each step. */
function alwaysPacked(pack: Pack): Store & Index {
  const store = ramStore({ pack })
  return new Proxy(store, {
    get: (target, name) => {
      const method = Reflect.get(target, name) as unknown
      if (typeof method !== 'function') return method
      return (...given: unknown[]) => {
        target.rest(never)
        return method.apply(target, given)
      }
    },
  })
}

const as: Pack = { pack: (bytes) => bytes.slice(), unpack: (bytes) => bytes }

/** Packs as it is, and notes whose words it packed. */
const noting = (packs: string[]): Pack => ({
  ...as,
  pack: (bytes) => {
    packs.push(/acme:\w+/.exec(new TextDecoder().decode(bytes))?.[0] ?? '')
    return as.pack(bytes)
  },
})

describe('the RAM store', () => {
  for (const { name, run } of storeConformance(async () => ramStore())) it(name, run)
})

describe('the RAM store, with all sessions packed', () => {
  for (const { name, run } of storeConformance(async () => alwaysPacked(as))) it(name, run)
})

describe('the RAM store, with all sessions packed by Zstandard', () => {
  for (const { name, run } of storeConformance(async () => alwaysPacked(zstd ?? as))) it(name, run)
})

type Counted = { readonly name: number; expiresAt: number; slot: number }

describe('what expires', () => {
  /** Things with their times, and how often a time was looked at. */
  function counting(times: readonly number[]) {
    const counted = { looks: 0 }
    const all = times.map((time, name): Counted => {
      let current = time
      return {
        name,
        slot: 0,
        get expiresAt() {
          counted.looks++
          return current
        },
        set expiresAt(other) {
          current = other
        },
      }
    })
    const expiries = new Expiries<Counted>()
    for (const one of all) expiries.add(one)
    return { all, expiries, counted }
  }
  const shuffled = Array.from({ length: 50_000 }, (_, place) => ((place * 7_919) % 50_000) + 1)

  verifies('T-06', 'is found by looking at what is over, not at what is not', () => {
    const { expiries, counted } = counting(shuffled)
    counted.looks = 0
    expect(expiries.over(0)).toEqual([])
    expect(counted.looks).toBe(1)
    counted.looks = 0
    expect(expiries.over(100)).toHaveLength(100)
    expect(counted.looks).toBeLessThanOrEqual(301)
  })

  it('is moved and taken out at the price of a few looks', () => {
    const { all, expiries, counted } = counting(shuffled)
    counted.looks = 0
    for (const one of all.slice(0, 1_000)) {
      one.expiresAt = 60_000
      expiries.moved(one)
    }
    for (const one of all.slice(1_000, 2_000)) expiries.remove(one)
    // Sixteen levels, three looks at each.
    expect(counted.looks).toBeLessThan(2_000 * 60)
    const left = all.slice(2_000).filter(({ expiresAt }) => expiresAt <= 10_000)
    expect(new Set(expiries.over(10_000))).toEqual(new Set(left))
    expect(expiries.over(60_000)).toHaveLength(49_000)
  })
})

const at = (time: number, key: string, more: Partial<Change> = {}): Change => ({
  key: parseKey(key),
  at: time,
  epoch: 0,
  append: [said(key, { at: time })],
  put: [],
  drop: [],
  expiresAt: never,
  ...more,
})

describe('room in RAM', () => {
  /** What is ended until the rest fits, in order. */
  async function ended(store: Store & Bounded): Promise<string[]> {
    const all: string[] = []
    for (let key = store.overflowing(); key !== undefined; key = store.overflowing()) {
      all.push(key.id)
      await store.erase(key)
    }
    return all
  }

  verifies(
    'T-08',
    'is bounded: those that nobody has used for longest are to end first, the one used last never',
    async () => {
      const store = ramStore({ bytes: 2_600 })
      for (const [time, name] of ['acme:a', 'acme:b', 'acme:c'].entries()) await store.commit(at(time, name))
      expect(store.bytes).toEqual({ used: 3 * 806, limit: 2_600 })
      expect(await ended(store)).toEqual([])
      await store.commit(at(9, 'acme:a'))
      await store.commit(at(9, 'acme:d'))
      expect(await ended(store)).toEqual(['b', 'c'])
      await store.commit(at(10, 'acme:d', { append: [said('x'.repeat(5_000))] }))
      expect(await ended(store)).toEqual(['a'])
      expect(store.overflowing()).toBeUndefined()
    },
  )

  it('does not end a session for what upkeep writes, nor what belongs to the scope', async () => {
    const store = ramStore({ bytes: 2_000 })
    await store.commit(at(1, 'acme', { append: [said('x'.repeat(5_000))] }))
    await store.commit(at(2, 'acme:a'))
    await store.commit(at(3, 'acme:b'))
    // At the time of the last use, and without a word: no use of it.
    await store.commit(at(2, 'acme:a', { append: [] }))
    await store.commit(at(4, 'acme:c'))
    expect(await ended(store)).toEqual(['a'])
  })

  it('is bounded for what is at hand: those that nobody has used for longest are packed at once, and read the same', async () => {
    const packs: string[] = []
    // Each takes 806 bytes: two are at hand.
    const store = ramStore({ pack: noting(packs), awake: 1_700 })
    for (const [time, name] of ['acme:a', 'acme:b', 'acme:c', 'acme:d'].entries()) await store.commit(at(time, name))
    expect(packs).toEqual(['acme:a', 'acme:b'])
    expect(
      await Promise.all(
        ['acme:a', 'acme:d'].map(async (name) =>
          (await store.page(parseKey(name), { limit: 9 })).map(({ content }) => content),
        ),
      ),
    ).toEqual([['acme:a'], ['acme:d']])
    await store.commit(at(9, 'acme:c', { append: [said('acme:c again')] }))
    expect(packs).toEqual(['acme:a', 'acme:b', 'acme:d'])
  })

  it('is not made at once by packing what is large, or belongs to a scope', async () => {
    const packs: string[] = []
    const store = ramStore({ pack: noting(packs), awake: 1_000 })
    await store.commit(at(1, 'acme'))
    await store.commit(at(1, 'acme:large', { append: [said('x'.repeat(70_000))] }))
    await store.commit(at(2, 'acme:a'))
    expect(packs).toEqual([])
    await store.commit(at(3, 'acme:b'))
    expect(packs).toEqual(['acme:a'])
  })

  it('is counted the same after sessions were packed, used again, shortened and erased', async () => {
    const store = ramStore({ pack: as })
    await store.commit(at(1, 'acme:a', { append: [said('one'), said('two')] }))
    const { used } = store.bytes
    store.rest(600_000)
    expect(store.bytes.used).toBe(used)
    store.rest(600_001)
    expect(store.bytes.used).not.toBe(used)
    await store.commit(at(600_002, 'acme:a', { append: [said('three')] }))
    await store.erase(parseKey('acme:a'), { entries: ['m3'] })
    expect(store.bytes.used).toBe(used)
    await store.erase(parseKey('acme:a'))
    expect(store.bytes.used).toBe(0)
  })

  verifies(
    'T-18',
    'is at most 1 KB for an empty session, 2.2 times the text for one in use and no more than the text for one at rest',
    async () => {
      const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', 'test/stores/ramWeights.ts'], {
        cwd: root,
      })
      const { empty, chat } = JSON.parse(stdout) as Record<'empty' | 'chat', Weight>
      expect(empty.active).toBeLessThanOrEqual(1_024)
      expect(empty.idle).toBeLessThanOrEqual(1_024)
      expect(chat.active).toBeLessThanOrEqual(2.2 * chat.text)
      expect(chat.idle).toBeLessThanOrEqual(chat.text)
    },
  )
})
