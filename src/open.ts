import { MemoryError } from './domain/error.ts'
import { parseProfile } from './domain/parseProfile.ts'
import type { Clock, Embedder, Index, Store, Tokenizer } from './domain/ports.ts'
import type { Profile, TokenizerName } from './domain/profile.ts'
import type { OnSessionEnd } from './lifecycle/ending.ts'
import type { Lifecycle, LifecycleMeans } from './lifecycle/lifecycle.ts'
import type { MakeEmbedding } from './memory/embedding.ts'
import type { Rederive } from './memory/forgetting.ts'
import type { Library } from './memory/library.ts'
import type { ForgetBeside, Portable } from './memory/parts.ts'
import type { Replaying } from './memory/replaying.ts'
import type { Barrier } from './memory/secrets.ts'
import { Memory } from './memory.ts'
import { type ProfileName, profiles } from './profiles/index.ts'
import type { WhenIn } from './text/when.ts'
import type { ModelChoice, Upkeep, UpkeepMeans } from './upkeep/upkeep.ts'

export type MemoryOptions = {
  /** A profile, or the name of a built-in one; `thread` when left out. */
  readonly profile?: ProfileName | Profile
  /** Where memory is kept: a store or its URL; `ram:` when left out. */
  readonly store?: string | (Store & Index)
  /** With the URL of a store: the key everything said in it is encrypted with, as `file:PATH`, `env:NAME` or `command:PROGRAM`. */
  readonly storeKey?: string
  /** Where sessions of a profile that lives in RAM are kept; `ram:` when left out. */
  readonly sessions?: string | (Store & Index)
  readonly tokenizer?: Tokenizer
  /** Makes vectors, so that things are found by their meaning too; without one, by their words. */
  readonly embedder?: Embedder
  /** Has the vectors made: the platform's when left out. In a browser, pass `embeddingWith` from threadkeep/embedding. */
  readonly embedding?: MakeEmbedding
  /** Makes summaries and finds important data; without one, built-in rules do. What it says is checked before it counts. */
  readonly model?: ModelChoice
  /** Who keeps what is old small: the platform's upkeep when left out, another one, or with `false` nobody. */
  readonly upkeep?: false | ((means: UpkeepMeans) => Upkeep)
  /** Hears of every session that ends, by itself or not, exactly once; what it fails to hear it hears again later. */
  readonly onSessionEnd?: OnSessionEnd
  /** Who sees to limits, ends and transfers of sessions: the platform's when left out. In a browser, pass `lifecycleWith()` from threadkeep/lifecycle. */
  readonly lifecycle?: (means: LifecycleMeans) => Lifecycle
  /** Makes contexts anew under other profiles: the platform's when left out. In a browser, pass `replaying` from threadkeep/replaying. */
  readonly replaying?: Replaying
  /** Makes a summary or fact anew when part of what it was made from is forgotten; upkeep does when left out. */
  readonly rederive?: Rederive
  /** Keeps secrets out of what is kept: the platform's when left out. In a browser, pass `secretBarrier` from threadkeep/secrets. */
  readonly barrier?: MakeBarrier
  readonly clock?: Clock
}

export type MakeBarrier = (policy: Profile['secrets'], tokenizer: Tokenizer) => Barrier

/** What differs between Node and a browser. */
export type Platform = {
  readonly openStore: (url: string, key?: string) => Promise<Store & Index>
  readonly tokenizer: (name: TokenizerName) => Promise<Tokenizer>
  readonly portable: Portable
  readonly beside?: ForgetBeside | undefined
  readonly barrier: MakeBarrier | undefined
  readonly dates?: WhenIn | undefined
  readonly library?: Library | undefined
  readonly embedding?: MakeEmbedding | undefined
  readonly replaying?: Replaying | undefined
  readonly upkeep: ((model: ModelChoice | undefined) => (means: UpkeepMeans) => Upkeep) | undefined
  readonly lifecycle: ((onSessionEnd: OnSessionEnd | undefined) => (means: LifecycleMeans) => Lifecycle) | undefined
  readonly clock: Clock
}

