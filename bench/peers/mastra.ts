// Mastra memory: last messages and semantic recall, with its in-memory storage and LibSQL's vectors in RAM.
import type { DatasetMessage } from '../../src/evaluation/dataset.ts'
import type { MemorySystem } from '../../src/evaluation/system.ts'
import { type Encoder, encoderName } from '../encoder.ts'
import { importPeer } from '../measure.ts'
import {
  clipToFit,
  countTokens,
  createPassage,
  findLargestFitting,
  formatMessage,
  type Passage,
  rememberLast,
  renderPassages,
} from './passages.ts'

type MastraMessage = {
  readonly id: string
  readonly role: 'user' | 'assistant'
  readonly createdAt: Date
  readonly threadId: string
  readonly resourceId: string
  readonly content: { readonly format: 2; readonly content: string; readonly parts: readonly unknown[] }
}
type RecallOptions = {
  readonly lastMessages: number | false
  readonly semanticRecall: { readonly topK: number; readonly messageRange: number; readonly scope: 'thread' }
}
type MastraMemory = {
  createThread(thread: { threadId: string; resourceId: string }): Promise<unknown>
  saveMessages(input: { messages: readonly MastraMessage[] }): Promise<unknown>
  recall(input: {
    threadId: string
    resourceId: string
    vectorSearchString: string
    threadConfig: RecallOptions
  }): Promise<{ readonly messages: readonly { readonly id: string }[] }>
}
type MemoryPackage = { Memory: new (config: unknown) => MastraMemory }
type StoragePackage = { InMemoryStore: new () => unknown }
type VectorQuery = { readonly queryVector: readonly number[]; readonly topK: number }
type VectorStore = { query(params: VectorQuery): Promise<readonly unknown[]> }
type VectorPackage = { LibSQLVector: new (config: { id: string; url: string }) => VectorStore }

const [threadId, resourceId] = ['thread', 'user']

/**
 * Selects the number of neighbours on each side that are shown with a recalled message: 1, the default, finds more in
 * dialogues; next to long answers, neighbours take the room of other results.
 */
const selectMessageRange = (meanTokens: number): 0 | 1 => (meanTokens > 100 ? 0 : 1)

/**
 * Creates a vector store in RAM that asks LibSQL once for all results of a query and returns the first `topK`. LibSQL takes
 * 40 ms for 400 vectors, and the search for the largest `topK` repeats the query.
 */
