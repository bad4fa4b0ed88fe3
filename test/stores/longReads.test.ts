import { describe, expect, it } from 'vitest'
import { createLongReads } from '../../src/stores/sqlite/wipe/longReads.ts'

describe('long reads', () => {
  it('wait for the work on the log that began earlier, and that for them', async () => {
    const { run, exclude } = createLongReads()
    const steps: string[] = []
    const ends = Array.from({ length: 5 }, () => Promise.withResolvers<void>())
    const step = (at: number) => async () => {
      steps.push(`begin ${at}`)
      await ends[at]?.promise
      steps.push(`end ${at}`)
    }
    const all = [run(step(0)), run(step(1)), exclude(step(2)), exclude(step(3)), run(step(4))]
    for (const { resolve } of [...ends].reverse()) {
      await new Promise((done) => setImmediate(done))
      resolve()
    }
    await Promise.all(all)
    expect(steps.join(', ')).toBe('begin 0, begin 1, end 1, end 0, begin 2, begin 3, end 2, end 3, begin 4, end 4')
    await exclude(async () => void steps.push('last'))
    expect(steps.at(-1)).toBe('last')
  })

  it('that fail do not keep others waiting', async () => {
    const { run, exclude } = createLongReads()
    const failing = run(() => Promise.reject(new Error('seal')))
    const work = exclude(async () => 'walrus')
    await expect(failing).rejects.toThrow('seal')
    expect(await work).toBe('walrus')
  })
})
