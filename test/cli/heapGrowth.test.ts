import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const run = promisify(execFile)
const module = new URL('../../src/cli/terminal/heapGrowth.ts', import.meta.url).href

/** Replaces parts of 60 MB of objects again and again. Prints the largest heap, as a multiple of what is in use. */
const replaceObjects = `
const { limitHeapGrowth } = await import(${JSON.stringify(module)})
if (process.argv[1] === 'limited') limitHeapGrowth()
const createPart = () => Array.from({ length: 10_000 }, (_, at) => ({ at }))
const parts = Array.from({ length: 100 }, createPart)
gc()
const inUse = process.memoryUsage().heapUsed
let largest = 0
for (let round = 0; round < 1_200; round++) {
  parts[(round * 37) % parts.length] = createPart()
  if (round % 10 === 0) await new Promise(setImmediate)
  largest = Math.max(largest, process.memoryUsage().heapTotal)
}
console.log(largest / inUse)
`

async function measureGrowth(...args: readonly string[]): Promise<number> {
  const flags = ['--expose-gc', '--max-semi-space-size=4', '--input-type=module', '--eval', replaceObjects]
  const { stdout } = await run(process.execPath, [...args.slice(1), ...flags, ...args.slice(0, 1)])
  return Number(stdout)
}

describe('limitHeapGrowth', () => {
  it("lets V8's heap grow by half, unless the user says otherwise", async () => {
    const [unlimited, limited, given] = [
      await measureGrowth('unlimited'),
      await measureGrowth('limited'),
      await measureGrowth('limited', '--heap-growing-percent=400'),
    ]
    expect(limited).toBeLessThan(0.8 * unlimited)
    expect(given).toBeGreaterThan(1.3 * limited)
  })
})
