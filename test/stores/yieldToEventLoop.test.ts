import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { isTurnLong, yieldToEventLoop, yieldWhenLong } from '../../src/stores/yieldToEventLoop.ts'

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
