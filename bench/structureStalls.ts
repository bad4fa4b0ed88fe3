// Longest time that a request of many parts holds the event loop: npm run bench -- structureStalls [--sizes 1000000]
// [--only 'a;b'] [--offline] [--profile]. Names are parts of names, and `=name` is a whole one. With --offline, the
// built-in model answers. Refused requests measure little.
import { parseArgs } from 'node:util'
import { startStallProbe } from '../test/server/stalls/stallProbe.ts'
import { startStreamingModel } from '../test/server/structureStalls/streamingModel.ts'
import { structures } from '../test/server/structureStalls/structures.ts'
import { chooseByName } from './measure.ts'

const { values: flags } = parseArgs({
  args: process.argv.slice(3),
  options: {
    sizes: { type: 'string', default: '1000000,8000000,33000000' },
    only: { type: 'string' },
    offline: { type: 'boolean', default: false },
    profile: { type: 'boolean', default: false },
  },
})
const sizes = flags.sizes.split(',').map(Number)
const chosen = chooseByName(structures, flags.only)
const smallRequestBytes = 1_000_000
const [maxSmallMs, maxLargeMs] = [50, 250]

await using model = await startStreamingModel()
await using probe = await startStallProbe({ upstreams: flags.offline ? [] : [{ name: 'model', base: model.url }] })
const client = { ...probe.client, setReply: model.setReply }
let sessions = 0
for (const [, run] of chosen) for (let round = 0; round < 3; round++) await run(client, 20_000, `warm${++sessions}:s`)
console.log(`${''.padEnd(40)}${sizes.map((size) => String(size).padStart(10)).join('')}`)
for (const [name, run] of chosen) {
  const row: number[] = []
  for (const size of sizes) {
    // Compilation and garbage of earlier cases do not count: a stall repeats.
    const measure = () => probe.measure(() => run(client, size, `s${++sessions}:s`), { profile: flags.profile })
    const first = await measure()
    const limit = size <= smallRequestBytes ? maxSmallMs : maxLargeMs
    const second = first.longestMs > limit ? await measure() : first
    for (const refusal of second.refusals) console.log(`refused ${size} ${name}  ${refusal}`)
    row.push(Math.min(first.longestMs, second.longestMs))
    if (flags.profile) console.log(`${size} ${name}${second.hotSpots.map((spot) => `\n     ${spot}`).join('')}`)
  }
  console.log(`${name.padEnd(40)}${row.map((ms) => ms.toFixed(0).padStart(10)).join('')}`)
}
