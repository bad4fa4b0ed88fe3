import { randomBytes } from 'node:crypto'
import { checkEraseFilter, checkListFilter } from '../../domain/checkStoreOptions.ts'
import {
  type DerivedEntry,
  type EncryptedEntry,
  type Message,
  type Millis,
  metadataId,
  type NewMessage,
} from '../../domain/entry.ts'
import { hasErrorCode, MemoryError } from '../../domain/error.ts'
import { encryptedTableKey, formatKey, type Key } from '../../domain/key.ts'
import { KeyedMutex } from '../../domain/keyed.ts'
import { LruCache } from '../../domain/lruCache.ts'
import type {
  AuxiliaryRecord,
  EraseFilter,
  IndexChanges,
  Keyring,
  PageOptions,
  RecordRange,
  SearchIndex,
  SearchTarget,
  SessionFilter,
  Store,
  StoredRecord,
} from '../../domain/ports.ts'
import { noExpiry, type SessionChange, type SessionHead, type SessionListItem } from '../../domain/session.ts'
import { estimateSize } from '../../domain/stringify.ts'
import { listInPages } from '../listInPages.ts'
import { estimateMessageBytes } from '../messageTail.ts'
import { mapInTurns } from '../yieldToEventLoop.ts'
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

/** True for the session that holds the key of the rows of a scope. */
const isTableKey = (key: Key): boolean => key.id === encryptedTableKey(key.scope).id

/** Cipher of a session, which stays the same until the session is erased. */
export type SessionCipher = { readonly epoch: number; readonly cipher: Cipher }

const maxCachedCiphers = 10_000
/** Characters that are encrypted in one turn. */
const maxCharactersAtOnce = 65_536
/** Characters that take as long as an entry beside its text. */
const entryCharacters = 300

function isLong({ append, put, replace = [] }: SessionChange): boolean {
  let size = entryCharacters * (append.length + put.length + replace.length)
  for (const message of append) size += estimateMessageBytes(message)
  for (const { message } of replace) size += estimateMessageBytes(message)
  return size + estimateSize(put, maxCharactersAtOnce) > maxCharactersAtOnce
}

