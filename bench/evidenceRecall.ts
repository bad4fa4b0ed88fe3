// Evidence in budget: the share of turns that a question needs and the context contains in full, by exact token count.
import { openMemory } from '../src/index.ts'
import { tokenizerNamed } from '../src/tokenizers/tokenizers.ts'
import {
  type BenchMessage,
  type BenchQuestion,
  flags,
  formatPercent,
  loadDataset,
  percentile,
  toMessageInput,
} from './datasets.ts'

const budgetsByDataset = {
  'locomo-dev': [500, 1_000, 2_000, 4_000],
  'beam-100k': [1_000, 2_000, 4_000, 8_000],
} as const
const exact = await tokenizerNamed('exact')

const splitWords = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

/** True if the text contains at least 90 % of the word 5-grams of a turn, or all of a turn with fewer than 5 words. */
function isPresent(turn: string, words: string, grams: ReadonlySet<string>): boolean {
  const own = splitWords(turn)
  if (own.length < 5) return words.includes(` ${own.join(' ')} `)
  let found = 0
  for (let at = 0; at + 5 <= own.length; at++) if (grams.has(own.slice(at, at + 5).join(' '))) found++
  return found >= 0.9 * (own.length - 4)
}

function createGrams(words: readonly string[]): Set<string> {
  const grams = new Set<string>()
  for (let at = 0; at + 5 <= words.length; at++) grams.add(words.slice(at, at + 5).join(' '))
  return grams
}

type Score = { recall: number; all: number; count: number }

function scoreContext(
  text: string,
  question: BenchQuestion,
  byId: ReadonlyMap<string, BenchMessage>,
): { recall: number; all: number } {
  const words = splitWords(text)
  const [joined, grams] = [` ${words.join(' ')} `, createGrams(words)]
  const evidence = question.evidence.flatMap((id) => byId.get(id)?.text ?? [])
  const found = evidence.filter((turn) => isPresent(turn, joined, grams)).length
  return { recall: found / evidence.length, all: found === evidence.length ? 1 : 0 }
}

for (const name of Object.keys(budgetsByDataset) as (keyof typeof budgetsByDataset)[]) {
  if (flags.only !== undefined && !name.startsWith(flags.only)) continue
  const conversations = loadDataset(name)
  const totals = new Map<string, Score>()
  const latencies: number[] = []
  let overBudget = 0
  for (const conversation of conversations) {
    await using memory = await openMemory({ profile: 'thread' })
    const byId = new Map(conversation.messages.map((message) => [message.id, message]))
    await memory.append('bench:one', conversation.messages.map(toMessageInput))
    await memory.upkeep.whenIdle()
    for (const question of conversation.questions ?? []) {
      if (question.evidence.filter((id) => byId.has(id)).length === 0) continue
      for (const budget of budgetsByDataset[name]) {
        const start = performance.now()
        const { text } = await memory.context('bench:one', { query: question.query, budget })
        latencies.push(performance.now() - start)
        const isWithin = exact.count(text) <= budget
        if (!isWithin) overBudget++
        const score = isWithin ? scoreContext(text, question, byId) : { recall: 0, all: 0 }
        for (const group of ['all', question.category]) {
          const total = totals.get(`${group} ${budget}`) ?? { recall: 0, all: 0, count: 0 }
          totals.set(`${group} ${budget}`, {
            recall: total.recall + score.recall,
            all: total.all + score.all,
            count: total.count + 1,
          })
        }
      }
    }
  }
  latencies.sort((a, b) => a - b)
  console.log(
    `\n${name}: evidence in budget, % (share of questions with all evidence); over budget ${overBudget}; p50 ${percentile(latencies, 0.5).toFixed(2)} ms, p95 ${percentile(latencies, 0.95).toFixed(2)} ms`,
  )
  const groups = [...new Set([...totals.keys()].map((key) => key.slice(0, key.lastIndexOf(' '))))]
  for (const group of groups) {
    const cells = budgetsByDataset[name].map((budget) => {
      const { recall, all, count } = totals.get(`${group} ${budget}`) as Score
      return `${budget}: ${formatPercent(recall / count)} (${formatPercent(all / count)})`
    })
    console.log(
      `  ${group.padEnd(26)} ${cells.join('   ')}   n=${totals.get(`${group} ${budgetsByDataset[name][0]}`)?.count}`,
    )
  }
}
