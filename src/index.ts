import type { Memory } from './memory.ts'
import { tokenizerNamed } from './models/tokenizers.ts'
import { type MemoryOptions, openOn } from './open.ts'
import { openStore } from './stores/open.ts'

/**
 * Opens a memory.
 *
 * @example
 * await using memory = await openMemory()
 * await memory.append('acme:ann', [{ role: 'user', content: 'My cat is called Miso.' }])
 * const { messages, ledger } = await memory.context('acme:ann', { budget: 2_000 })
 */
export function openMemory(options: MemoryOptions = {}): Promise<Memory> {
  return openOn({ openStore, tokenizer: tokenizerNamed, clock: Date.now, newId: () => crypto.randomUUID() }, options)
}

export type { Incoming } from './domain/chat.ts'
export type { Entry, Message } from './domain/entry.ts'
export { MemoryError } from './domain/error.ts'
export { formatKey, type Key, parseKey } from './domain/key.ts'
export type { AnthropicContext, Context, Ledger, Line } from './domain/ledger.ts'
export { parseProfile } from './domain/parseProfile.ts'
export type { Embedder, Index, Store, Tokenizer } from './domain/ports.ts'
export type { Profile } from './domain/profile.ts'
export type { EmbeddingProgress } from './memory/embedding.ts'
export type { Forgotten, Rederive, Target } from './memory/forgetting.ts'
export type { Remembered } from './memory/remembering.ts'
export type { ContextOptions, SearchOptions, SearchQuery, SearchResult } from './memory.ts'
export { Memory } from './memory.ts'
export { tokenizerFor } from './models/tokenizers.ts'
export { profiles } from './profiles/index.ts'
export { ramStore } from './stores/ram.ts'
export type { MemoryOptions }
