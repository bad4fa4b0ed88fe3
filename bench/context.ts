// The cost of one turn: append a message and build the context, with 1,000 and with 10,000 messages of history, side by side with peers.

import { decode } from 'gpt-tokenizer/encoding/o200k_base'
import { openMemory, profiles } from '../src/index.ts'
import { percentile } from './data.ts'

/** English words, the commonest first. */
const words = Array.from({ length: 40_000 }, (_, token) => decode([token + 256])).flatMap((text) => (/^ [a-z]{3,12}$/.test(text) ? [text.slice(1)] : []))

const budget = 2_000
const sizes = [1_000, 10_000] as const
const turns = 100
const warm = 50

/** Words as common as their rank makes them, so that questions match some of the history and not all of it. */
function* sentences(): Generator<string> {
  let state = 42
  const random = (): number => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
  for (;;) {
    const length = 8 + Math.floor(random() * 40)
    yield `${Array.from({ length }, () => words[Math.floor(words.length ** random())]).join(' ')}.`
  }
}

const talk = (count: number) => {
  const source = sentences()
  return Array.from({ length: count }, (_, at) => ({
    role: at % 2 === 0 ? ('user' as const) : ('assistant' as const),
    content: source.next().value as string,
    at: at * 60_000,
  }))
}

/** The median time of a turn, in milliseconds. */
async function median(turn: (at: number) => Promise<unknown>): Promise<number> {
  for (let at = 0; at < warm; at++) await turn(at)
  const times: number[] = []
  for (let at = warm; at < warm + turns; at++) {
    const start = performance.now()
    await turn(at)
    times.push(performance.now() - start)
  }
  return percentile(
    times.sort((a, b) => a - b),
    0.5,
  )
}

async function ours(name: keyof typeof profiles, size: number): Promise<number> {
  const { lifetime: _, ...profile } = profiles[name]
  await using memory = await openMemory({ profile: { ...profile, lifetime: { whenFull: 'refuse' } } })
  const history = talk(size + 2 * (turns + warm))
  await memory.append('bench:one', history.slice(0, size))
  return await median(async (at) => {
    await memory.append('bench:one', history.slice(size + 2 * at, size + 2 * at + 1))
    return memory.context('bench:one', { budget })
  })
}

// not part of the package: installed with `npm --prefix bench ci`
const peer = async <T>(name: string): Promise<T> => import(name)

type Made = new (content: string) => { content: string }
type Langchain = { AIMessage: Made; HumanMessage: Made; trimMessages: (messages: object[], options: object) => Promise<unknown> }
type LlamaIndex = { createMemory: (options: object) => { add(message: unknown): Promise<void>; getLLM(): Promise<unknown> } }

async function langchain(size: number): Promise<number> {
  const { AIMessage, HumanMessage, trimMessages } = await peer<Langchain>('@langchain/core/messages')
  const made = talk(size + turns + warm).map(({ role, content }) => (role === 'user' ? new HumanMessage(content) : new AIMessage(content)))
  const tokenCounter = (messages: { content: string }[]): number => messages.reduce((sum, message) => sum + Math.ceil(message.content.length / 4), 0)
  return median((at) => trimMessages(made.slice(0, size + at), { maxTokens: budget, strategy: 'last', tokenCounter }))
}

async function llamaindex(size: number): Promise<number> {
  const { createMemory } = await peer<LlamaIndex>('@llamaindex/core/memory')
  const memory = createMemory({ tokenLimit: budget, memoryBlocks: [] })
  const history = talk(size + turns + warm)
  for (const message of history.slice(0, size)) await memory.add(message)
  return median(async (at) => {
    await memory.add(history[size + at])
    return memory.getLLM()
  })
}

console.log(`append + context at ${budget} tokens, median of ${turns} turns, ms`)
const rows: Record<string, number[]> = {}
for (const name of Object.keys(profiles) as (keyof typeof profiles)[]) {
  rows[name] = []
  for (const size of sizes) rows[name].push(await ours(name, size))
}
for (const [name, run] of Object.entries({ '@langchain/core trimMessages': langchain, '@llamaindex/core Memory': llamaindex })) {
  rows[name] = []
  for (const size of sizes) rows[name].push(await run(size))
}
const thread = rows.thread?.[1] as number
for (const [name, [small, large]] of Object.entries(rows) as [string, [number, number]][]) {
  console.log(
    `  ${name.padEnd(30)} ${sizes.map((size, at) => `${size}: ${(at === 0 ? small : large).toFixed(3)}`).join('   ')}   growth ${(large / small).toFixed(2)}×   ${(large / thread).toFixed(1)}× thread`,
  )
}
