// The cost of one turn: append a message and build the context, with 1,000 and with 10,000 messages of history, side by side with peers.

import { decode } from 'gpt-tokenizer/encoding/o200k_base'
import { openMemory, profiles } from '../src/index.ts'
import { percentile } from './data.ts'

/** English words, the commonest first. */
const words = Array.from({ length: 40_000 }, (_, token) => decode([token + 256])).flatMap((text) =>
  /^ [a-z]{3,12}$/.test(text) ? [text.slice(1)] : [],
)

const budget = 2_000
const sizes = [1_000, 10_000] as const
const turns = 100
const warm = 60

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

/** Makes a history of so many messages, and answers with what takes the next turn on it. */
type Subject = (size: number) => Promise<(at: number) => Promise<unknown>>

const ours =
  (name: keyof typeof profiles): Subject =>
  async (size) => {
    const memory = await openMemory({ profile: { ...profiles[name], lifetime: { whenFull: 'refuse' } } })
    const history = talk(size + 2 * (turns + warm))
    await memory.append('bench:one', history.slice(0, size))
    return async (at) => {
      await memory.append('bench:one', history.slice(size + 2 * at, size + 2 * at + 1))
      return memory.context('bench:one', { budget })
    }
  }

// not part of the package: installed with `npm --prefix bench ci`
const peer = async <T>(name: string): Promise<T> => import(name)
type Made = new (content: string) => { content: string }
type Langchain = {
  AIMessage: Made
  HumanMessage: Made
  trimMessages: (messages: object[], options: object) => Promise<unknown>
}
type LlamaIndex = {
  createMemory: (options: object) => { add(message: unknown): Promise<void>; getLLM(): Promise<unknown> }
}

const langchain: Subject = async (size) => {
  const { AIMessage, HumanMessage, trimMessages } = await peer<Langchain>('@langchain/core/messages')
  const made = talk(size + turns + warm).map(({ role, content }) =>
    role === 'user' ? new HumanMessage(content) : new AIMessage(content),
  )
  const tokenCounter = (messages: { content: string }[]): number =>
    messages.reduce((sum, message) => sum + Math.ceil(message.content.length / 4), 0)
  return (at) => trimMessages(made.slice(0, size + at), { maxTokens: budget, strategy: 'last', tokenCounter })
}

const llamaindex: Subject = async (size) => {
  const { createMemory } = await peer<LlamaIndex>('@llamaindex/core/memory')
  const memory = createMemory({ tokenLimit: budget, memoryBlocks: [] })
  const history = talk(size + turns + warm)
  for (const message of history.slice(0, size)) await memory.add(message)
  return async (at) => {
    await memory.add(history[size + at])
    return memory.getLLM()
  }
}

/** The median time of a turn on each size, turn and turn about, so that whatever else the machine is doing falls on both alike. */
async function medians(subject: Subject): Promise<number[]> {
  const sides = await Promise.all(sizes.map(async (size) => ({ turn: await subject(size), times: [] as number[] })))
  for (let at = 0; at < warm + turns; at++) {
    for (const { turn, times } of sides) {
      const start = performance.now()
      await turn(at)
      if (at >= warm) times.push(performance.now() - start)
    }
  }
  return sides.map(({ times }) =>
    percentile(
      times.sort((a, b) => a - b),
      0.5,
    ),
  )
}

const subjects: Record<string, Subject> = {
  '@langchain/core trimMessages': langchain,
  '@llamaindex/core Memory': llamaindex,
}
for (const name of Object.keys(profiles) as (keyof typeof profiles)[]) subjects[name] = ours(name)
const rows = new Map<string, number[]>()
for (const [name, subject] of Object.entries(subjects)) rows.set(name, await medians(subject))
const thread = rows.get('thread')?.[1] as number
console.log(`append + context at ${budget} tokens, ms, median of ${turns} turns`)
for (const [name, [one, ten]] of rows as Map<string, [number, number]>) {
  console.log(
    `  ${name.padEnd(30)} ${sizes[0]}: ${one.toFixed(3)}   ${sizes[1]}: ${ten.toFixed(3)}   growth ${(ten / one).toFixed(2)}×   ${(ten / thread).toFixed(1)}× thread`,
  )
}
