// Longest time that a request holds the event loop: npm run bench -- stalls [--sizes 100000,1000000] [--texts 'a;b']
// [--endpoints 'a;b'] [--offline] [--profile 1]. Sizes are bytes of a request. Texts and endpoints are parts of names,
// and `=name` is a whole one. With --offline, the built-in model answers. Prints one line per stretch over the limit
// and per refused request, which measures little, then the table.
import { parseArgs } from 'node:util'
import { createText, hostileTexts } from '../test/server/stalls/hostileTexts.ts'
import { encodingOf, stallEndpoints } from '../test/server/stalls/stallEndpoints.ts'
import { startStallProbe } from '../test/server/stalls/stallProbe.ts'
import { chooseByName } from './measure.ts'

const { values: flags } = parseArgs({
  args: process.argv.slice(3),
  options: {
    sizes: { type: 'string', default: '100000,1000000' },
    texts: { type: 'string' },
    endpoints: { type: 'string' },
    offline: { type: 'boolean', default: false },
    profile: { type: 'string' },
    profiled: { type: 'boolean', default: false },
  },
})
const sizes = flags.sizes.split(',').map(Number)
const texts = chooseByName(hostileTexts, flags.texts)
const endpoints = chooseByName(stallEndpoints, flags.endpoints)
const smallRequestBytes = 1_000_000
const [maxSmallMs, maxLargeMs] = [50, 250]

await using probe = await startStallProbe(flags.offline ? { upstreams: [] } : {})
for (const [, run] of endpoints)
  for (let round = 0; round < 3; round++)
    await probe.measure((client) =>
      run(
        client,
        hostileTexts['short sentences']?.(20_000) ?? '',
        `warm${round}-${Math.random().toString(36).slice(2)}:s`,
      ),
    )
const worst = new Map<string, { ms: number; text: string }>()
const refused = new Map<string, number>()
let over = 0
let cases = 0
for (const size of sizes)
  for (const [endpoint, run] of endpoints)
    for (const [name, create] of texts) {
      const text = createText(create, size, encodingOf(endpoint))
      const session = `t${++cases}:s`
      let stall = await probe.measure((client) => run(client, text, session), { profile: flags.profiled })
      const limit = size <= smallRequestBytes ? maxSmallMs : maxLargeMs
      if (stall.longestMs > limit && !flags.profiled) {
        // Compilation and garbage of earlier cases do not count: a stall repeats.
        const repeated = await probe.measure((client) => run(client, text, `${session.slice(0, -2)}r:s`), {
          profile: flags.profile !== undefined,
        })
        if (repeated.longestMs < stall.longestMs || flags.profile !== undefined) stall = repeated
      }
      if (stall.longestMs > limit) over++
      if (stall.longestMs > limit || flags.profiled)
        console.log(
          `${stall.longestMs.toFixed(0).padStart(6)} ms  ${size}  ${endpoint}  |  ${name}  ${stall.hotSpots.map((spot) => `\n            ${spot}`).join('')}`,
        )
      const key = `${endpoint} ${size}`
      for (const refusal of stall.refusals) console.log(`refused  ${size}  ${endpoint}  |  ${name}  ${refusal}`)
      if (stall.refusals.length > 0) refused.set(key, (refused.get(key) ?? 0) + 1)
      if (stall.longestMs > (worst.get(key)?.ms ?? 0)) worst.set(key, { ms: stall.longestMs, text: name })
    }
console.log(`\n${cases} cases, ${over} over the limit. Longest stretch of the event loop, in ms of processor time:`)
for (const [endpoint] of endpoints)
  console.log(
    `${endpoint.padEnd(38)} ${sizes
      .map((size) => `${endpoint} ${size}`)
      .map((key) => {
        const { ms = 0, text = '' } = worst.get(key) ?? {}
        const count = refused.get(key)
        return `${ms.toFixed(0).padStart(7)} ${`${text}${count === undefined ? '' : ` (${count} refused)`}`.padEnd(40)}`
      })
      .join('')}`,
  )
