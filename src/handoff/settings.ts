import type { Millis, Tokens } from '../domain/entry.ts'
import { checkOption } from '../domain/error.ts'
import type { Degradation } from '../domain/ledger.ts'
import type { Clock, Embedder } from '../domain/ports.ts'
import type { Graph } from '../graph/types.ts'
import type { Memory } from '../memory.ts'
import type { FileInspection } from './fileReferences.ts'
import type { ProvidedContext } from './rows.ts'

/** Settings of saving and restoring sessions. */
export type HandoffSettings = {
  /** Token limit of a chat, unless a call gives another one. Default 200 000. */
  readonly limit: Tokens
  /** Fraction of the limit at which a save is due. Default 0.75. */
  readonly threshold: number
  /** Tokens reserved for system messages; subtracted from the threshold. Default 100. */
  readonly margin: Tokens
  /** Token budget of a restored text, unless a call gives another one. Default 8 000. */
  readonly budget: Tokens
  /** Minimum importance (1 to 10) of restored items. Default 3. */
  readonly importance: number
  /** Maximum number of restored items. Default 50. */
  readonly items: number
  /** Creates summaries at several levels of detail on save. Default true. */
  readonly summarise: boolean
  /** Compresses the files of the directory layout with zstd. Default true. */
  readonly compress: boolean
  /** Maximum bytes held in memory while the store fails; beyond it, saving fails. Default 64 MiB. */
  readonly pending: number
}

const defaultSettings: HandoffSettings = {
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

/** Validates settings and fills in the defaults. Throws `bad-option` on an invalid value. */
export function resolveSettings(overrides: Partial<HandoffSettings> = {}): HandoffSettings {
  const settings = { ...defaultSettings, ...overrides }
  const { limit, threshold, margin, budget, importance, items, pending } = settings
  for (const [name, value, min] of [
    ['limit', limit, 1],
    ['margin', margin, 0],
    ['budget', budget, 1],
    ['items', items, 0],
    ['pending', pending, 0],
  ] as const)
    checkOption(name, value, Number.isSafeInteger(value) && value >= min, `a whole number, ${min} or more`)
  checkOption('threshold', threshold, threshold > 0 && threshold <= 1, 'a part of the limit, above 0 and up to 1')
  checkOption('importance', importance, importance >= 1 && importance <= 10, 'a number from 1 to 10')
  return settings
}

/** Reads files on behalf of a client, within that client's permissions. */
export type FileInspector = { look(user: string, path: string): Promise<FileInspection> }

/**
 * External sources that contribute context when a session is saved or restored. Their text is data, never instructions.
 */
export type ContextProviders = {
  gather(
    on: 'save' | 'restore',
    about: { readonly workspace: string; readonly session: string; readonly text: string },
    signal?: AbortSignal,
  ): Promise<{ readonly provided: readonly ProvidedContext[]; readonly degraded: readonly Degradation[] }>
}

/** Calls `run` after a delay; the returned function cancels the call. */
export type Schedule = (delayMs: Millis, run: () => void) => () => void

/** Dependencies shared by all handoff operations. */
export type HandoffDeps = {
  readonly memory: Memory
  readonly graph: Graph
  readonly clock: Clock
  readonly settings: HandoffSettings
  readonly files: FileInspector | undefined
  readonly providers: ContextProviders | undefined
  readonly embedder: Embedder | undefined
  /** Generates a session id that is unique across processes. */
  readonly generateSessionId: (now: Millis) => string
}

/** Caller of a long operation: identity, cancellation and progress. */
export type OperationContext = {
  /** User on whose behalf files are read. */
  readonly client?: string
  readonly signal?: AbortSignal
  readonly progress?: (done: number, total: number, message: string) => void
}
