// Future reference: the share of identifiers reused in the next 2,000 tokens that a context contains with their
// neighbour words.
import { openMemory } from '../src/index.ts'
import { formatPercent, loadDataset, toMessageInput } from './datasets.ts'
import { clipToEnd, cutTranscript, findCutPositions, joinTexts, scoreText } from './identifierReuse.ts'

const budgets = [1_000, 2_000, 4_000]
const totals = budgets.map(() => ({ ours: 0, window: 0 }))
let cutCount = 0
for (const { messages } of loadDataset('transcripts-dev')) {
  for (const position of findCutPositions(messages)) {
    const cut = cutTranscript(messages, position)
    if (cut === undefined) continue
    await using memory = await openMemory()
    await memory.append('bench:one', cut.past.map(toMessageInput))
    await memory.upkeep.whenIdle()
    cutCount++
    for (const [index, budget] of budgets.entries()) {
      const { text } = await memory.context('bench:one', { query: cut.query, budget })
      const total = totals[index] as (typeof totals)[number]
      total.ours += scoreText(text, cut.reused)
      total.window += scoreText(clipToEnd(joinTexts(cut.past), budget), cut.reused)
    }
  }
}
console.log(`transcripts-dev: future reference, % of ${cutCount} cuts; thread against the last N tokens`)
for (const [index, budget] of budgets.entries())
  console.log(
    `  ${budget}: ${formatPercent((totals[index]?.ours ?? 0) / cutCount)} against ${formatPercent((totals[index]?.window ?? 0) / cutCount)}`,
  )