/** Opens a memory with what the platform has to offer for everything that is left out. */
export async function openOn(platform: Platform, options: MemoryOptions): Promise<Memory> {
  const profile = profileOf(options.profile ?? 'thread')
  keepsPromise(profile, options)
  const store = await opened(platform, options.store ?? 'ram:', options.storeKey)
  const isShared = profile.durability === 'durable' || (options.sessions === undefined && store.durability === 'ram')
  const sessions = isShared ? store : await opened(platform, options.sessions ?? 'ram:')
  const tokenizer = options.tokenizer ?? (await platform.tokenizer(profile.tokenizer))
  const { embedder, rederive, clock = platform.clock } = options
  const upkeep = options.upkeep === false ? undefined : (options.upkeep ?? platform.upkeep?.(options.model))
  const barrier =
    profile.secrets === 'keep' ? undefined : (options.barrier ?? platform.barrier)?.(profile.secrets, tokenizer)
  if (barrier === undefined) keepsSecrets(profile, options, store)
  const embedding = options.embedding ?? platform.embedding
  const replaying = options.replaying ?? platform.replaying
  const lifecycle = options.lifecycle ?? platform.lifecycle?.(options.onSessionEnd)
  if (lifecycle === undefined) keepsLimits(profile, options)
  return new Memory({
    ...platform,
    profile,
    store,
    sessions,
    tokenizer,
    embedder,
    embedding,
    upkeep,
    lifecycle,
    rederive,
    replaying,
    barrier,
    clock,
  })
}

async function opened(platform: Platform, store: string | (Store & Index), key?: string): Promise<Store & Index> {
  if (typeof store === 'string') return platform.openStore(store, key)
  if (key === undefined) return store
  throw new MemoryError('bad-option', 'storeKey goes with a URL. Seal a store of your own with openSealed.', {
    param: 'storeKey',
  })
}

/** Without a barrier secrets must not leave RAM: nothing is opened that could take them elsewhere. */
function keepsSecrets(profile: Profile, { embedder, model, upkeep }: MemoryOptions, store: Store): void {
  const leaves = isDurable(store) || (embedder ?? model ?? upkeep) !== undefined
  if (profile.secrets === 'keep' || !leaves) return
  throw new MemoryError(
    'bad-option',
    `Profile ${profile.name} keeps secrets back, and nothing here does. Pass barrier: secretBarrier from threadkeep/secrets, or a profile with secrets: 'keep'.`,
    { param: 'barrier' },
  )
}

/** What nobody sees to is not promised. */
function keepsLimits({ name, lifetime }: Profile, { onSessionEnd }: MemoryOptions): void {
  if (onSessionEnd === undefined && lifetime.bytes === undefined && lifetime.sessionsPerScope === undefined) return
  throw new MemoryError(
    'bad-option',
    `Nothing here sees to the limits of profile ${name}. Pass lifecycle: lifecycleWith() from threadkeep/lifecycle.`,
    {
      param: 'lifecycle',
    },
  )
}

/** A profile that lives in RAM is not opened where a byte of it could be written; nothing is opened, or made, to find that out. */
function keepsPromise(profile: Profile, { store, sessions }: MemoryOptions): void {
  if (profile.durability !== 'ram') return
  const unused = isDurable(store) && !profile.sees.includes('scope')
  if (!unused && !isDurable(sessions)) return
  throw new MemoryError(
    'bad-option',
    `Profile ${profile.name} lives in RAM only and refuses a durable store. Leave out ${unused ? 'store' : 'sessions'}, or choose a durable profile such as thread.`,
    { param: unused ? 'store' : 'sessions' },
  )
}

const isDurable = (store: string | Store | undefined): boolean =>
  typeof store === 'string' ? store.startsWith('sqlite:') : store?.durability === 'durable'

/** The profile of this name, or a checked one. */
export function profileOf(profile: string | Profile): Profile {
  if (typeof profile !== 'string') return parseProfile(profile)
  if (Object.hasOwn(profiles, profile)) return profiles[profile as ProfileName]
  throw new MemoryError(
    'bad-profile',
    `profile is ${JSON.stringify(profile)}; it must be a profile or one of ${Object.keys(profiles).join(', ')}.`,
    {
      param: 'profile',
    },
  )
}
