import { readFileSync, statSync } from 'node:fs'
import type { Millis } from '../../domain/entry.ts'
import { MemoryError, shortenText } from '../../domain/error.ts'
import {
  type Credential,
  type CredentialOptions,
  createCredential,
  formatKeyFile,
  hashKey,
  isValid,
  parseKeyFile,
  type StoredCredential,
  withoutHash,
} from './credential.ts'
import { replaceFile } from './replaceFile.ts'

/** The content of the key file; `version` changes with every write. */
type Snapshot = { readonly version: string; readonly byHash: ReadonlyMap<string, Credential> }

export type CredentialsOptions = {
  /** Requires the file to exist. Set when the path was configured, so that a typo does not disable authentication. */
  readonly fileExpected?: boolean
  /** Called when the last use of a key cannot be recorded; the key stays valid. */
  readonly onFault?: (error: unknown) => void
}

const reloadIntervalMs: Millis = 1_000
const lastUsedIntervalMs: Millis = 3_600_000
const emptySnapshot: Snapshot = { version: '', byHash: new Map() }

/**
 * The API keys in a file. Changes by this or another process take effect within a second.
 *
 * @example
 * const credentials = new Credentials('threadkeep-keys.json')
 * const { key } = await credentials.create({ scopes: ['acme'] }, Date.now())
 * credentials.authenticate(key, Date.now())?.scopes // ['acme']
 */
export class Credentials {
  readonly file: string
  private readonly onFault: (error: unknown) => void
  private snapshot: Snapshot = emptySnapshot
  /** Stays true once the file existed: deleting it must not disable authentication. */
  private fileExpected: boolean
  private fault: MemoryError | undefined
  private checkedAt: Millis = Number.NEGATIVE_INFINITY
  private readonly lastUsed = new Map<string, Millis>()
  private writing: Promise<void> = Promise.resolve()

  constructor(file: string, { fileExpected = false, onFault = () => undefined }: CredentialsOptions = {}) {
    this.file = file
    this.fileExpected = fileExpected
    this.onFault = onFault
  }

  /**
   * Returns the credential of a valid key. Keys are looked up by their hash, so that timing reveals nothing about them.
   *
   * @throws {MemoryError} while the file cannot be read; then every key is refused.
   */
  authenticate(key: string | undefined, now: Millis): Credential | undefined {
    const { byHash } = this.load(now)
    const hash = key === undefined ? undefined : hashKey(key)
    const credential = hash === undefined ? undefined : byHash.get(hash)
    if (credential === undefined || !isValid(credential, now)) return undefined
    this.recordUse(credential, now)
    return credential
  }

  /** True from the first key on, even when all keys have expired or are revoked. */
  isRequired(now: Millis): boolean {
    this.load(now)
    return this.fileExpected
  }

  /** All keys, including expired and revoked ones, in order of creation. */
  list(now: Millis): readonly Credential[] {
    return [...this.load(now).byHash.values()]
  }

  /** Creates a key. This is the only time the key itself is available. */
  async create(
    options: CredentialOptions,
    now: Millis,
  ): Promise<{ readonly key: string; readonly credential: Credential }> {
    let created = createCredential(options, now)
    await this.update((keys) => {
      while (keys.some(({ id }) => id === created.stored.id)) created = createCredential(options, now)
      return [...keys, created.stored]
    })
    return { key: created.key, credential: withoutHash(created.stored) }
  }

  /** Revokes a key at once. */
  async revoke(id: string, now: Millis): Promise<Credential> {
    const keys = await this.update((before) => {
      if (!before.some((key) => key.id === id)) throw unknownKey(id)
      return before.map((key) => (key.id === id ? { ...key, revokedAt: key.revokedAt ?? now } : key))
    })
    const revoked = keys.find((key) => key.id === id)
    if (revoked === undefined) throw unknownKey(id)
    return withoutHash(revoked)
  }

  /** Resolves when all pending writes are done. */
  settled(): Promise<void> {
    return this.writing
  }

  private load(now: Millis): Snapshot {
    // A clock that was set back must not keep an old list valid.
    if (now < this.checkedAt || now - this.checkedAt >= reloadIntervalMs) {
      this.checkedAt = now
      this.fault = undefined
      try {
        this.snapshot = this.read()
      } catch (error) {
        this.fault = this.unreadableFile(error)
      }
    }
    if (this.fault !== undefined) throw this.fault
    return this.snapshot
  }

  private read(): Snapshot {
    const stats = statSync(this.file, { bigint: true, throwIfNoEntry: false })
    if (stats === undefined && !this.fileExpected) return emptySnapshot
    this.fileExpected = true
    const version = stats === undefined ? 'missing' : [stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(' ')
    if (version === this.snapshot.version) return this.snapshot
    const keys = parseKeyFile(readFileSync(this.file, 'utf8'), this.file)
    return { version, byHash: new Map(keys.map((key) => [key.sha256, withoutHash(key)])) }
  }

  private unreadableFile(cause: unknown): MemoryError {
    if (cause instanceof MemoryError) return cause
    const reason = cause instanceof Error && 'code' in cause ? cause.code : 'unknown error'
    return new MemoryError(
      'bad-store',
      `The key file ${this.file} cannot be read (${reason}), so no key is accepted. Restore it, create it with threadkeep keys create, or check its permissions.`,
      { param: 'file', cause },
    )
  }

  /** Changes the file and returns its new keys. */
  private async update(
    change: (keys: readonly StoredCredential[]) => readonly StoredCredential[],
  ): Promise<readonly StoredCredential[]> {
    let keys: readonly StoredCredential[] = []
    await replaceFile(this.file, (text) => {
      keys = change(text === undefined ? [] : parseKeyFile(text, this.file))
      return formatKeyFile(keys)
    })
    this.fileExpected = true
    this.checkedAt = Number.NEGATIVE_INFINITY
    return keys
  }

  /** Records the use in the background, at most once per hour and key: writing takes longer than a request. */
  private recordUse({ id, lastUsedAt = Number.NEGATIVE_INFINITY }: Credential, now: Millis): void {
    if (now - Math.max(lastUsedAt, this.lastUsed.get(id) ?? Number.NEGATIVE_INFINITY) < lastUsedIntervalMs) return
    this.lastUsed.set(id, now)
    const setLastUsed = (keys: readonly StoredCredential[]): readonly StoredCredential[] =>
      keys.map((key) => (key.id === id ? { ...key, lastUsedAt: now } : key))
    this.writing = this.writing.then(() => this.update(setLastUsed)).then(() => undefined, this.onFault)
  }
}

const unknownKey = (id: string): MemoryError =>
  new MemoryError(
    'bad-option',
    `There is no key ${JSON.stringify(shortenText(id, 40))}. Run threadkeep keys list to see the keys.`,
    { param: 'id' },
  )