function createVectorStore({ LibSQLVector }: VectorPackage, size: number): VectorStore {
  class CachedVector extends LibSQLVector {
    readonly #search = rememberLast((_query, params: VectorQuery) => super.query({ ...params, topK: size }))
    override async query(params: VectorQuery): Promise<readonly unknown[]> {
      return (await this.#search(params.queryVector.join(), params)).slice(0, params.topK)
    }
  }
  return new CachedVector({ id: 'vectors', url: ':memory:' })
}

/** The AI SDK's interface of an encoder. */
const createEmbeddingModel = (encoder: Encoder) => ({
  specificationVersion: 'v2',
  provider: 'local',
  modelId: encoderName,
  maxEmbeddingsPerCall: 100,
  supportsParallelCalls: false,
  doEmbed: async ({ values }: { values: readonly string[] }) => ({ embeddings: await encoder.embed(values) }),
})

const toMastraMessage = (message: DatasetMessage, order: number): MastraMessage => ({
  id: String(order),
  role: message.role,
  // Mastra orders messages by time, and some datasets have no times or equal ones.
  createdAt: new Date(1_700_000_000_000 + order * 1_000),
  threadId,
  resourceId,
  content: { format: 2, content: formatMessage(message), parts: [{ type: 'text', text: formatMessage(message) }] },
})

/**
 * `recall` returns a set of messages in reading order. The largest `topK` that fits is searched for; the messages that one
 * more result would add are clipped to the rest of the budget.
 *
 * @param recentShare Share of the budget for the last messages.
 */
export async function loadMastra(encoder: Encoder, recentShare: number): Promise<MemorySystem | undefined> {
  const memoryPackage = await importPeer<MemoryPackage>('@mastra/memory')
  const storage = await importPeer<StoragePackage>('@mastra/core/storage')
  const libsql = await importPeer<VectorPackage>('@mastra/libsql')
  if (memoryPackage === undefined || storage === undefined || libsql === undefined) return undefined
  return {
    name: '@mastra/memory',
    async open({ messages }) {
      const passages = messages.map((message, order) => createPassage(message, order))
      const meanTokens = sumTokens(passages) / passages.length
      const messageRange = selectMessageRange(meanTokens)
      const memory = new memoryPackage.Memory({
        storage: new storage.InMemoryStore(),
        vector: createVectorStore(libsql, messages.length),
        embedder: createEmbeddingModel(encoder),
        options: { semanticRecall: { topK: 4, messageRange, scope: 'thread' } },
      })
      // Encodes in batches; Mastra asks for one text at a time.
      await encoder.embed(messages.map(formatMessage))
      await memory.createThread({ threadId, resourceId })
      await memory.saveMessages({ messages: messages.map(toMastraMessage) })
      const tokensPerResult = meanTokens * (1 + 2 * messageRange)
      const recall = rememberLast(async (query) => createRecall(memory, passages, query, messageRange))
      return {
        async context(query, budget) {
          const lastMessages = countLastMessages(passages, recentShare * budget)
          const search = await recall(query)
          return fillBudget((topK) => search(topK, lastMessages), { max: messages.length, budget, tokensPerResult })
        },
        close: async () => undefined,
      }
    },
  }
}

type Recall = (topK: number, lastMessages: number) => Promise<readonly Passage[]>

/** Creates a recall for one query, which remembers its results. */
function createRecall(memory: MastraMemory, passages: readonly Passage[], query: string, messageRange: number): Recall {
  const results = new Map<string, Promise<readonly Passage[]>>()
  const recall: Recall = async (topK, lastMessages) => {
    const { messages } = await memory.recall({
      threadId,
      resourceId,
      vectorSearchString: query,
      threadConfig: {
        lastMessages: lastMessages === 0 ? false : lastMessages,
        semanticRecall: { topK, messageRange, scope: 'thread' },
      },
    })
    return messages.flatMap(({ id }) => passages[Number(id)] ?? [])
  }
  return (topK, lastMessages) => {
    const key = `${topK} ${lastMessages}`
    const result = results.get(key) ?? recall(topK, lastMessages)
    results.set(key, result)
    return result
  }
}

async function fillBudget(
  search: (topK: number) => Promise<readonly Passage[]>,
  limits: { readonly max: number; readonly budget: number; readonly tokensPerResult: number },
): Promise<string> {
  const { max, budget } = limits
  const topK = await findLargestFitting(limits, async (size) => countRendered(await search(size), budget))
  const shown = topK === 0 ? [] : await search(topK)
  const text = renderPassages(shown)
  const next = topK === max ? [] : (await search(topK + 1)).filter((passage) => !shown.includes(passage))
  if (next.length === 0) return text
  const room = budget - countTokens(`${text}\n`)
  return clipToFit(`${text}\n${clipToFit(renderPassages(next), room)}`, budget)
}

const sumTokens = (passages: readonly Passage[]): number => passages.reduce((sum, { tokens }) => sum + tokens, 0)

/** Counts the rendered passages; the sum of their tokens is near enough far above the budget. */
function countRendered(passages: readonly Passage[], budget: number): number {
  const sum = sumTokens(passages)
  return sum > 2 * budget ? sum : countTokens(renderPassages(passages))
}

function countLastMessages(passages: readonly Passage[], tokens: number): number {
  let [count, spent] = [0, 0]
  for (const passage of passages.toReversed()) {
    spent += passage.tokens
    if (spent > tokens) break
    count++
  }
  return count
}
