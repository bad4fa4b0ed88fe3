// Handoff: a coding transcript is saved where it comes near the limit of a chat and restored into a new one, without knowing what is asked next.
// How much of what the next 2,000 tokens use again does the restored text hold, against the last N tokens, clipped?
import { openGraph } from '../src/graph/open.ts'
import { Handoff } from '../src/handoff/handoff.ts'
import { openMemory } from '../src/index.ts'
import { type BenchMessage, load, percent } from './data.ts'
import { type Cut, cutAt, ending, exact, joined, placesOf, score, usersIn } from './futureReference.ts'

const budgets = [4_000, 8_000]
/** Three quarters of a limit of 32,000 tokens. */
const full = 24_000

type Case = Cut & { readonly half: 'even' | 'odd'; readonly isFull: boolean }
type Result = {
  readonly one: Case
  readonly budget: number
  readonly ours: number
  readonly window: number
  readonly isOver: boolean
}

/** Where the data's description cuts, and before the last user message that the limit leaves room for. */
function casesOf(messages: readonly BenchMessage[], half: Case['half']): Case[] {
  let tokens = 0
  const reached = messages.map(({ text }) => (tokens += exact.count(text)))
  const near = tokens > full ? usersIn(messages).findLast((place) => (reached[place - 1] ?? 0) <= full) : undefined
  return [...new Set([...placesOf(messages), ...(near === undefined ? [] : [near])])].flatMap((place) => {
    const cut = cutAt(messages, place)
    return cut === undefined ? [] : [{ ...cut, half, isFull: place === near }]
  })
}

async function restored(past: readonly BenchMessage[]): Promise<readonly string[]> {
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

async function resultsOf(one: Case): Promise<Result[]> {
  const texts = await restored(one.past)
  return budgets.map((budget, at) => {
    const text = texts[at] ?? ''
    const isOver = exact.count(text) > budget
    const window = score(ending(joined(one.past), budget), one.wanted)
    return { one, budget, ours: isOver ? 0 : score(text, one.wanted), window, isOver }
  })
}

const groups: readonly (readonly [name: string, holds: (one: Case) => boolean])[] = [
  ['all', () => true],
  ['even transcripts', ({ half }) => half === 'even'],
  ['odd transcripts', ({ half }) => half === 'odd'],
  ['at 75 % of 32k', ({ isFull }) => isFull],
]
const results: Result[] = []
for (const [at, { messages }] of load('transcripts-dev').entries())
  for (const one of casesOf(messages, at % 2 === 0 ? 'even' : 'odd')) results.push(...(await resultsOf(one)))

const mean = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0) / numbers.length
console.log('transcripts-dev: future reference in %, restored against the last N tokens, clipped')
for (const budget of budgets)
  for (const [name, holds] of groups) {
    const own = results.filter((result) => result.budget === budget && holds(result.one))
    const [ours, window] = [mean(own.map((result) => result.ours)), mean(own.map((result) => result.window))]
    const over = own.filter(({ isOver }) => isOver).length
    console.log(
      `  ${budget}, ${name}, ${own.length} cuts: ${percent(ours)} against ${percent(window)} (${percent(ours - window)} points), ${over} over budget`,
    )
  }
