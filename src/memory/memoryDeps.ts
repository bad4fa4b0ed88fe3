import type { ExportOptions, ImportOptions, ImportResult } from '../domain/bundle.ts'
import { MemoryError } from '../domain/error.ts'
import type { Clock, Embedder, SearchIndex, Store, Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { Pause } from '../domain/work.ts'
import type { Lifecycle, LifecycleDeps } from '../lifecycle/lifecycle.ts'
import type { WorkSelection } from '../selection/workSelection.ts'
import type { FindPeriod } from '../text/dates.ts'
import type { Upkeep, UpkeepDeps } from '../upkeep/upkeep.ts'
import type { FileSearch } from './contextBuilder.ts'
import type { CreateEmbeddingQueue, EmbeddingQueue, Sleep } from './embedding.ts'
import type { ForgetResult, Rederive } from './forget.ts'
import type { ForgetTarget } from './forgetTarget.ts'
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

/** The stores of sessions and scopes, which may be one. */
export const listStores = ({ sessions, store }: MemoryDeps): readonly (Store & SearchIndex)[] => [
  ...new Set([sessions, store]),
]

/** Creates a queue for each store; none without an embedder. */
export function createEmbeddingQueues(deps: MemoryDeps): readonly EmbeddingQueue[] {
  const { embedder, createEmbeddingQueue, clock, sleep } = deps
  if (embedder === undefined || createEmbeddingQueue === undefined) return []
  return listStores(deps).map((store) => createEmbeddingQueue(store, embedder, { clock, sleep }))
}

/** Returns the store whose content can be exported; throws `bad-option` if the profile keeps everything in RAM. */
export function requirePortableStore({ sessions, store, profile }: MemoryDeps): Store & SearchIndex {
  if (sessions !== store || profile.durability === 'durable') return store
  throw new MemoryError('bad-option', `Profile ${profile.name} is RAM-only: it cannot be exported or imported into.`, {
    param: 'profile',
  })
}
