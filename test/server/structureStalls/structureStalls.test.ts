import { expect } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { type StallProbe, startStallProbe } from '../stalls/stallProbe.ts'
import { startStreamingModel } from './streamingModel.ts'
import { structures } from './structures.ts'

/** Twice the goal of 50 ms: garbage collection and slower machines add to the processor time. */
const maxSmallMs = 100
/** The goal itself, of which the largest request takes a quarter. */
const maxLargeMs = 250
const maxAttempts = 3
const bytes = 950_000
/** Just below the limit of a request's body. */
const largestBytes = 33_000_000

/** Cases with thousands of fields to mask, of rows of a graph and of lines of a bundle; the benchmark has all. */
const cases = [
  'chat, wide part',
  'api, knowledge, nested names',
  'api, knowledge, secret names',
  'api, metadata, secret names',
  'api, import, tiny messages',
  'mcp, relations',
  'mcp, long observations, deleted',
] as const
const largestCase = 'chat, one reply with many calls, once'
const timeoutMs = 600_000

/** Returns the stretch of the shortest of three attempts: a stall repeats, compilation and garbage collection do not. */
async function measureStructure(
  probe: StallProbe,
  name: string,
  { size, maxMs }: { readonly size: number; readonly maxMs: number },
): Promise<number> {
  const run = structures[name]
  if (run === undefined) expect.fail(`There is no structure ${name}.`)
  let longestMs = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < maxAttempts && longestMs > maxMs; attempt++) {
    const session = `${name.replaceAll(/\W+/g, '-')}-${attempt}:s`
    const stall = await probe.measure((client) => run(client, size, session))
    expect(stall.refusals).toEqual([])
    longestMs = Math.min(longestMs, stall.longestMs)
  }
  return longestMs
}

verifies(
  'R-03',
  'a request of 1 MB or of 33 MB › with thousands of fields, rows or lines › leaves the event loop to other requests',
  async () => {
    await using model = await startStreamingModel()
    await using probe = await startStallProbe({ upstreams: [{ name: 'model', base: model.url }] })
    const stalls: [string, number][] = []
    for (const name of cases) {
      const longestMs = await measureStructure(probe, name, { size: bytes, maxMs: maxSmallMs })
      if (longestMs > maxSmallMs) stalls.push([name, longestMs])
    }
    const longestMs = await measureStructure(probe, largestCase, { size: largestBytes, maxMs: maxLargeMs })
    if (longestMs > maxLargeMs) stalls.push([largestCase, longestMs])
    expect(stalls).toEqual([])
  },
  timeoutMs,
)
