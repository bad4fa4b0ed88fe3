// Handoff: saves a coding transcript near the limit of a chat and restores it without knowing the next question.
// Measures the share of identifiers reused in the next 2,000 tokens that the restored text contains, compared with the
// last N tokens.

import { clipToEnd, joinTexts } from '../src/evaluation/clip.ts'
import type { DatasetMessage } from '../src/evaluation/dataset.ts'
import { loadTokenCounter } from '../src/evaluation/evaluate.ts'
import {
  type Cut,
  cutTranscript,
  findCutPositions,
  findUserPositions,
  scoreReuse,
} from '../src/evaluation/futureReference.ts'
import { formatPercent, mean } from '../src/evaluation/statistics.ts'
import { openGraph } from '../src/graph/graph.ts'
import { Handoff } from '../src/handoff/handoff.ts'
import { openMemory } from '../src/index.ts'
import { loadDataset } from './datasets.ts'

const countTokens = await loadTokenCounter()

const budgets = [4_000, 8_000]
/** Three quarters of a chat limit of 32,000 tokens. */
const nearLimitTokens = 24_000

type Case = Cut & { readonly half: 'even' | 'odd'; readonly isNearLimit: boolean }
type Result = {
  readonly testCase: Case
  readonly budget: number
  readonly ours: number
  readonly window: number
  readonly isOverBudget: boolean
}

/** Cuts where the dataset prescribes, and before the last user message within the limit. */
function createCases(messages: readonly DatasetMessage[], half: Case['half']): Case[] {
  let tokens = 0
  const tokensUpTo = messages.map(({ text }) => (tokens += countTokens(text)))
  const nearLimit =
    tokens > nearLimitTokens
      ? findUserPositions(messages).findLast((position) => (tokensUpTo[position - 1] ?? 0) <= nearLimitTokens)
      : undefined
  const positions = new Set([...findCutPositions(messages), ...(nearLimit === undefined ? [] : [nearLimit])])
  return [...positions].flatMap((position) => {
    const cut = cutTranscript(messages, position, countTokens)
    return cut === undefined ? [] : [{ ...cut, half, isNearLimit: position === nearLimit }]
  })
}

async function saveAndRestore(past: readonly DatasetMessage[]): Promise<readonly string[]> {
  await using memory = await openMemory()
  const graph = await openGraph('ram:')
  try {
    const handoff = new Handoff({ memory, graph, clock: Date.now })
    const { sessionId } = await handoff.save('bench', {
      messages: past.map(({ role, text }) => ({ role, content: text })),
    })
    const texts: string[] = []
    for (const budget of budgets) texts.push((await handoff.restore('bench', { sessionId, budget })).context)
    return texts
  } finally {
    await graph.close()
  }
}

async function runCase(testCase: Case): Promise<Result[]> {
  const texts = await saveAndRestore(testCase.past)
  return budgets.map((budget, index) => {
    const text = texts[index] ?? ''
    const isOverBudget = countTokens(text) > budget
    const window = scoreReuse(clipToEnd(joinTexts(testCase.past), budget, countTokens), testCase.reused)
    return { testCase, budget, ours: isOverBudget ? 0 : scoreReuse(text, testCase.reused), window, isOverBudget }
  })
}

const groups: readonly (readonly [name: string, includes: (testCase: Case) => boolean])[] = [
  ['all', () => true],
  ['even transcripts', ({ half }) => half === 'even'],
  ['odd transcripts', ({ half }) => half === 'odd'],
  ['at 75 % of 32k', ({ isNearLimit }) => isNearLimit],
]
const results: Result[] = []
for (const [index, { messages }] of (await loadDataset('transcripts-dev')).entries())
  for (const testCase of createCases(messages, index % 2 === 0 ? 'even' : 'odd'))
    results.push(...(await runCase(testCase)))

console.log('transcripts-dev: future reference in %, restored against the last N tokens')
for (const budget of budgets)
  for (const [name, includes] of groups) {
    const selected = results.filter((result) => result.budget === budget && includes(result.testCase))
    const [ours, window] = [mean(selected.map((result) => result.ours)), mean(selected.map((result) => result.window))]
    const overBudget = selected.filter(({ isOverBudget }) => isOverBudget).length
    console.log(
      `  ${budget}, ${name}, ${selected.length} cuts: ${formatPercent(ours)} against ${formatPercent(window)} (${formatPercent(ours - window)} points), ${overBudget} over budget`,
    )
  }
