// Line selection for work sessions: the share of identifiers reused in the next 2,000 tokens that the selected passages
// contain, for the default weights and for weights tuned on one half of the transcripts and scored on the other; the
// classification of work and conversation; and the latency on a history of about 64,000 tokens.

import { clipToEnd, joinTexts } from '../src/evaluation/clip.ts'
import type { DatasetMessage } from '../src/evaluation/dataset.ts'
import { type Cut, cutTranscript, findCutPositions, scoreReuse } from '../src/evaluation/futureReference.ts'
import { formatPercent, percentile } from '../src/evaluation/statistics.ts'
import { LineAnalyzer } from '../src/selection/conversationLines.ts'
import { isWork, measureWork, scoreWork } from '../src/selection/isWork.ts'
import { type SelectionWeights, selectionWeights } from '../src/selection/scoreLines.ts'
import { selectPassages } from '../src/selection/selectPassages.ts'
import { tokenizerNamed } from '../src/tokenizers/tokenizers.ts'
import { loadDataset } from './datasets.ts'

const exact = await tokenizerNamed('exact')
const countTokens = (text: string): number => exact.count(text)

const budgets = [1_000, 2_000, 4_000]
/** Length of the history for the latency: about 64,000 tokens. */
const historyChars = 256_000
const maxMessageChars = 30_000
/** Keeps the analyses of all transcripts, so that tuning does not repeat them. */
const analyzer = new LineAnalyzer(exact, { maxCachedBytes: 500_000_000 })
/** Factors tried for each weight. */
const factors = [0.5, 2]

type Case = Cut & { readonly half: number }
const transcripts = await loadDataset('transcripts-dev')
const cases: Case[] = transcripts.flatMap(({ messages }, index) =>
  findCutPositions(messages).flatMap((position) => {
    const cut = cutTranscript(messages, position, countTokens)
    return cut === undefined ? [] : [{ ...cut, half: index % 2 }]
  }),
)

function renderPassages(past: readonly DatasetMessage[], question: string, budget: number, weights: SelectionWeights) {
  const overheadTokens = (index: number): number => exact.count(`${past[index]?.speaker}: `) + 1
  const excerpts = selectPassages(past, { budget, question, overheadTokens, weights }, analyzer)
  return excerpts.map(({ message, text }) => `${message.speaker}: ${text}`).join('\n')
}

/** Mean score for each budget; a text over the budget scores 0. */
function score(weights: SelectionWeights, selected: readonly Case[]): number[] {
  return budgets.map((budget) => {
    const scores = selected.map(({ past, query, reused }) => {
      const text = renderPassages(past, query, budget, weights)
      return exact.count(text) > budget ? 0 : scoreReuse(text, reused)
    })
    return mean(scores)
  })
}

/** Tries to improve each weight once, starting from the defaults. */
function tune(selected: readonly Case[]): SelectionWeights {
  let best = { ...selectionWeights }
  let bestScore = mean(score(best, selected))
  for (const name of Object.keys(best) as (keyof SelectionWeights)[])
    for (const factor of factors) {
      const weights = { ...best, [name]: selectionWeights[name] * factor }
      const newScore = mean(score(weights, selected))
      if (newScore > bestScore) [best, bestScore] = [weights, newScore]
    }
  return best
}

/** Measures CPU time, which other processes do not affect. */
function measureLatency(): void {
  const history: DatasetMessage[] = []
  let chars = 0
  for (const { messages } of transcripts)
    for (const message of messages) {
      if (message.text.length > maxMessageChars || chars + message.text.length > historyChars) continue
      chars += message.text.length
      history.push(message)
    }
  const select = (own: LineAnalyzer): number => {
    const start = process.threadCpuUsage().user
    selectPassages(history, { budget: 4_000, question: 'update the task' }, own)
    return (process.threadCpuUsage().user - start) / 1_000
  }
  const cold = Array.from({ length: 11 }, () => select(new LineAnalyzer(exact)))
  const cached = new LineAnalyzer(exact)
  select(cached)
  const warm = Array.from({ length: 11 }, () => select(cached))
  const median = (times: number[]): string =>
    percentile(
      times.sort((a, b) => a - b),
      0.5,
    ).toFixed(0)
  console.log(
    `  ${history.length} messages, ${historyChars} characters: ${median(cold)} ms of CPU time, ${median(warm)} ms with the cache`,
  )
}

const mean = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0) / numbers.length
const format = (scores: readonly number[]): string => scores.map(formatPercent).join(' / ')
const windowScores = budgets.map((budget) =>
  mean(cases.map(({ past, reused }) => scoreReuse(clipToEnd(joinTexts(past), budget, countTokens), reused))),
)
console.log(`transcripts-dev: future reference in % of ${cases.length} cuts at ${budgets.join(' / ')} tokens`)
console.log(`  last tokens, clipped: ${format(windowScores)}`)
console.log(`  selected passages: ${format(score(selectionWeights, cases))}`)
for (const half of [0, 1]) {
  const own = cases.filter((testCase) => testCase.half === half)
  const tuned = tune(cases.filter((testCase) => testCase.half !== half))
  console.log(
    `  half ${half + 1}: ${format(score(selectionWeights, own))}, tuned on the other: ${format(score(tuned, own))}`,
  )
}
measureLatency()

for (const name of ['transcripts-dev', 'locomo-dev', 'beam-100k'] as const) {
  const conversations = await loadDataset(name)
  const scores = conversations.map(({ messages }) => scoreWork(messages.slice(-30).map(measureWork)))
  const sorted = scores.sort((a, b) => a - b)
  const questions = conversations.flatMap(({ messages, questions = [] }) =>
    questions.map(({ query }) => isWork(messages, query)),
  )
  const range = [0, 0.5, 1].map((share) => percentile(sorted, share).toFixed(2)).join(' / ')
  const asWork = questions.filter((work) => work).length
  console.log(
    `${name}: work score ${range} (lowest / median / highest); ${asWork} of ${questions.length} questions as work`,
  )
}
