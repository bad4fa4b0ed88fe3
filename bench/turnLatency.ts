// Latency of one turn, append and context, with 1,000 and 10,000 messages of history, compared with peers.
import { decode } from 'gpt-tokenizer/encoding/o200k_base'
import { percentile } from '../src/evaluation/statistics.ts'
import { openMemory, profiles } from '../src/index.ts'

/** English words, most frequent first. */
const words = Array.from({ length: 40_000 }, (_, token) => decode([token + 256])).flatMap((text) =>
  /^ [a-z]{3,12}$/.test(text) ? [text.slice(1)] : [],
)

const budget = 2_000
const sizes = [1_000, 10_000] as const
const turns = 100
const warmUpTurns = 60

/** Generates sentences with Zipf-distributed words, so that a query matches part of the history. */
function* generateSentences(): Generator<string> {
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

const createMessages = (count: number) => {
  const sentences = generateSentences()
  return Array.from({ length: count }, (_, index) => ({
    role: index % 2 === 0 ? ('user' as const) : ('assistant' as const),
    content: sentences.next().value as string,
    at: index * 60_000,
  }))
}

/** Creates a history of `size` messages, and returns a function that runs the next turn. */
type Contender = (size: number) => Promise<(turn: number) => Promise<unknown>>

const createThreadkeep =
  (name: keyof typeof profiles): Contender =>
  async (size) => {
    const memory = await openMemory({ profile: { ...profiles[name], lifetime: { whenFull: 'refuse' } } })
    const history = createMessages(size + 2 * (turns + warmUpTurns))
    await memory.append('bench:one', history.slice(0, size))
    // Summarising the imported history is not part of a turn.
    await memory.upkeep.whenIdle()
    return async (turn) => {
      await memory.append('bench:one', history.slice(size + 2 * turn, size + 2 * turn + 1))
      return memory.context('bench:one', { budget })
    }
  }

// Peers are installed with `npm --prefix bench ci`.
const importPeer = async <T>(name: string): Promise<T> => import(name)
type MessageClass = new (content: string) => { content: string }
type Langchain = {
  AIMessage: MessageClass
  HumanMessage: MessageClass
  trimMessages: (messages: object[], options: object) => Promise<unknown>
}
type LlamaIndex = {
  createMemory: (options: object) => { add(message: unknown): Promise<void>; getLLM(): Promise<unknown> }
}

const langchain: Contender = async (size) => {
  const { AIMessage, HumanMessage, trimMessages } = await importPeer<Langchain>('@langchain/core/messages')
  const messages = createMessages(size + turns + warmUpTurns).map(({ role, content }) =>
    role === 'user' ? new HumanMessage(content) : new AIMessage(content),
  )
  const tokenCounter = (counted: { content: string }[]): number =>
    counted.reduce((sum, message) => sum + Math.ceil(message.content.length / 4), 0)
  return (turn) => trimMessages(messages.slice(0, size + turn), { maxTokens: budget, strategy: 'last', tokenCounter })
}

const llamaindex: Contender = async (size) => {
  const { createMemory } = await importPeer<LlamaIndex>('@llamaindex/core/memory')
  const memory = createMemory({ tokenLimit: budget, memoryBlocks: [] })
  const history = createMessages(size + turns + warmUpTurns)
  for (const message of history.slice(0, size)) await memory.add(message)
  return async (turn) => {
    await memory.add(history[size + turn])
    return memory.getLLM()
  }
}

/** Returns the median time of a turn for each size. Sizes are interleaved, so that other load affects both alike. */
async function measureMedians(contender: Contender): Promise<number[]> {
  const runs = await Promise.all(sizes.map(async (size) => ({ runTurn: await contender(size), times: [] as number[] })))
  for (let turn = 0; turn < warmUpTurns + turns; turn++) {
    for (const { runTurn, times } of runs) {
      const start = performance.now()
      await runTurn(turn)
      if (turn >= warmUpTurns) times.push(performance.now() - start)
    }
  }
  return runs.map(({ times }) =>
    percentile(
      times.sort((a, b) => a - b),
      0.5,
    ),
  )
}

const contenders: Record<string, Contender> = {
  '@langchain/core trimMessages': langchain,
  '@llamaindex/core Memory': llamaindex,
}
for (const name of Object.keys(profiles) as (keyof typeof profiles)[]) contenders[name] = createThreadkeep(name)
const rows = new Map<string, number[]>()
for (const [name, contender] of Object.entries(contenders)) rows.set(name, await measureMedians(contender))
const thread = rows.get('thread')?.[1] as number
console.log(`append + context at ${budget} tokens, ms, median of ${turns} turns`)
for (const [name, [one, ten]] of rows as Map<string, [number, number]>) {
  console.log(
    `  ${name.padEnd(30)} ${sizes[0]}: ${one.toFixed(3)}   ${sizes[1]}: ${ten.toFixed(3)}   growth ${(ten / one).toFixed(2)}×   ${(ten / thread).toFixed(1)}× thread`,
  )
}
