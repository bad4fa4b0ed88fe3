import './requireNode.ts'
import { setTimeout as delay } from 'node:timers/promises'
import { checkExportOptions, checkImportOptions } from './domain/bundle.ts'
import { createLifecycle } from './lifecycle/lifecycle.ts'
import { fileSearch } from './memory/contextBuilder.ts'
import { createEmbeddingQueue } from './memory/embedding.ts'
import type { BundleIo, ForgetAuxiliary } from './memory/memoryDeps.ts'
import { replayer } from './memory/replay.ts'
import { createSecretMasker } from './memory/secretMasker.ts'
import type { Memory } from './memory.ts'
import { type MemoryOptions, openMemoryOn, type Platform } from './open.ts'
import { createWorkSelection } from './selection/workSelection.ts'
import { openStore } from './stores/open.ts'
import { yieldToEventLoop } from './stores/yieldToEventLoop.ts'
import { findPeriod } from './text/dates.ts'
import { tokenizerNamed } from './tokenizers/tokenizers.ts'
import { createUpkeep } from './upkeep/upkeep.ts'

/** Imported on demand. */
const bundles: BundleIo = {
  async *exportBundle(store, options) {
    checkExportOptions(options)
    const { exportBundle } = await import('./portable/export.ts')
    yield* exportBundle(store, options)
  },
  async importBundle(store, open, options, deps) {
    checkImportOptions(options)
    const { importBundle } = await import('./portable/import.ts')
    return importBundle(store, open, options, deps)
  },
}

/** Forgets scopes and texts in the graph too, which is imported on demand. */
const forgetAuxiliary: ForgetAuxiliary = async (stores, target, forgotten, placeholders) =>
  'scope' in target
    ? (await import('./graph/graph.ts')).forgetInGraphs(stores, target, forgotten, placeholders)
    : forgotten

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
  const platform: Platform = {
    openStore,
    bundles,
    forgetAuxiliary,
    tokenizer: tokenizerNamed,
    masker: (policy, tokenizer) => createSecretMasker(policy, tokenizer, yieldToEventLoop),
    parseDates: findPeriod,
    embedding: createEmbeddingQueue,
    sleep: (ms, signal, { background = false } = {}) => delay(ms, undefined, { signal, ref: !background }),
    fileSearch,
    createWorkSelection,
    replayer,
    upkeep: (model) => createUpkeep({ model, pause: yieldToEventLoop }),
    pause: yieldToEventLoop,
    lifecycle: (onSessionEnd) => createLifecycle({ onSessionEnd }),
    clock: Date.now,
  }
  return openMemoryOn(platform, options)
}

export type { ExportOptions, ImportOptions, ImportResult } from './domain/bundle.ts'
export type { MessageInput } from './domain/chat.ts'
export type { Entry, Fact, Knowledge, Message, SessionMetadata, Summary } from './domain/entry.ts'
export { MemoryError } from './domain/error.ts'
export { formatKey, type Key, parseKey } from './domain/key.ts'
export type { AnthropicContext, Context, Ledger, LedgerLine } from './domain/ledger.ts'
export { parseProfile } from './domain/parseProfile.ts'
export type { Embedder, Model, SearchIndex, Store, Tokenizer } from './domain/ports.ts'
export type { Profile } from './domain/profile.ts'
export type { OnSessionEnd, SessionEnd, SessionEndMeta, SessionEndReason } from './lifecycle/endEvent.ts'
export { createLifecycle, type Lifecycle, type LifecycleOptions } from './lifecycle/lifecycle.ts'
export type { SessionMetadataUpdate } from './lifecycle/metadata.ts'
export type { ContextOptions } from './memory/contextBuilder.ts'
export type { EmbeddingProgress } from './memory/embedding.ts'
export type { ForgetResult, ForgetTarget, Rederive } from './memory/forget.ts'
export type { KnowledgeInput } from './memory/knowledge.ts'
export type { SearchOptions, SearchQuery, SearchResult } from './memory/search.ts'
export { Memory } from './memory.ts'
export { profiles } from './profiles/index.ts'
export { type EmbedderOptions, openaiEmbedder } from './providers/embedder.ts'
export { createEmbedder } from './providers/namedEmbedder.ts'
export { ollamaEmbedder } from './providers/ollamaEmbedder.ts'
export { type TransformersOptions, transformersEmbedder } from './providers/transformersEmbedder.ts'
export { type Compressor, type RamStore, type RamStoreOptions, ramStore } from './stores/ram.ts'
export { tokenizerFor } from './tokenizers/tokenizers.ts'
export type { MemoryRecord } from './upkeep/record.ts'
export type { UpkeepHealth } from './upkeep/scheduler.ts'
export type { RecordUpdate } from './upkeep/updateRecord.ts'
export { createUpkeep, type Upkeep, type UpkeepOptions } from './upkeep/upkeep.ts'
export type { MemoryOptions }
