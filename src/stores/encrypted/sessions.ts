import { randomBytes } from 'node:crypto'
import { checkEraseFilter } from '../../domain/checkEraseFilter.ts'
import type { Message } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import { LruCache } from '../../domain/lruCache.ts'
import type {
  AuxiliaryRecord,
  EraseFilter,
  Keyring,
  PageOptions,
  RecordRange,
  Store,
  StoredRecord,
} from '../../domain/ports.ts'
import type { SessionChange, SessionHead } from '../../domain/session.ts'
import { Cipher, keyLengthBytes, storeClosedError } from './cipher.ts'
import {
  decryptDerived,
  decryptMessage,
  decryptRecord,
  encryptDerived,
  encryptMessage,
  encryptRecord,
} from './entryCipher.ts'
import { findKeyEntry, isKeyEntry, unwrapKey, wrapKey } from './keyEntry.ts'
import { copyKeyring, wipeKeyring } from './keyring.ts'

/** Cipher of a session, which stays the same until the session is erased. */
type SessionCipher = { readonly epoch: number; readonly cipher: Cipher }

const maxCachedCiphers = 10_000

/** Encrypts what is written to a store and decrypts what is read from it. */
export class EncryptedSessions implements Omit<Store, 'durability' | 'capabilities'> {
  private readonly inner: Store
  private readonly keyring: Keyring
  private readonly ciphers = new LruCache<string, SessionCipher>({ maxEntries: maxCachedCiphers })
  private isClosed = false

  constructor(inner: Store, keyring: Keyring) {
    this.inner = inner
    this.keyring = copyKeyring(keyring)
  }

  /** Throws if the keys do not fit the first session of the store. */
  async verifyKeys(): Promise<void> {
    const [first] = await this.openInner().list({ limit: 1 })
    if (first === undefined) return
    await this.loadCipher(first.key).catch((error: unknown) => {
      // A damaged session must stay erasable and must not block the others.
      if (!(error instanceof MemoryError) || error.code !== 'corrupt') throw error
    })
  }

  async readHead(key: Key, recent: number): Promise<SessionHead> {
    const head = await this.openInner().readHead(key, recent)
    const cipher = this.cipherFor(head)?.cipher
    if (cipher === undefined) return head
    const decrypt = (message: Message): Message => decryptMessage(message, key, cipher)
    return {
      ...head,
      firstMessage: head.firstMessage && decrypt(head.firstMessage),
      lastUserMessage: head.lastUserMessage && decrypt(head.lastUserMessage),
      recent: head.recent.map(decrypt),
      derived: head.derived.filter((entry) => !isKeyEntry(entry)).map((entry) => decryptDerived(entry, key, cipher)),
    }
  }

  async readMessages(key: Key, range: PageOptions): Promise<readonly Message[]> {
    const before = this.ciphers.get(formatKey(key)) ?? (await this.loadCipher(key))
    const messages = await this.openInner().readMessages(key, range)
    try {
      return messages.map((message) => decryptMessage(message, key, before?.cipher))
    } catch (error) {
      // Another process may have erased the session and created it again with another key.
      if ((await this.loadCipher(key))?.epoch === before?.epoch) throw error
      return this.readMessages(key, range)
    }
  }

  async commit(change: SessionChange): Promise<readonly Message[]> {
    if (change.put.some(isKeyEntry))
      throw new MemoryError(
        'bad-option',
        'The entry id #key is reserved for the key of an encrypted session. Choose another id.',
      )
    const cached = this.ciphers.get(formatKey(change.key))
    if (cached?.epoch === change.epoch) return this.write(change, cached)
    const head = await this.openInner().readHead(change.key, 0)
    const current = this.cipherFor(head)
    return current?.epoch === change.epoch ? this.write(change, current) : this.createSession(change, head.revision)
  }

  list(filter: Parameters<Store['list']>[0]): ReturnType<Store['list']> {
    return this.openInner().list(filter)
  }

