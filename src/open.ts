import { checkOptions, type OptionChecks } from './domain/checkOptions.ts'
import { anyFunction, anyObject, anyText, type Check, isObject, MemoryError, rejectField } from './domain/error.ts'
import { parseProfile } from './domain/parseProfile.ts'
import type { Clock, Embedder, SearchIndex, Store, Tokenizer } from './domain/ports.ts'
import type { Profile, TokenizerName } from './domain/profile.ts'
import type { Pause } from './domain/work.ts'
import type { OnSessionEnd } from './lifecycle/endEvent.ts'
import type { Lifecycle, LifecycleDeps } from './lifecycle/lifecycle.ts'
import type { FileSearch } from './memory/contextBuilder.ts'
import type { CreateEmbeddingQueue, Sleep } from './memory/embedding.ts'
import type { Rederive } from './memory/forget.ts'
import type { BundleIo, ForgetAuxiliary } from './memory/memoryDeps.ts'
import type { Replayer } from './memory/replay.ts'
import type { SecretMasker } from './memory/secretMasker.ts'
import { Memory } from './memory.ts'
import { type ProfileName, profiles } from './profiles/index.ts'
import type { WorkSelection } from './selection/workSelection.ts'
import type { FindPeriod } from './text/dates.ts'
import type { ModelChoice, Upkeep, UpkeepDeps } from './upkeep/upkeep.ts'

/** Options of `openMemory`. */
export type MemoryOptions = {
  /** A profile, or the name of a built-in one; default `thread`. */
  readonly profile?: ProfileName | Profile
  /** A store or its URL (`ram:`, `sqlite:PATH`, `postgres://…`, `pglite:PATH`, `redis://…`); default `ram:`. */
  readonly store?: string | (Store & SearchIndex)
  /**
   * Key for encryption at rest, with a store URL: `file:PATH`, `env:NAME` or `command:PROGRAM`. Default: no encryption.
   */
  readonly storeKey?: string
  /** Store for the sessions of RAM-only profiles; default `ram:`. */
  readonly sessions?: string | (Store & SearchIndex)
  /** Token counter; default: the one the profile names. */
  readonly tokenizer?: Tokenizer
  /** Embeds texts, so that search and recall work by meaning too; default: by words only. */
  readonly embedder?: Embedder
  /**
   * Creates the embedding queue; default: the platform's. In a browser, pass `createEmbeddingQueue` from
   * threadkeep/embedding.
   */
  readonly embedding?: CreateEmbeddingQueue
  /** Model for summaries and extraction, whose output is verified; default: built-in rules. */
  readonly model?: ModelChoice
  /** Creates upkeep; default: the platform's. `false` turns it off. */
  readonly upkeep?: false | ((deps: UpkeepDeps) => Upkeep)
  /** Called exactly once for every session that ends. A failed call is repeated. */
  readonly onSessionEnd?: OnSessionEnd
  /**
   * Creates the lifecycle; default: the platform's. In a browser, pass `createLifecycle()` from threadkeep/lifecycle.
   */
  readonly lifecycle?: (deps: LifecycleDeps) => Lifecycle
  /**
   * Implements `trace` and `replay`; default: the platform's. In a browser, pass `replayer` from threadkeep/replay.
   */
  readonly replayer?: Replayer
  /** Rebuilds a summary or fact after part of its sources was forgotten; default: upkeep does. */
  readonly rederive?: Rederive
  /**
   * Creates the secret masker; default: the platform's. In a browser, pass `createSecretMasker` from
   * threadkeep/secrets.
   */
  readonly masker?: CreateSecretMasker
  /** Current time in ms; default `Date.now`. */
  readonly clock?: Clock
}

const storeCheck: Check = (value, path) => {
  if (typeof value !== 'string' && !isObject(value)) rejectField(path, value, 'a store or its URL')
}
const profileCheck: Check = (value, path) => {
  if (typeof value !== 'string') anyObject(value, path)
}
const upkeepCheck: Check = (value, path) => {
  if (value !== false) anyFunction(value, path)
}
const modelCheck: Check = (value, path) => {
  if (typeof value !== 'function') anyObject(value, path)
}

const memoryOptionChecks: OptionChecks<MemoryOptions> = {
  profile: profileCheck,
  store: storeCheck,
  storeKey: anyText,
  sessions: storeCheck,
  tokenizer: anyObject,
  embedder: anyObject,
  embedding: anyFunction,
  model: modelCheck,
  upkeep: upkeepCheck,
  onSessionEnd: anyFunction,
  lifecycle: anyFunction,
  replayer: anyObject,
  rederive: anyFunction,
  masker: anyFunction,
  clock: anyFunction,
}

/** Creates the secret masker of a profile. */
export type CreateSecretMasker = (policy: Profile['secrets'], tokenizer: Tokenizer) => SecretMasker

/** Defaults that differ between Node and browsers. */
export type Platform = {
  readonly openStore: (url: string, key?: string) => Promise<Store & SearchIndex>
  readonly tokenizer: (name: TokenizerName) => Promise<Tokenizer>
  readonly bundles: BundleIo
  readonly forgetAuxiliary?: ForgetAuxiliary | undefined
  readonly masker: CreateSecretMasker | undefined
  readonly parseDates?: FindPeriod | undefined
  readonly fileSearch?: FileSearch | undefined
  readonly createWorkSelection?: ((tokenizer: Tokenizer) => WorkSelection) | undefined
  readonly embedding?: CreateEmbeddingQueue | undefined
  readonly sleep?: Sleep | undefined
  readonly replayer?: Replayer | undefined
  readonly upkeep: ((model: ModelChoice | undefined) => (deps: UpkeepDeps) => Upkeep) | undefined
  readonly lifecycle: ((onSessionEnd: OnSessionEnd | undefined) => (deps: LifecycleDeps) => Lifecycle) | undefined
  readonly pause?: Pause | undefined
  readonly clock: Clock
}

