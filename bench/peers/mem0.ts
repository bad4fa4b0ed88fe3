// Mem0 OSS without a model: messages are stored as they are (`infer: false`), search is vectors plus BM25.
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MemorySystem } from '../../src/evaluation/system.ts'
import { type Encoder, encoderDimensions } from '../encoder.ts'
import { importPeer } from '../measure.ts'
import { createLangChainEmbeddings } from './langchain.ts'
import { createPassage, formatMessage, packPassages, rememberLast } from './passages.ts'

type Mem0 = {
  add(
    messages: readonly { role: string; content: string }[],
    options: { userId: string; infer: boolean; metadata: Readonly<Record<string, unknown>> },
  ): Promise<unknown>
  search(
    query: string,
    options: { filters: Readonly<Record<string, unknown>>; topK: number; threshold: number },
  ): Promise<{ readonly results: readonly { readonly metadata?: { readonly order?: number } }[] }>
}
type Mem0Package = { Memory: new (config: unknown) => Mem0 }

const userId = 'user'

const createConfig = (encoder: Encoder) => ({
  embedder: {
    provider: 'langchain',
    config: { model: createLangChainEmbeddings(encoder), embeddingDims: encoderDimensions },
  },
  vectorStore: { provider: 'memory', config: { dimension: encoderDimensions, dbPath: ':memory:' } },
  // Constructed, but never called with `infer: false`.
  llm: { provider: 'openai', config: { apiKey: 'unused' } },
  disableHistory: true,
})

/**
 * All memories are requested without a threshold, and the best that fit are shown. The role of a message is stored with its
 * text; the order is metadata.
 */
export async function loadMem0(encoder: Encoder): Promise<MemorySystem | undefined> {
  process.env.MEM0_TELEMETRY = 'false'
  process.env.MEM0_DIR = join(tmpdir(), 'threadkeep-bench', 'mem0')
  const mem0 = await importPeer<Mem0Package>('mem0ai/oss')
  if (mem0 === undefined) return undefined
  return {
    name: 'mem0ai (infer: false)',
    async open({ messages }) {
      const memory = new mem0.Memory(createConfig(encoder))
      // Encodes in batches; Mem0 asks for one text at a time.
      await encoder.embed(messages.map(formatMessage))
      for (const [order, message] of messages.entries())
        if (message.text.trim() !== '')
          await memory.add([{ role: message.role, content: formatMessage(message) }], {
            userId,
            infer: false,
            metadata: { order },
          })
      const passages = messages.map((message, order) => createPassage(message, order))
      const search = rememberLast(async (query) => {
        const { results } = await memory.search(query, {
          filters: { user_id: userId },
          topK: messages.length,
          threshold: 0,
        })
        return results.flatMap(({ metadata }) => passages[metadata?.order ?? -1] ?? [])
      })
      return {
        context: async (query, budget) => packPassages(await search(query), budget),
        close: async () => undefined,
      }
    },
  }
}
