// Memory systems of other packages, and Threadkeep with the same encoder.
import { toMessageInput } from '../../src/evaluation/dataset.ts'
import type { MemorySystem } from '../../src/evaluation/system.ts'
import { openMemory } from '../../src/index.ts'
import { type Encoder, type EncoderProgress, encoderName, loadEncoder } from '../encoder.ts'
import { loadTrimMessages, loadVectorStoreMemory } from './langchain.ts'
import { loadLlamaIndex } from './llamaindex.ts'
import { loadMastra } from './mastra.ts'
import { loadMem0 } from './mem0.ts'

const key = 'bench:conversation'

/** The default profile with the encoder that the peers use. */
const createThreadWithEncoder = ({ embed }: Encoder): MemorySystem => ({
  name: 'thread + encoder',
  async open({ messages }) {
    const memory = await openMemory({
      profile: 'thread',
      embedder: {
        name: encoderName,
        embed: async (texts) => (await embed(texts)).map((vector) => Float32Array.from(vector)),
      },
    })
    await memory.append(key, messages.map(toMessageInput))
    await memory.upkeep.whenIdle()
    await memory.embeddingProgress({ settled: true })
    return {
      context: async (query, budget) => (await memory.context(key, { query, budget })).text,
      close: () => memory.close(),
    }
  },
})

export type PeerOptions = {
  /**
   * Share of the budget for the newest messages, for peers that divide it: 0 suits questions about the past, 0.5 work that
   * goes on. Threadkeep has one setting for both.
   */
  readonly recentShare: number
  readonly onEncode?: EncoderProgress | undefined
}

/** Loads the peers that are installed; the others are named on the console. */
export async function loadPeers({ recentShare, onEncode }: PeerOptions): Promise<MemorySystem[]> {
  const trimMessages = await loadTrimMessages()
  const encoder = await loadEncoder(onEncode)
  if (encoder === undefined) return [trimMessages].filter(isLoaded)
  const peers = [
    createThreadWithEncoder(encoder),
    trimMessages,
    await loadVectorStoreMemory(encoder),
    await loadLlamaIndex(encoder, recentShare),
    await loadMastra(encoder, recentShare),
    await loadMem0(encoder),
  ]
  return peers.filter(isLoaded)
}

const isLoaded = (system: MemorySystem | undefined): system is MemorySystem => system !== undefined
