import { describe, expect, it } from 'vitest'
import { afterPendingReads } from '../../../src/server/http/pendingReads.ts'

describe('waiting for pending reads', () => {
  it('concurrent callers › share one wait and continue in call order, step by step', async () => {
    const steps: string[] = []
    const run = async (name: string): Promise<void> => {
      await afterPendingReads()
      steps.push(`${name} begins`)
      await undefined
      steps.push(`${name} ends`)
    }
    await Promise.all([run('first'), Promise.resolve().then(() => run('second'))])
    expect(steps).toEqual(['first begins', 'second begins', 'first ends', 'second ends'])
  })

  it('resolves after everything pending at the call', async () => {
    let isDone = false
    process.nextTick(() => queueMicrotask(() => process.nextTick(() => (isDone = true))))
    await afterPendingReads()
    expect(isDone).toBe(true)
  })

  it('a later caller › waits again', async () => {
    const first = afterPendingReads()
    await first
    const second = afterPendingReads()
    expect(second).not.toBe(first)
    await second
  })
})
