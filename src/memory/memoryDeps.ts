import type { ExportOptions, ImportOptions, ImportResult } from '../domain/bundle.ts'
import type { Clock, Embedder, SearchIndex, Store, Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { Pause } from '../domain/work.ts'
import type { Lifecycle, LifecycleDeps } from '../lifecycle/lifecycle.ts'
import type { WorkSelection } from '../selection/workSelection.ts'
import type { FindPeriod } from '../text/dates.ts'
import type { Upkeep, UpkeepDeps } from '../upkeep/upkeep.ts'
import type { FileSearch } from './contextBuilder.ts'
import type { CreateEmbeddingQueue, Sleep } from './embedding.ts'
import type { ForgetResult, ForgetTarget, Rederive } from './forget.ts'
import type { Replayer } from './replay.ts'
import type { SecretMasker } from './secretMasker.ts'

/** Dependencies of a memory. `openMemory` fills in the platform's defaults. */
export type MemoryDeps = {
  readonly profile: Profile
  /** Store of this profile's sessions. */
  readonly sessions: Store & SearchIndex
  /** Store of the scope's own memory. */
  readonly store: Store & SearchIndex
  readonly tokenizer: Tokenizer
  readonly embedder: Embedder | undefined
  /** Creates the queue that embeds stored entries. */
  readonly createEmbeddingQueue?: CreateEmbeddingQueue | undefined
  /** Timer of the embedding queue. */
  readonly sleep?: Sleep | undefined
  /** Creates upkeep; undefined for none. */
  readonly createUpkeep: ((deps: UpkeepDeps) => Upkeep) | undefined
  /** Creates the lifecycle: limits, end events and transfers. */
  readonly createLifecycle?: ((deps: LifecycleDeps) => Lifecycle) | undefined
  /** Re-derives entries in place of upkeep. */
  readonly rederive: Rederive | undefined
  readonly masker: SecretMasker | undefined
  readonly fileSearch?: FileSearch | undefined
  readonly work?: WorkSelection | undefined
  /** Parses date phrases of a question. */
  readonly parseDates?: FindPeriod | undefined
  readonly replayer?: Replayer | undefined
  readonly bundles: BundleIo
  readonly forgetAuxiliary?: ForgetAuxiliary | undefined
  /** Lets other work run between two steps on long texts. */
  readonly pause?: Pause | undefined
  readonly clock: Clock
}

/** Forgets a target in auxiliary stores, such as the graph, and adds the deletions to the receipt. */
export type ForgetAuxiliary = (
  stores: readonly Store[],
  target: ForgetTarget,
  forgotten: ForgetResult,
  /** Placeholders of the secrets that contain the text to forget. */
  placeholders: readonly string[],
) => Promise<ForgetResult>

/** Reads and writes portable bundles. */
export type BundleIo = {
  exportBundle(store: Store, options: ExportOptions): AsyncIterable<Uint8Array>
  /** Token counts are computed again, and with a masker secrets are masked. */
  importBundle(
    store: Store,
    open: () => AsyncIterable<Uint8Array>,
    options: ImportOptions,
    deps: { readonly masker?: SecretMasker | undefined; readonly tokenizer: Tokenizer },
  ): Promise<ImportResult>
}
