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
import { yieldWhenLong } from './stores/yieldToEventLoop.ts'
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
    masker: (policy, tokenizer) => createSecretMasker(policy, tokenizer, yieldWhenLong),
    parseDates: findPeriod,
    embedding: createEmbeddingQueue,
    sleep: (ms, signal, { background = false } = {}) => delay(ms, undefined, { signal, ref: !background }),
    fileSearch,
    createWorkSelection,
    replayer,
    upkeep: (model) => createUpkeep({ model, pause: yieldWhenLong }),
    pause: yieldWhenLong,
    lifecycle: (onSessionEnd) => createLifecycle({ onSessionEnd }),
    clock: Date.now,
  }
  return openMemoryOn(platform, options)
}

export { MemoryError } from './domain/error.ts'
export { formatKey, parseKey } from './domain/key.ts'
export { parseProfile } from './domain/parseProfile.ts'
export { createLifecycle } from './lifecycle/lifecycle.ts'
export { Memory } from './memory.ts'
export { profiles } from './profiles/index.ts'
export type { Timeouts } from './providers/deadline.ts'
export { type EmbedderOptions, openaiEmbedder } from './providers/embedder.ts'
export { createEmbedder } from './providers/namedEmbedder.ts'
export { type OfflineModelOptions, offlineModel } from './providers/offline.ts'
export { ollamaEmbedder } from './providers/ollamaEmbedder.ts'
export type { ModelOptions } from './providers/openai.ts'
export type { RequestOptions, Sleep } from './providers/request.ts'
export {
  type TransformersModule,
  type TransformersOptions,
  transformersEmbedder,
} from './providers/transformersEmbedder.ts'
export { type Compressor, type RamStore, type RamStoreOptions, ramStore } from './stores/ram.ts'
export { tokenizerFor } from './tokenizers/tokenizers.ts'
export type * from './types.ts'
export { createUpkeep } from './upkeep/upkeep.ts'
