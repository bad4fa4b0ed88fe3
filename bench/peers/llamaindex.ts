// LlamaIndex Memory with a vector block.
import type { DatasetMessage } from '../../src/evaluation/dataset.ts'
import type { MemorySystem } from '../../src/evaluation/system.ts'
import type { Encoder } from '../encoder.ts'
import { importPeer } from '../measure.ts'
import { clipToFit, countTokens, formatDay, formatMessage, rememberLast } from './passages.ts'

type ChatMessage = { readonly role: string; readonly content: string }
type Memory = {
  add(message: ChatMessage): Promise<void>
  manageMemoryBlocks(): Promise<void>
  getLLM(llm?: undefined, transientMessages?: readonly ChatMessage[]): Promise<readonly ChatMessage[]>
}
type TextNode = { readonly id_: string }
type QueryResult = { readonly similarities: readonly number[]; readonly ids: readonly string[] }
type EmbedModel = { getTextEmbedding(text: string): Promise<number[]> }
type Store = {
  add(nodes: readonly TextNode[]): Promise<readonly string[]>
  query(query: object): Promise<QueryResult>
}
type LlamaIndex = {
  createMemory(
    messages: readonly ChatMessage[],
    options: { tokenLimit: number; shortTermTokenLimitRatio: number; memoryBlocks: readonly unknown[] },
  ): Memory
  vectorBlock(options: {
    id: string
    priority: number
    vectorStore: unknown
    queryOptions: { similarityTopK: number }
  }): unknown
  SimpleVectorStore: new (options: { embedModel: EmbedModel }) => Store
  Settings: { tokenizer: { encode(text: string): { readonly length: number } } }
}

/**
 * Creates a vector store in RAM. `SimpleVectorStore` is the only one without a server, but it keeps no text, and the vector
 * block asks for a store that does: this one adds the nodes. It holds one conversation, so that it needs no filters.
 */
function createTextStore({ SimpleVectorStore }: LlamaIndex, embedModel: EmbedModel): unknown {
  const nodes = new Map<string, TextNode>()
  class TextVectorStore extends SimpleVectorStore {
    readonly storesText = true
    override add(added: readonly TextNode[]): Promise<readonly string[]> {
      for (const node of added) nodes.set(node.id_, node)
      return super.add(added)
    }
    override async query(query: object) {
      const result = await super.query({ ...query, filters: undefined })
      return { ...result, nodes: result.ids.map((id) => nodes.get(id)) }
    }
  }
  return new TextVectorStore({ embedModel })
}

/** More results than fit into any budget. */
const maxResults = 1_000

/** The block returns text without metadata, so that the date has to be part of it. */
const formatDated = (message: DatasetMessage): string => {
  const day = formatDay(message)
  return `${day === '' ? '' : `[${day}] `}${formatMessage(message)}`
}

/**
 * Every message becomes a node of the vector block, because the memory that ingests has no short-term part. A question is a
 * new session with the same block, so that the question alone is the query. The block returns its nodes best first, as one
 * text that is clipped to the budget.
 *
 * @param recentShare Share of the budget for short-term memory, the newest messages.
 */
export async function loadLlamaIndex(encoder: Encoder, recentShare: number): Promise<MemorySystem | undefined> {
  const llamaindex = await importPeer<LlamaIndex>('llamaindex')
  if (llamaindex === undefined) return undefined
  const { createMemory, vectorBlock, Settings } = llamaindex
  Settings.tokenizer = { encode: (text) => ({ length: countTokens(text) }) }
  const embedModel: EmbedModel = { getTextEmbedding: async (text) => (await encoder.embed([text]))[0] as number[] }
  return {
    name: 'llamaindex Memory',
    async open({ messages }) {
      const history = messages.map((message) => ({ role: message.role, content: formatDated(message) }))
      // Encodes in batches the texts that the block creates one by one.
      await encoder.embed(history.map(({ role, content }) => `<message role='${role}'>${content}</message>`))
      const memoryBlocks = [
        vectorBlock({
          id: 'history',
          priority: 1,
          vectorStore: createTextStore(llamaindex, embedModel),
          queryOptions: { similarityTopK: Math.min(messages.length, maxResults) },
        }),
      ]
      const options = { tokenLimit: Number.MAX_SAFE_INTEGER, shortTermTokenLimitRatio: 0, memoryBlocks }
      const memory = createMemory([], { ...options, tokenLimit: 1 })
      for (const message of history) {
        await memory.add(message)
        await memory.manageMemoryBlocks()
      }
      const search = rememberLast(async (query) => {
        const shown = await createMemory([], options).getLLM(undefined, [{ role: 'user', content: query }])
        return shown.length > 1 ? (shown[0] as ChatMessage).content : ''
      })
      const readRecent = async (tokenLimit: number): Promise<string> => {
        const recent = createMemory(history, { tokenLimit, shortTermTokenLimitRatio: 1, memoryBlocks: [] })
        return (await recent.getLLM()).map(({ content }) => `\n${content}`).join('')
      }
      return {
        async context(query, budget) {
          const recent = recentShare === 0 ? '' : await readRecent(Math.floor(recentShare * budget))
          const found = clipToFit(await search(query), budget - countTokens(recent))
          return clipToFit(`${found}${recent}`, budget)
        },
        close: async () => undefined,
      }
    },
  }
}
