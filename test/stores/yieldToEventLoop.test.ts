import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { runInSlices } from '../../src/domain/work.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { isTurnLong, waitForTurn, yieldToEventLoop, yieldWhenLong } from '../../src/stores/yieldToEventLoop.ts'

import { createTempPaths } from './tempPaths.ts'

const newPath = createTempPaths()
let now = 0
beforeEach(() => {
  vi.spyOn(performance, 'now').mockImplementation(() => now)
})
afterEach(() => {
  vi.restoreAllMocks()
})

/** Lets the current turn of the event loop take a while. */
function work(milliseconds: number): void {
  now += milliseconds
}

describe('yieldWhenLong', () => {
  it('in a short turn › continues at once; in a long one › lets others run first', async () => {
    await yieldToEventLoop()
    expect([yieldWhenLong(), isTurnLong()]).toEqual([undefined, false])
    work(10)
    expect(isTurnLong()).toBe(true)
    const order: string[] = []
    setImmediate(() => order.push('other request'))
    await yieldWhenLong()
    order.push('long work')
    expect(order).toEqual(['other request', 'long work'])
  })

  it('after a yield › counts the time of the new turn', async () => {
    await yieldToEventLoop()
    isTurnLong()
    work(10)
    await yieldWhenLong()
    expect(isTurnLong()).toBe(false)
  })

  it('after awaits that resolve at once › still counts the same turn', async () => {
    await yieldToEventLoop()
    isTurnLong()
    for (let read = 0; read < 5; read++) {
      await Promise.resolve()
      work(2)
    }
    expect(isTurnLong()).toBe(true)
  })
})

describe('waitForTurn', () => {
  it('in a short turn › continues at once', async () => {
    await yieldToEventLoop()
    expect(waitForTurn()).toBeUndefined()
  })

  it('while other reads wait › keeps their order and shares the turns', async () => {
    const order: string[] = []
    const read = async (name: string, count: number) => {
      for (let at = 0; at < count; at++) {
        await waitForTurn()
        work(5)
        order.push(name)
      }
    }
    await yieldToEventLoop()
    await Promise.all([read('a', 6), read('b', 2)])
    expect(order.lastIndexOf('b')).toBeLessThan(order.lastIndexOf('a') - 1)
    expect(order.filter((name) => name === 'a')).toHaveLength(6)
  })

  it('while long work takes every turn › lets a store read', async () => {
    const store = sqliteStore(newPath())
    let turns = 0
    let isRead = false
    function* useUpTurns() {
      for (; turns < 200 && !isRead; turns++) {
        work(10)
        yield 1_024
      }
    }
    await yieldToEventLoop()
    const longWork = runInSlices(useUpTurns(), yieldWhenLong)
    await yieldToEventLoop()
    await store.readHead(parseKey('acme:ann'), 0)
    isRead = true
    await longWork
    expect(turns).toBeLessThan(10)
    await store.close()
  })
})
