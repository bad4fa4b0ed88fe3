// Evidence in budget: which share of the turns a question needs are in the context, whole, by the exact count of tokens.
import { openMemory } from '../src/index.ts'
import { tokenizerNamed } from '../src/tokenizers/tokenizers.ts'
import { type BenchMessage, type BenchQuestion, flags, incoming, load, percent, percentile } from './data.ts'

const sets = { 'locomo-dev': [500, 1_000, 2_000, 4_000], 'beam-100k': [1_000, 2_000, 4_000, 8_000] } as const
const exact = await tokenizerNamed('exact')

const normal = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

/** Whether at least 90 % of the word 5-grams of a turn occur in the text; of a shorter turn, all of it. */
function isPresent(turn: string, words: string, grams: ReadonlySet<string>): boolean {
  const own = normal(turn)
  if (own.length < 5) return words.includes(` ${own.join(' ')} `)
  let found = 0
  for (let at = 0; at + 5 <= own.length; at++) if (grams.has(own.slice(at, at + 5).join(' '))) found++
  return found >= 0.9 * (own.length - 4)
}

function gramsOf(words: readonly string[]): Set<string> {
  const grams = new Set<string>()
  for (let at = 0; at + 5 <= words.length; at++) grams.add(words.slice(at, at + 5).join(' '))
  return grams
}

type Score = { recall: number; all: number; count: number }

function scored(
  text: string,
  question: BenchQuestion,
  byId: ReadonlyMap<string, BenchMessage>,
): { recall: number; all: number } {
  const words = normal(text)
  const [joined, grams] = [` ${words.join(' ')} `, gramsOf(words)]
  const wanted = question.evidence.flatMap((id) => byId.get(id)?.text ?? [])
  const found = wanted.filter((turn) => isPresent(turn, joined, grams)).length
  return { recall: found / wanted.length, all: found === wanted.length ? 1 : 0 }
}

for (const name of Object.keys(sets) as (keyof typeof sets)[]) {
  if (flags.only !== undefined && !name.startsWith(flags.only)) continue
  const conversations = load(name)
  const totals = new Map<string, Score>()
  const latencies: number[] = []
  let over = 0
  for (const conversation of conversations) {
    await using memory = await openMemory({ profile: 'thread' })
    const byId = new Map(conversation.messages.map((message) => [message.id, message]))
    await memory.append('bench:one', conversation.messages.map(incoming))
    await memory.upkeep.settled()
    for (const question of conversation.questions ?? []) {
      if (question.evidence.filter((id) => byId.has(id)).length === 0) continue
      for (const budget of sets[name]) {
        const start = performance.now()
        const { text } = await memory.context('bench:one', { query: question.query, budget })
        latencies.push(performance.now() - start)
        const within = exact.count(text) <= budget
        if (!within) over++
        const score = within ? scored(text, question, byId) : { recall: 0, all: 0 }
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
    `\n${name}: evidence in budget, % (share of questions with all of it); over budget ${over}; p50 ${percentile(latencies, 0.5).toFixed(2)} ms, p95 ${percentile(latencies, 0.95).toFixed(2)} ms`,
  )
  const groups = [...new Set([...totals.keys()].map((key) => key.slice(0, key.lastIndexOf(' '))))]
  for (const group of groups) {
    const cells = sets[name].map((budget) => {
      const { recall, all, count } = totals.get(`${group} ${budget}`) as Score
      return `${budget}: ${percent(recall / count)} (${percent(all / count)})`
    })
    console.log(`  ${group.padEnd(26)} ${cells.join('   ')}   n=${totals.get(`${group} ${sets[name][0]}`)?.count}`)
  }
}
