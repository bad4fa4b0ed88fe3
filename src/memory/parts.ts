import type { ExportOptions, Imported, ImportOptions } from '../domain/bundle.ts'
import type { Clock, Embedder, Index, Store, Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { Lifecycle, LifecycleMeans } from '../lifecycle/lifecycle.ts'
import type { WhenIn } from '../text/when.ts'
import type { Upkeep, UpkeepMeans } from '../upkeep/upkeep.ts'
import type { MakeEmbedding } from './embedding.ts'
import type { Forgotten, Rederive, Target } from './forgetting.ts'
import type { Library } from './library.ts'
import type { Replaying } from './replaying.ts'
import type { Barrier } from './secrets.ts'

/** Everything a memory is made of. `openMemory` fills in what is left out. */
export type Parts = {
  readonly profile: Profile
  /** Where sessions of this profile live. */
  readonly sessions: Store & Index
  /** Where the memory of scopes lives. */
  readonly store: Store & Index
  readonly tokenizer: Tokenizer
  readonly embedder: Embedder | undefined
  /** Has the vectors made, where there is an embedder. */
  readonly embedding?: MakeEmbedding | undefined
  /** Makes upkeep, if there is to be any. */
  readonly upkeep: ((means: UpkeepMeans) => Upkeep) | undefined
  /** Makes what sees to limits, ends and transfers of sessions, if there is to be any. */
  readonly lifecycle?: ((means: LifecycleMeans) => Lifecycle) | undefined
  /** Makes a derived entry anew in place of upkeep. */
  readonly rederive: Rederive | undefined
  readonly barrier: Barrier | undefined
  /** Finds what the files of a scope say on a question. */
  readonly library?: Library | undefined
  /** Reads the time a question is about. */
  readonly dates?: WhenIn | undefined
  /** Makes contexts anew, as another profile would have. */
  readonly replaying?: Replaying | undefined
  readonly portable: Portable
  readonly beside?: ForgetBeside | undefined
  readonly clock: Clock
}

/** Forgets what lies beside the sessions of stores, such as a graph, and was told to be forgotten; adds it to the receipt. */
export type ForgetBeside = (stores: readonly Store[], target: Target, forgotten: Forgotten) => Promise<Forgotten>

/** Writes and reads portable bundles; not everywhere is there what it takes. */
export type Portable = {
  exportBundle(store: Store, options: ExportOptions): AsyncIterable<Uint8Array>
  importBundle(store: Store, open: () => AsyncIterable<Uint8Array>, options: ImportOptions): Promise<Imported>
}
