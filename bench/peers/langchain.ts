// LangChain: trimMessages, and a vector store as memory.
import type { DatasetMessage } from '../../src/evaluation/dataset.ts'
import type { MemorySystem } from '../../src/evaluation/system.ts'
import type { Encoder } from '../encoder.ts'
import { importPeer } from '../measure.ts'
import {
  clipToFit,
  countTokens,
  createPassage,
  formatMessage,
  type Passage,
  packPassages,
  rememberLast,
  renderPassages,
} from './passages.ts'

type BaseMessage = { readonly id?: string; readonly content: string }
type MessageConstructor = new (fields: { id: string; content: string }) => BaseMessage
type Messages = {
  HumanMessage: MessageConstructor
  AIMessage: MessageConstructor
  trimMessages(
    messages: readonly BaseMessage[],
    options: {
      maxTokens: number
      strategy: 'last'
      allowPartial: boolean
      tokenCounter(messages: readonly BaseMessage[]): number
    },
  ): Promise<readonly BaseMessage[]>
}

/** The last messages up to the budget. The oldest of them may be cut at a line break (`allowPartial`). */
export async function loadTrimMessages(): Promise<MemorySystem | undefined> {
  const core = await importPeer<Messages>('@langchain/core/messages')
  if (core === undefined) return undefined
  return {
    name: '@langchain/core trimMessages',
    async open({ messages }) {
      const history = messages.map((message, order) => {
        const fields = { id: String(order), content: formatMessage(message) }
        return message.role === 'user' ? new core.HumanMessage(fields) : new core.AIMessage(fields)
      })
      const trim = async (budget: number): Promise<string> => {
        const kept = await core.trimMessages(history, {
          maxTokens: budget,
          strategy: 'last',
          allowPartial: true,
          tokenCounter: createCounter(messages, budget),
        })
        return clipToFit(renderPassages(kept.map((message) => toPassage(messages, message))), budget)
      }
      const contexts = new Map<number, Promise<string>>()
      return {
        // The result does not depend on the question.
        context(_query, budget) {
          const context = contexts.get(budget) ?? trim(budget)
          contexts.set(budget, context)
          return context
        },
        close: async () => undefined,
      }
    },
  }
}

const toPassage = (messages: readonly DatasetMessage[], { id, content }: BaseMessage): Passage =>
  createPassage(messages[Number(id)] as DatasetMessage, Number(id), content)

/** Counts rendered messages, date lines included. `trimMessages` counts the list again for every message it drops. */
function createCounter(messages: readonly DatasetMessage[], budget: number) {
  const passages = new Map<string, Passage>()
  return (counted: readonly BaseMessage[]): number => {
    let [total, shownDay] = [0, '']
    for (const message of counted) {
      if (total > budget) return total
      // Exact counts of texts that are far too long would take minutes.
      if (message.content.length > 16 * budget) return budget + 1
      const key = `${message.id} ${message.content.length}`
      const passage = passages.get(key) ?? toPassage(messages, message)
      passages.set(key, passage)
      total += passage.tokens
      if (passage.day !== shownDay) total += countTokens(`[${passage.day}]\n`)
      shownDay = passage.day
    }
    return total
  }
}

type Document = { readonly pageContent: string; readonly metadata: { readonly order: number } }
type VectorStore = {
  addDocuments(documents: readonly Document[]): Promise<void>
  similaritySearch(query: string, count: number): Promise<readonly Document[]>
}
type VectorStores = {
  MemoryVectorStore: new (embeddings: {
    embedQuery(text: string): Promise<number[]>
    embedDocuments(texts: string[]): Promise<number[][]>
  }) => VectorStore
}
type TextSplitters = {
  RecursiveCharacterTextSplitter: new (options: {
    chunkSize: number
    chunkOverlap: number
  }) => { splitText(text: string): Promise<string[]> }
}

/** LangChain's interface of an encoder. */
export const createLangChainEmbeddings = ({ embed }: Encoder) => ({
  embedQuery: async (text: string) => (await embed([text]))[0] as number[],
  embedDocuments: (texts: readonly string[]) => embed(texts),
})

/**
 * Messages in a `MemoryVectorStore`, split as LangChain's guides do (1,000 characters, 200 of overlap). All documents are
 * requested, and the nearest that fit are shown.
 */
export async function loadVectorStoreMemory(encoder: Encoder): Promise<MemorySystem | undefined> {
  const stores = await importPeer<VectorStores>('@langchain/classic/vectorstores/memory')
  const splitters = await importPeer<TextSplitters>('@langchain/textsplitters')
  if (stores === undefined || splitters === undefined) return undefined
  const splitter = new splitters.RecursiveCharacterTextSplitter({ chunkSize: 1_000, chunkOverlap: 200 })
  return {
    name: 'LangChain MemoryVectorStore',
    async open({ messages }) {
      const documents: Document[] = []
      for (const [order, message] of messages.entries())
        for (const pageContent of await splitter.splitText(formatMessage(message)))
          documents.push({ pageContent, metadata: { order } })
      const store = new stores.MemoryVectorStore(createLangChainEmbeddings(encoder))
      await store.addDocuments(documents)
      const search = rememberLast(async (query) =>
        (await store.similaritySearch(query, documents.length)).map(({ pageContent, metadata: { order } }) =>
          createPassage(messages[order] as DatasetMessage, order, pageContent),
        ),
      )
      return {
        context: async (query, budget) => packPassages(await search(query), budget),
        close: async () => undefined,
      }
    },
  }
}
