import { lifecycleWith } from './lifecycle/lifecycle.ts'
import { embeddingWith } from './memory/embedding.ts'
import { library } from './memory/fileSearch.ts'
import type { ForgetBeside, Portable } from './memory/memoryDeps.ts'
import { replaying } from './memory/replay.ts'
import { secretBarrier } from './memory/secretMasker.ts'
import type { Memory } from './memory.ts'
import { type MemoryOptions, openOn } from './open.ts'
import { openStore } from './stores/open.ts'
import { whenIn } from './text/dates.ts'
import { tokenizerNamed } from './tokenizers/tokenizers.ts'
import { upkeepWith } from './upkeep/upkeep.ts'

/** Imported on demand. */
const portable: Portable = {
  async *exportBundle(store, options) {
    const { exportBundle } = await import('./portable/export.ts')
    yield* exportBundle(store, options)
  },
  async importBundle(store, open, options) {
    const { importBundle } = await import('./portable/import.ts')
    return importBundle(store, open, options)
  },
}

/** Forgets scopes and texts in the graph too, which is imported on demand. */
const forgetBeside: ForgetBeside = async (stores, target, forgotten) =>
  'scope' in target ? (await import('./graph/graph.ts')).forgetBeside(stores, target, forgotten) : forgotten

/**
 * Opens a memory on Node.
 *
 * @throws {MemoryError} `bad-option` or `bad-profile` for wrong options, and the codes of the store that is opened.
 *
 * @example
 * await using memory = await openMemory()
 * await memory.append('acme:ann', [{ role: 'user', content: 'My cat is called Miso.' }])
 * const { messages, ledger } = await memory.context('acme:ann', { budget: 2_000 })
 */
export function openMemory(options: MemoryOptions = {}): Promise<Memory> {
  const platform = {
    openStore,
    portable,
    beside: forgetBeside,
    tokenizer: tokenizerNamed,
    barrier: secretBarrier,
    dates: whenIn,
    embedding: embeddingWith,
    library,
    replaying,
    upkeep: (model: MemoryOptions['model']) =>
      upkeepWith({ model, pause: () => new Promise((resume) => setImmediate(resume)) }),
    lifecycle: (onSessionEnd: MemoryOptions['onSessionEnd']) => lifecycleWith({ onSessionEnd }),
    clock: Date.now,
  }
  return openOn(platform, options)
}

export type { ExportOptions, Imported, ImportOptions } from './domain/bundle.ts'
export type { Incoming } from './domain/chat.ts'
export type { About, Entry, Fact, Knowledge, Message, Summary } from './domain/entry.ts'
export { MemoryError } from './domain/error.ts'
export { formatKey, type Key, parseKey } from './domain/key.ts'
export type { AnthropicContext, Context, Ledger, Line } from './domain/ledger.ts'
export { parseProfile } from './domain/parseProfile.ts'
export type { Embedder, Index, Model, Store, Tokenizer } from './domain/ports.ts'
export type { Profile } from './domain/profile.ts'
export type { EndMeta, OnSessionEnd, Reason, SessionEnd } from './lifecycle/endEvent.ts'
export { type Lifecycle, type LifecycleOptions, lifecycleWith } from './lifecycle/lifecycle.ts'
export type { Description } from './lifecycle/metadata.ts'
export type { ContextOptions } from './memory/contextBuilder.ts'
export type { EmbeddingProgress } from './memory/embedding.ts'
export type { Forgotten, Rederive, Target } from './memory/forget.ts'
export type { Remembered } from './memory/knowledge.ts'
export type { SearchOptions, SearchQuery, SearchResult } from './memory/search.ts'
export { Memory } from './memory.ts'
export { profiles } from './profiles/index.ts'
export { type EmbedderAccess, openaiEmbedder } from './providers/embedder.ts'
export { type Bounded, type Pack, type Room, ramStore } from './stores/ram.ts'
export { tokenizerFor } from './tokenizers/tokenizers.ts'
export type { MemoryRecord } from './upkeep/record.ts'
export type { UpkeepHealth } from './upkeep/scheduler.ts'
export { type Upkeep, type UpkeepOptions, upkeepWith } from './upkeep/upkeep.ts'
export type { MemoryOptions }
