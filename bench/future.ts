// Future reference: which of the names, paths and numbers that the next 2,000 tokens use again does a context hold, each with its neighbours?
import { openMemory } from '../src/index.ts'
import { incoming, load, percent } from './data.ts'
import { cutAt, ending, joined, placesOf, score } from './futureReference.ts'

const budgets = [1_000, 2_000, 4_000]
const totals = budgets.map(() => ({ ours: 0, window: 0 }))
let cases = 0
for (const { messages } of load('transcripts-dev')) {
  for (const place of placesOf(messages)) {
    const cut = cutAt(messages, place)
    if (cut === undefined) continue
    await using memory = await openMemory()
    await memory.append('bench:one', cut.past.map(incoming))
    await memory.upkeep.settled()
    cases++
    for (const [at, budget] of budgets.entries()) {
      const { text } = await memory.context('bench:one', { query: cut.query, budget })
      const total = totals[at] as (typeof totals)[number]
      total.ours += score(text, cut.wanted)
      total.window += score(ending(joined(cut.past), budget), cut.wanted)
    }
  }
}
console.log(`transcripts-dev: future reference, % of ${cases} cuts; thread against the last N tokens, clipped`)
for (const [at, budget] of budgets.entries())
  console.log(
    `  ${budget}: ${percent((totals[at]?.ours ?? 0) / cases)} against ${percent((totals[at]?.window ?? 0) / cases)}`,
  )