  async erase(key: Key, only?: EraseFilter): Promise<readonly string[]> {
    checkEraseFilter(only)
    const isPartial = only !== undefined && 'entries' in only
    const erasedIds = await this.openInner().erase(
      key,
      isPartial ? { entries: only.entries.filter((id) => !isKeyEntry({ id })) } : only,
    )
    if (!isPartial) this.ciphers.delete(formatKey(key))
    return erasedIds.filter((id) => !isKeyEntry({ id }))
  }

  async appendRecord(key: Key, record: AuxiliaryRecord, keep: number): Promise<boolean> {
    const { cipher } = this.ciphers.get(formatKey(key)) ?? (await this.loadCipher(key)) ?? {}
    if (cipher === undefined) return false
    return this.openInner().appendRecord(key, encryptRecord(record, key, cipher), keep)
  }

  async records(key: Key, range: RecordRange): Promise<readonly StoredRecord[]> {
    const records = await this.openInner().records(key, range)
    // Loaded after the read: a session that was erased and created again has another key.
    const cipher = records.length === 0 ? undefined : (await this.loadCipher(key))?.cipher
    return cipher === undefined ? [] : records.map((record) => decryptRecord(record, key, cipher))
  }

  /** Copies the keys for data stored beside the sessions; the caller wipes the copy. */
  copyKeyring(): Keyring {
    return copyKeyring(this.openKeyring())
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.wipeCiphers()
    wipeKeyring(this.keyring)
    await this.inner.close()
  }

  /**
   * Writes the first change of a session together with its new key. Of concurrent first writers one wins; the others
   * use its key.
   */
  private async createSession(change: SessionChange, revision: number): Promise<readonly Message[]> {
    const sessionKey = randomBytes(keyLengthBytes)
    const created: SessionCipher = { epoch: change.epoch, cipher: new Cipher(sessionKey) }
    const entry = wrapKey(sessionKey, change.key, change.at, this.openKeyring().current)
    try {
      const messages = await this.write({ ...change, base: change.base ?? revision }, created, [entry])
      this.cacheCipher(change.key, created)
      return messages
    } catch (error) {
      const isRace = change.base === undefined && error instanceof MemoryError && error.code === 'conflict'
      const winner = isRace ? await this.loadCipher(change.key) : undefined
      if (winner?.epoch !== change.epoch) throw error
      return this.write(change, winner)
    }
  }

  private async write(
    change: SessionChange,
    { cipher }: SessionCipher,
    keyEntry: SessionChange['put'] = [],
  ): Promise<readonly Message[]> {
    const { key } = change
    const messages = await this.openInner().commit({
      ...change,
      append: change.append.map((message) => encryptMessage(message, key, cipher)),
      put: [...keyEntry, ...change.put.map((entry) => encryptDerived(entry, key, cipher))],
      drop: change.drop.filter((id) => !isKeyEntry({ id })),
    })
    return messages.map((message) => decryptMessage(message, key, cipher))
  }

  private async loadCipher(key: Key): Promise<SessionCipher | undefined> {
    return this.cipherFor(await this.openInner().readHead(key, 0))
  }

  /** Returns the cached cipher of the head's epoch, or unwraps it from the head. */
  private cipherFor({ key, revision, epoch, derived }: SessionHead): SessionCipher | undefined {
    if (revision === 0) return undefined
    const cached = this.ciphers.get(formatKey(key))
    if (cached?.epoch === epoch) return cached
    const loaded = { epoch, cipher: new Cipher(unwrapKey(findKeyEntry(derived, key), key, this.openKeyring())) }
    this.cacheCipher(key, loaded)
    return loaded
  }

  private cacheCipher(key: Key, cipher: SessionCipher): void {
    this.ciphers.set(formatKey(key), cipher)
    // A read may finish after the store was closed.
    if (this.isClosed) this.wipeCiphers()
  }

  private wipeCiphers(): void {
    for (const [, { cipher }] of this.ciphers) cipher.wipe()
    this.ciphers.clear()
  }

  /** Throws this store's own error once it is closed, instead of whatever the inner store would throw. */
  private openInner(): Store {
    if (this.isClosed) throw storeClosedError()
    return this.inner
  }

  private openKeyring(): Keyring {
    if (this.isClosed) throw storeClosedError()
    return this.keyring
  }
}
