import type { Millis, Tokens } from '../domain/entry.ts'
import { check } from '../domain/error.ts'
import type { Degradation } from '../domain/ledger.ts'
import type { Clock, Embedder } from '../domain/ports.ts'
import type { Graph } from '../graph/graph.ts'
import type { Memory } from '../memory.ts'
import type { Seen } from './references.ts'

/** How sessions are handed over; what is left out is as documented. */
export type HandoffSettings = {
  /** What a chat holds at most, unless a call says otherwise. */
  readonly limit: Tokens
  /** The part of the limit at which a save is due, and what is kept free for the system's own messages. */
  readonly threshold: number
  readonly margin: Tokens
  /** What is restored at most, unless a call says otherwise. */
  readonly budget: Tokens
  /** Items of less importance are not restored, and no more than so many. */
  readonly importance: number
  readonly items: number
  /** Whether conversations are summed up at several levels of detail. */
  readonly summarise: boolean
  /** Whether the directory layout is compressed. */
  readonly compress: boolean
  /** What waits for a store that fails, in bytes at most; beyond it, saving fails as the store does. */
  readonly pending: number
}

const defaults: HandoffSettings = {
  limit: 200_000,
  threshold: 0.75,
  margin: 100,
  budget: 8_000,
  importance: 3,
  items: 50,
  summarise: true,
  compress: true,
  pending: 64 * 1_024 * 1_024,
}

/** What somebody said, checked, and the documented defaults for the rest. */
export function settingsOf(given: Partial<HandoffSettings> = {}): HandoffSettings {
  const settings = { ...defaults, ...given }
  const { limit, threshold, margin, budget, importance, items, pending } = settings
  for (const [name, value, least] of [
    ['limit', limit, 1],
    ['margin', margin, 0],
    ['budget', budget, 1],
    ['items', items, 0],
    ['pending', pending, 0],
  ] as const)
    check(name, value, Number.isSafeInteger(value) && value >= least, `a whole number, ${least} or more`)
  check('threshold', threshold, threshold > 0 && threshold <= 1, 'a part of the limit, above 0 and up to 1')
  check('importance', importance, importance >= 1 && importance <= 10, 'a number from 1 to 10')
  return settings
}

/** Looks at files on behalf of a client, as far as it may. */
export type FileEyes = { look(user: string, path: string): Promise<Seen> }

/** Others that have something to say when a session is saved or restored: data, whatever it says. */
export type ContextSources = {
  gather(
    on: 'save' | 'restore',
    about: { readonly workspace: string; readonly session: string; readonly text: string },
    signal?: AbortSignal,
  ): Promise<{
    readonly provided: readonly { readonly from: string; readonly text: string }[]
    readonly degraded: readonly Degradation[]
  }>
}

/** Calls back after a time; what it returns takes that back. */
export type Later = (after: Millis, call: () => void) => () => void

/** Everything handing over works with. */
export type HandoffParts = {
  readonly memory: Memory
  readonly graph: Graph
  readonly clock: Clock
  readonly settings: HandoffSettings
  readonly files: FileEyes | undefined
  readonly providers: ContextSources | undefined
  readonly embedder: Embedder | undefined
  /** Names a session that begins now; no two are the same, whichever process names them. */
  readonly name: (now: Millis) => string
}

/** Long work that somebody waits for. */
export type Attending = {
  /** On whose behalf files are looked at. */
  readonly client?: string
  readonly signal?: AbortSignal
  readonly progress?: (done: number, total: number, message: string) => void
}
