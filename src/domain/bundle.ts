import { checkOptions, type OptionChecks } from './checkOptions.ts'
import { anyFunction, anyObject, anyText, type Check, integerAtLeast, nonEmptyText, oneOf } from './error.ts'
import type { Scope } from './key.ts'

/** Number of sessions and messages transferred so far. */
export type TransferProgress = { readonly sessions: number; readonly messages: number }

/** Options of every export and import. */
export type TransferOptions = {
  /** Called after each session. */
  readonly onProgress?: (done: TransferProgress) => void
  /** Stops the transfer. */
  readonly signal?: AbortSignal
}

/** Encryption of a bundle. */
export type BundleEncryption = {
  readonly passphrase: string
  /** Cost parameter of scrypt, a power of two. */
  readonly cost?: number
  readonly randomBytes?: (length: number) => Uint8Array
}

/** Options of `export`. */
export type ExportOptions = TransferOptions & {
  /** Exports only this scope: its own memory, all its sessions and the rows of its table. */
  readonly scope?: Scope
  /** Exports only this session. */
  readonly key?: string
  /** Encrypts the bundle. Without it, the same memory always gives the same bytes. */
  readonly encryption?: BundleEncryption
  /** Signs the bundle with HMAC-SHA-256 under this key of at least 16 bytes. */
  readonly signingKey?: Uint8Array
}

export const existingSessionPolicies = ['refuse', 'skip', 'replace'] as const
/** Handling of sessions that an import would overwrite. */
export type ExistingSessionPolicy = (typeof existingSessionPolicies)[number]

/** Options of `import`. */
export type ImportOptions = TransferOptions & {
  /** Imports a bundle of one scope into this scope. Default: the bundle's own scope. */
  readonly scope?: Scope
  /** Passphrase of an encrypted bundle. */
  readonly passphrase?: string
  /** Refuses a bundle that is not signed with this key, before anything is written. */
  readonly verifyKey?: Uint8Array
  /** Handling of a session that exists with other contents. Default: `refuse`, which imports nothing at all. */
  readonly onExisting?: ExistingSessionPolicy
  /** Called when a session is complete, or found unchanged. Throwing stops the import there. */
  readonly onSession?: (key: string, outcome: 'written' | 'unchanged') => void
}

/** Size of a bundle. */
export type BundleTotals = {
  readonly sessions: number
  readonly messages: number
  readonly entries: number
  /** Rows of tables; absent without any. */
  readonly rows?: number
}

/** Result of an import; the totals count what was created or continued. */
export type ImportResult = BundleTotals & {
  /** Number of sessions that already existed with the same contents. */
  readonly unchanged: number
  /** Keys of existing sessions that were left alone; also names of graph rows and table rows. */
  readonly skipped: readonly string[]
  /** Keys of existing sessions that were overwritten; also names of graph rows and table rows. */
  readonly replaced: readonly string[]
}

const transferOptionChecks: OptionChecks<TransferOptions> = { onProgress: anyFunction, signal: anyObject }
const encryptionCheck: Check = (value) =>
  checkOptions<BundleEncryption>('encryption', value, {
    passphrase: nonEmptyText,
    cost: integerAtLeast(2),
    randomBytes: anyFunction,
  })

/** Throws `bad-option` for options that are invalid or unknown. */
export const checkExportOptions = (options: unknown): void =>
  checkOptions<ExportOptions>('export', options, {
    ...transferOptionChecks,
    scope: anyText,
    key: anyText,
    encryption: encryptionCheck,
    signingKey: anyObject,
  })

/** Throws `bad-option` for options that are invalid or unknown. */
export const checkImportOptions = (options: unknown): void =>
  checkOptions<ImportOptions>('import', options, {
    ...transferOptionChecks,
    scope: anyText,
    passphrase: anyText,
    verifyKey: anyObject,
    onExisting: oneOf(...existingSessionPolicies),
    onSession: anyFunction,
  })
