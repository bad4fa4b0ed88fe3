import { describe, expect, it } from 'vitest'
import { roundOver } from '../../../src/server/http/pendingReads.ts'

describe('a round of the platform', () => {
  it('is one for all who come while it lasts, and they go on in the order in which they came, step by step', async () => {
    const steps: string[] = []
    const walk = async (name: string): Promise<void> => {
      await roundOver()
      steps.push(`${name} begins`)
      await undefined
      steps.push(`${name} ends`)
    }
    await Promise.all([walk('first'), Promise.resolve().then(() => walk('second'))])
    expect(steps).toEqual(['first begins', 'second begins', 'first ends', 'second ends'])
  })

  it('is over only after all that was under way when somebody came', async () => {
    let isThrough = false
    process.nextTick(() => queueMicrotask(() => process.nextTick(() => (isThrough = true))))
    await roundOver()
    expect(isThrough).toBe(true)
  })

  it('is another one for whoever comes later', async () => {
    const first = roundOver()
    await first
    const second = roundOver()
    expect(second).not.toBe(first)
    await second
  })
})
