import { readFileSync, statSync } from 'node:fs'
import type { Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { type Credential, fingerprint, issue, isValid, type Kept, shown, type Wanted } from './credential.ts'
import { formatKeys, parseKeys } from './keyList.ts'
import { replaceFile } from './replaceFile.ts'

/** The keys of a file as they were when it bore this stamp. */
type Held = { readonly stamp: string; readonly byHash: ReadonlyMap<string, Credential> }

export type CredentialsOptions = {
  /** Whether the file must be there: whoever names one means it, and a typing mistake must not open the house. */
  readonly isExpected?: boolean
  /** Hears when the time of a key's last use cannot be noted; the key is good all the same. */
  readonly onFault?: (error: unknown) => void
}

const second: Millis = 1000
const hour: Millis = 3_600_000
const none: Held = { stamp: '', byHash: new Map() }

/**
 * The API keys in a file. Whatever is changed there, by this process or another, counts within a second.
 *
 * @example
 * const credentials = new Credentials('threadkeep-keys.json')
 * const { key } = await credentials.create({ scopes: ['acme'] }, Date.now())
 * credentials.check(key, Date.now())?.scopes // ['acme']
 */
export class Credentials {
  readonly file: string
  private readonly onFault: (error: unknown) => void
  private held: Held = none
  /** A file that was there once must not open the house by going away. */
  private wasThere: boolean
  private fault: MemoryError | undefined
  private lookedAt: Millis = Number.NEGATIVE_INFINITY
  private readonly used = new Map<string, Millis>()
  private writing: Promise<void> = Promise.resolve()

  constructor(file: string, { isExpected = false, onFault = () => undefined }: CredentialsOptions = {}) {
    this.file = file
    this.wasThere = isExpected
    this.onFault = onFault
  }

  /**
   * Whose key this is, if it is good for anything now. Keys are looked up by their hash, so that the time it takes tells
   * nothing about them. Throws while the file cannot be read: then nobody is let in.
   */
  check(presented: string | undefined, now: Millis): Credential | undefined {
    const { byHash } = this.look(now)
    const hash = presented === undefined ? undefined : fingerprint(presented)
    const credential = hash === undefined ? undefined : byHash.get(hash)
    if (credential === undefined || !isValid(credential, now)) return undefined
    this.noteUse(credential, now)
    return credential
  }

  /** Whether keys are asked for: from the first one on, and also when none of them is good any more. */
  isRequired(now: Millis): boolean {
    this.look(now)
    return this.wasThere
  }

  /** All keys there ever were, in the order they were made. */
  list(now: Millis): readonly Credential[] {
    return [...this.look(now).byHash.values()]
  }

  /** Makes a key. It is told this once. */
  async create(wanted: Wanted, now: Millis): Promise<{ readonly key: string; readonly credential: Credential }> {
    let made = issue(wanted, now)
    await this.change((keys) => {
      while (keys.some(({ id }) => id === made.kept.id)) made = issue(wanted, now)
      return [...keys, made.kept]
    })
    return { key: made.key, credential: shown(made.kept) }
  }

  /** Makes a key good for nothing from now on. */
  async revoke(id: string, now: Millis): Promise<Credential> {
    const keys = await this.change((before) => {
      if (!before.some((key) => key.id === id)) throw unknown(id)
      return before.map((key) => (key.id === id ? { ...key, revokedAt: key.revokedAt ?? now } : key))
    })
    const revoked = keys.find((key) => key.id === id)
    if (revoked === undefined) throw unknown(id)
    return shown(revoked)
  }

  /** Resolves when everything that was to be noted has been. */
  settled(): Promise<void> {
    return this.writing
  }

  private look(now: Millis): Held {
    // A clock that was set back must not keep an old list in force.
    if (now < this.lookedAt || now - this.lookedAt >= second) {
      this.lookedAt = now
      this.fault = undefined
      try {
        this.held = this.read()
      } catch (error) {
        this.fault = this.unreadable(error)
      }
    }
    if (this.fault !== undefined) throw this.fault
    return this.held
  }

  private read(): Held {
    const stats = statSync(this.file, { bigint: true, throwIfNoEntry: false })
    if (stats === undefined && !this.wasThere) return none
    this.wasThere = true
    const stamp = stats === undefined ? 'gone' : [stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(' ')
    if (stamp === this.held.stamp) return this.held
    const keys = parseKeys(readFileSync(this.file, 'utf8'), this.file)
    return { stamp, byHash: new Map(keys.map((key) => [key.sha256, shown(key)])) }
  }

  private unreadable(cause: unknown): MemoryError {
    if (cause instanceof MemoryError) return cause
    const why = cause instanceof Error && 'code' in cause ? cause.code : 'an unknown fault'
    return new MemoryError(
      'bad-store',
      `The key file ${this.file} cannot be read (${why}), so no key is accepted. Bring it back, make it with threadkeep keys create, or look at its permissions.`,
      {
        param: 'file',
        cause,
      },
    )
  }

  /** Resolves to the keys as they are then. */
  private async change(change: (keys: readonly Kept[]) => readonly Kept[]): Promise<readonly Kept[]> {
    let keys: readonly Kept[] = []
    await replaceFile(this.file, (text) => {
      keys = change(text === undefined ? [] : parseKeys(text, this.file))
      return formatKeys(keys)
    })
    this.wasThere = true
    this.lookedAt = Number.NEGATIVE_INFINITY
    return keys
  }

  /** Written behind the request's back, and seldom: a disk is slower than a look-up. */
  private noteUse({ id, lastUsedAt = Number.NEGATIVE_INFINITY }: Credential, now: Millis): void {
    if (now - Math.max(lastUsedAt, this.used.get(id) ?? Number.NEGATIVE_INFINITY) < hour) return
    this.used.set(id, now)
    const note = (keys: readonly Kept[]): readonly Kept[] =>
      keys.map((key) => (key.id === id ? { ...key, lastUsedAt: now } : key))
    this.writing = this.writing.then(() => this.change(note)).then(() => undefined, this.onFault)
  }
}

const unknown = (id: string): MemoryError =>
  new MemoryError(
    'bad-option',
    `There is no key ${JSON.stringify(id.slice(0, 40))}. threadkeep keys list tells which there are.`,
    { param: 'id' },
  )
