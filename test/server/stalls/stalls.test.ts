import { expect } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { hostileTexts } from './hostileTexts.ts'
import { stallEndpoints } from './stallEndpoints.ts'
import { startStallProbe } from './stallProbe.ts'

/** Four times the promised 50 ms, because garbage collection and a busy machine add to the processor time. */
const maxLongestMs = 200
const bytes = 1_000_000

/** Cases that took the event loop for half a second and more when long texts were handled at once. */
const cases = [
  ['chat, user', 'combining marks'],
  ['chat, 200 messages, small budget', 'random words'],
] as const
const timeoutMs = 600_000

verifies(
  'R-03',
  'a request of 1 MB › with hostile text › leaves the event loop to other requests',
  async () => {
    await using probe = await startStallProbe()
    const stalls: [string, number][] = []
    for (const [endpoint, name] of cases) {
      const run = stallEndpoints[endpoint]
      const create = hostileTexts[name]
      if (run === undefined || create === undefined) expect.fail(`There is no case ${endpoint}, ${name}.`)
      await probe.measure((client) => run(client, create(20_000), `warm:${endpoint.replace(/\W/g, '')}`))
      const measure = async (session: string): Promise<number> =>
        (await probe.measure((client) => run(client, create(bytes), `${session}:s`))).longestMs
      const longestMs = await measure(`first${stalls.length}`)
      // A stall repeats, a collection of garbage does not.
      stalls.push([endpoint, longestMs > maxLongestMs ? await measure(`second${stalls.length}`) : longestMs])
    }
    expect(stalls.filter(([, longestMs]) => longestMs > maxLongestMs)).toEqual([])
  },
  timeoutMs,
)
