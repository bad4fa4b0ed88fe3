import { describe, expect, it } from 'vitest'
import { getOrCompute, KeyedMutex } from '../../src/domain/keyed.ts'

/** Lets all promises that are ready continue. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('KeyedMutex', () => {
  it('run › with the same name › runs one task at a time, in the order of the calls', async () => {
    const mutex = new KeyedMutex()
    const events: string[] = []
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const tasks = gates.map((gate, index) =>
      mutex.run('a', async () => {
        events.push(`start ${index}`)
        await gate.promise
        events.push(`end ${index}`)
        return index
      }),
    )
    for (const gate of gates.toReversed()) {
      await settle()
      gate.resolve()
    }
    expect(await Promise.all(tasks)).toEqual([0, 1, 2])
    expect(events).toEqual(['start 0', 'end 0', 'start 1', 'end 1', 'start 2', 'end 2'])
  })

  it('run › with different names › does not wait', async () => {
    const mutex = new KeyedMutex()
    const release = await mutex.acquire('a')
    expect(await mutex.run('b', async () => 'done')).toBe('done')
    release()
  })

  it('isHeld › is true until the last holder has released the lock', async () => {
    const mutex = new KeyedMutex()
    expect(mutex.isHeld('a')).toBe(false)
    const releaseFirst = await mutex.acquire('a')
    const second = mutex.acquire('a')
    expect([mutex.isHeld('a'), mutex.isHeld('b')]).toEqual([true, false])
    releaseFirst()
    const releaseSecond = await second
    expect(mutex.isHeld('a')).toBe(true)
    releaseSecond()
    expect(mutex.isHeld('a')).toBe(false)
  })

  it('run › when the task fails › rejects and releases the lock', async () => {
    const mutex = new KeyedMutex()
    await expect(mutex.run('a', () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
    expect(await mutex.run('a', async () => 'done')).toBe('done')
  })

  it('release › called twice › lets only one waiting task in', async () => {
    const mutex = new KeyedMutex()
    const release = await mutex.acquire('a')
    const entered: number[] = []
    const waiting = [1, 2].map(async (number) => {
      const releaseNext = await mutex.acquire('a')
      entered.push(number)
      return releaseNext
    })
    release()
    release()
    await settle()
    expect(entered).toEqual([1])
    ;(await waiting[0])?.()
    await settle()
    expect(entered).toEqual([1, 2])
  })

  it('release › after the name is free again › does not take the lock from its next holder', async () => {
    const mutex = new KeyedMutex()
    const release = await mutex.acquire('a')
    release()
    await mutex.acquire('a')
    release()
    const entered: string[] = []
    void mutex.acquire('a').then(() => entered.push('second'))
    await settle()
    expect(entered).toEqual([])
  })
})

describe('getOrCompute', () => {
  it('computes a missing value once, from its key, and stores it', () => {
    const map = new Map([['old', 1]])
    const computed: string[] = []
    const compute = (key: string): number => computed.push(key) + 10
    expect(['old', 'new', 'new'].map((key) => getOrCompute(map, key, compute))).toEqual([1, 11, 11])
    expect([computed, map.get('new')]).toEqual([['new'], 11])
  })
})
