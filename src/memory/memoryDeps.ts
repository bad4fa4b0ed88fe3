import type { ExportOptions, Imported, ImportOptions } from '../domain/bundle.ts'
import type { Clock, Embedder, Index, Store, Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { Lifecycle, LifecycleMeans } from '../lifecycle/lifecycle.ts'
import type { WhenIn } from '../text/dates.ts'
import type { Upkeep, UpkeepMeans } from '../upkeep/upkeep.ts'
import type { MakeEmbedding } from './embedding.ts'
import type { Library } from './fileSearch.ts'
import type { Forgotten, Rederive, Target } from './forget.ts'
import type { Replaying } from './replay.ts'
import type { Barrier } from './secretMasker.ts'

/** Dependencies of a memory. `openMemory` fills in the platform's defaults. */
export type Parts = {
  readonly profile: Profile
  /** Store of this profile's sessions. */
  readonly sessions: Store & Index
  /** Store of the scope's own memory. */
  readonly store: Store & Index
  readonly tokenizer: Tokenizer
  readonly embedder: Embedder | undefined
  /** Creates the queue that embeds stored entries. */
  readonly embedding?: MakeEmbedding | undefined
  /** Creates upkeep; undefined for none. */
  readonly upkeep: ((means: UpkeepMeans) => Upkeep) | undefined
  /** Creates the lifecycle: limits, end events and transfers. */
  readonly lifecycle?: ((means: LifecycleMeans) => Lifecycle) | undefined
  /** Re-derives entries in place of upkeep. */
  readonly rederive: Rederive | undefined
  readonly barrier: Barrier | undefined
  readonly library?: Library | undefined
  /** Parses date phrases of a question. */
  readonly dates?: WhenIn | undefined
  readonly replaying?: Replaying | undefined
  readonly portable: Portable
  readonly beside?: ForgetBeside | undefined
  readonly clock: Clock
}

/** Forgets a target in auxiliary stores, such as the graph, and adds the deletions to the receipt. */
export type ForgetBeside = (stores: readonly Store[], target: Target, forgotten: Forgotten) => Promise<Forgotten>

/** Reads and writes portable bundles. */
export type Portable = {
  exportBundle(store: Store, options: ExportOptions): AsyncIterable<Uint8Array>
  importBundle(store: Store, open: () => AsyncIterable<Uint8Array>, options: ImportOptions): Promise<Imported>
}
