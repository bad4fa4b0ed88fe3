import type { Scope } from './key.ts'

/** How far a transfer has come. */
export type Transferred = { readonly sessions: number; readonly messages: number }

/** A transfer that can be watched and stopped. */
export type Tended = { readonly progress?: (done: Transferred) => void; readonly signal?: AbortSignal }

/** What a bundle is encrypted with. */
export type Lock = {
  readonly passphrase: string
  readonly cost?: number
  readonly randomBytes?: (length: number) => Uint8Array
}

export type ExportOptions = Tended & {
  /** Only this scope, its own memory and all its sessions; or only this one session. */
  readonly scope?: Scope
  readonly key?: string
  /** Encrypts the bundle; without it, the same memory gives the same bytes. */
  readonly lock?: Lock
}

export const onExisting = ['refuse', 'skip', 'replace'] as const
export type OnExisting = (typeof onExisting)[number]

export type ImportOptions = Tended & {
  /** The scope to import into, for a bundle of one scope; the bundle's own when left out. */
  readonly scope?: Scope
  /** For an encrypted bundle. */
  readonly passphrase?: string
  /** What becomes of a session that the store has with other contents; `refuse` when left out, and then nothing is imported. */
  readonly onExisting?: OnExisting
}

/** What a bundle holds. */
export type Totals = { readonly sessions: number; readonly messages: number; readonly entries: number }

/** What the sessions that were begun or continued hold, and which ones were left alone or overwritten. */
export type Imported = Totals & {
  /** How many sessions the store had already, the very same. */
  readonly unchanged: number
  readonly skipped: readonly string[]
  readonly replaced: readonly string[]
}