/** Opens a memory with the platform's defaults for all omitted options. */
export async function openMemoryOn(platform: Platform, options: MemoryOptions): Promise<Memory> {
  checkOptions<MemoryOptions>('openMemory', options, memoryOptionChecks)
  const profile = resolveProfile(options.profile ?? 'thread')
  checkDurability(profile, options)
  const store = await resolveStore(platform, options.store ?? 'ram:', options.storeKey)
  const isShared = profile.durability === 'durable' || (options.sessions === undefined && store.durability === 'ram')
  const sessions = isShared ? store : await resolveStore(platform, options.sessions ?? 'ram:')
  const tokenizer = options.tokenizer ?? (await platform.tokenizer(profile.tokenizer))
  const { embedder, rederive } = options
  const localClock = options.clock ?? platform.clock
  const clock = (sessions.capabilities.shared ?? store.capabilities.shared)?.correctClock(localClock) ?? localClock
  const upkeep = options.upkeep === false ? undefined : (options.upkeep ?? platform.upkeep?.(options.model))
  const masker =
    profile.secrets === 'keep' ? undefined : (options.masker ?? platform.masker)?.(profile.secrets, tokenizer)
  if (masker === undefined) checkSecretsStayInRam(profile, options, store)
  const embedding = options.embedding ?? platform.embedding
  const replayer = options.replayer ?? platform.replayer
  const lifecycle = options.lifecycle ?? platform.lifecycle?.(options.onSessionEnd)
  if (lifecycle === undefined) checkNoLimits(profile, options)
  const { bundles, forgetAuxiliary, fileSearch, parseDates, sleep, pause } = platform
  return new Memory({
    bundles,
    forgetAuxiliary,
    fileSearch,
    work: platform.createWorkSelection?.(tokenizer),
    parseDates,
    pause,
    profile,
    store,
    sessions,
    tokenizer,
    embedder,
    createEmbeddingQueue: embedding,
    sleep,
    createUpkeep: upkeep,
    createLifecycle: lifecycle,
    rederive,
    replayer,
    masker,
    clock,
  })
}

async function resolveStore(
  platform: Platform,
  store: string | (Store & SearchIndex),
  key?: string,
): Promise<Store & SearchIndex> {
  if (typeof store === 'string') return platform.openStore(store, key)
  if (key === undefined) return store
  throw new MemoryError('bad-option', 'storeKey needs a store URL. Encrypt a store object with encryptedStore.', {
    param: 'storeKey',
  })
}

/** Without a masker, refuses everything that could take secrets out of RAM. */
function checkSecretsStayInRam(profile: Profile, { embedder, model, upkeep }: MemoryOptions, store: Store): void {
  const leavesRam = isDurable(store) || (embedder ?? model ?? upkeep) !== undefined
  if (profile.secrets === 'keep' || !leavesRam) return
  throw new MemoryError(
    'bad-option',
    `Profile ${profile.name} masks secrets, but there is no masker. Pass masker: createSecretMasker from threadkeep/secrets, or a profile with secrets: 'keep'.`,
    { param: 'masker' },
  )
}

/** Without a lifecycle, refuses profiles and options that depend on it. */
function checkNoLimits({ name, lifetime }: Profile, { onSessionEnd }: MemoryOptions): void {
  if (onSessionEnd === undefined && lifetime.bytes === undefined && lifetime.sessionsPerScope === undefined) return
  throw new MemoryError(
    'bad-option',
    `Profile ${name} has limits, but there is no lifecycle to enforce them. Pass lifecycle: createLifecycle() from threadkeep/lifecycle.`,
    { param: 'lifecycle' },
  )
}

/** Refuses a durable store for a RAM-only profile, before any store is opened or created. */
function checkDurability(profile: Profile, { store, sessions }: MemoryOptions): void {
  if (profile.durability !== 'ram') return
  const isStoreUnused = isDurable(store) && !profile.scopes.includes('scope')
  if (!isStoreUnused && !isDurable(sessions)) return
  const param = isStoreUnused ? 'store' : 'sessions'
  throw new MemoryError(
    'bad-option',
    `Profile ${profile.name} is RAM-only and refuses a durable store. Omit ${param}, or choose a durable profile such as thread.`,
    { param },
  )
}

const isDurable = (store: string | Store | undefined): boolean =>
  typeof store === 'string' ? /^(sqlite|postgres(ql)?|pglite):/.test(store) : store?.durability === 'durable'

/** Resolves a profile name, or validates a profile. */
export function resolveProfile(profile: string | Profile): Profile {
  if (typeof profile !== 'string') return parseProfile(profile)
  if (Object.hasOwn(profiles, profile)) return profiles[profile as ProfileName]
  throw new MemoryError(
    'bad-profile',
    `Unknown profile ${JSON.stringify(profile)}. Use one of: ${Object.keys(profiles).join(', ')}.`,
    { param: 'profile' },
  )
}