/** Encrypts what is written to a store and decrypts what is read from it. */
export class EncryptedSessions implements Omit<Store, 'durability' | 'capabilities' | 'table'> {
  private readonly inner: Store
  private readonly keyring: Keyring
  private readonly ciphers = new LruCache<string, SessionCipher>({ maxEntries: maxCachedCiphers })
  /** Decrypted entries by their encrypted ones, as long as the inner store keeps these in memory. */
  private decrypted = new WeakMap<DerivedEntry, DerivedEntry>()
  private readonly longWrites = new KeyedMutex()
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
      recent: await mapInTurns(head.recent, decrypt),
      derived: await mapInTurns(
        head.derived.filter((entry) => !isKeyEntry(entry)),
        (entry) => this.decryptOnce(entry, key, cipher),
      ),
    }
  }

  /** Decrypts an entry; the inner store returns the same object while it keeps the entry. */
  private decryptOnce(entry: DerivedEntry, key: Key, cipher: Cipher): DerivedEntry {
    const known = this.decrypted.get(entry)
    if (known !== undefined) return known
    const decrypted = decryptDerived(entry, key, cipher)
    this.decrypted.set(entry, decrypted)
    return decrypted
  }

  async readMessages(key: Key, range: PageOptions): Promise<readonly Message[]> {
    const before = this.ciphers.get(formatKey(key)) ?? (await this.loadCipher(key))
    const messages = await this.openInner().readMessages(key, range)
    try {
      return await mapInTurns(messages, (message) => decryptMessage(message, key, before?.cipher))
    } catch (error) {
      // Another process may have erased the session and created it again with another key.
      if ((await this.loadCipher(key))?.epoch === before?.epoch) throw error
      return this.readMessages(key, range)
    }
  }

  async findMessages(key: Key, externalIds: readonly string[]): Promise<readonly Message[]> {
    const head = await this.openInner().readHead(key, 0)
    const cipher = this.cipherFor(head)?.cipher
    if (cipher === undefined) return []
    const found = await this.openInner().findMessages(
      key,
      externalIds.map((id) => cipher.digest(id)),
    )
    return mapInTurns(found, (message) => decryptMessage(message, key, cipher))
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

  async list(filter: SessionFilter): Promise<readonly SessionListItem[]> {
    checkListFilter(filter)
    return listInPages(filter, (page) => this.listPage(page))
  }

  /** Lists sessions with their decrypted metadata, without those that hold only a key. */
  private async listPage(filter: SessionFilter): Promise<readonly SessionListItem[]> {
    const found: SessionListItem[] = []
    for (let { after = '' } = filter; ; ) {
      const limit = filter.limit - found.length
      const page = await this.openInner().list({ ...filter, after, limit })
      for (const item of page) if (!isTableKey(item.key)) found.push(await this.withMetadata(item))
      const last = page.at(-1)
      if (last === undefined || page.length < limit || found.length >= filter.limit) return found
      after = formatKey(last.key)
    }
  }

  private async withMetadata(item: SessionListItem): Promise<SessionListItem> {
    const head = await this.openInner().readHead(item.key, 0)
    const entry = head.derived.find(({ id }) => id === metadataId)
    const cipher = entry && this.cipherFor(head)?.cipher
    const about = cipher && decryptDerived(entry, item.key, cipher)
    return about?.kind === 'about' && about.metadata !== undefined ? { ...item, metadata: about.metadata } : item
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

  /** Lists changed sessions without those that hold only a key. */
  async changesSince(inner: SearchIndex, where: SearchTarget, since: number): Promise<IndexChanges> {
    const changes = await inner.changesSince(where, since)
    return { ...changes, sessions: changes.sessions.filter((key) => !isTableKey(key)) }
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
    return cipher === undefined ? [] : mapInTurns(records, (record) => decryptRecord(record, key, cipher))
  }

  /** Loads the cipher of a session that holds only a key; creates the session if it does not exist. */
  async requireCipher(key: Key, at: Millis): Promise<SessionCipher> {
    for (;;) {
      const head = await this.openInner().readHead(key, 0)
      const existing = this.cipherFor(head)
      if (existing !== undefined) return existing
      const change = { key, at, epoch: head.epoch, append: [], put: [], drop: [], expiresAt: noExpiry }
      // Another process may have erased the session meanwhile, or created it.
      await this.createSession(change, 0).catch((error: unknown) => {
        if (!(error instanceof MemoryError) || (error.code !== 'erased' && error.code !== 'conflict')) throw error
      })
    }
  }

  /** Copies the keys for data stored beside the sessions; the caller wipes the copy. */
  copyKeyring(): Keyring {
    return copyKeyring(this.openKeyring())
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.wipeCiphers()
    this.decrypted = new WeakMap()
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

  /**
   * Encrypts and commits a change. A long one is encrypted in steps; later ones to its session wait for it. A short one
   * reaches the inner store within the call, so that changes are stored in the order of the calls.
   */
  private async write(
    change: SessionChange,
    cipher: SessionCipher,
    keyEntry: SessionChange['put'] = [],
  ): Promise<readonly Message[]> {
    const name = formatKey(change.key)
    const inSteps = isLong(change)
    const commit = () => this.encryptAndCommit(change, cipher, keyEntry, inSteps)
    return inSteps || this.longWrites.isHeld(name) ? this.longWrites.run(name, commit) : commit()
  }

  private async encryptAndCommit(
    change: SessionChange,
    { cipher }: SessionCipher,
    keyEntry: SessionChange['put'],
    inSteps: boolean,
  ): Promise<readonly Message[]> {
    const { key, append, put, replace = [] } = change
    const encrypt = (message: NewMessage): NewMessage => encryptMessage(message, key, cipher)
    const encryptOne = ({ id, message }: { id: string; message: NewMessage }) => ({ id, message: encrypt(message) })
    const encryptEntry = (entry: DerivedEntry): EncryptedEntry => encryptDerived(entry, key, cipher)
    const [appended, entries, replaced] = inSteps
      ? [await mapInTurns(append, encrypt), await mapInTurns(put, encryptEntry), await mapInTurns(replace, encryptOne)]
      : [append.map(encrypt), put.map(encryptEntry), replace.map(encryptOne)]
    const encrypted: SessionChange = {
      ...change,
      append: appended,
      put: [...keyEntry, ...entries],
      drop: change.drop.filter((id) => !isKeyEntry({ id })),
      ...(change.replace !== undefined && { replace: replaced }),
    }
    const messages = await this.openInner()
      .commit(encrypted)
      .catch((error: unknown) => {
        throw withOwnIds(error, [...append, ...replace.map(({ message }) => message)], cipher)
      })
    return mapInTurns(messages, (message) => decryptMessage(message, key, cipher))
  }

  /** Loads the cipher of a session; undefined if the session does not exist. */
  async loadCipher(key: Key): Promise<SessionCipher | undefined> {
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

/** Names the ids of the caller in a conflict, in the place of their digests. */
function withOwnIds(error: unknown, messages: readonly NewMessage[], cipher: Cipher): unknown {
  if (!hasErrorCode(error, 'conflict')) return error
  const text = messages.reduce(
    (text, { externalId }) =>
      externalId === undefined
        ? text
        : text.replace(JSON.stringify(cipher.digest(externalId)), () => JSON.stringify(externalId)),
    error.message,
  )
  return new MemoryError('conflict', text, { cause: error })
}
