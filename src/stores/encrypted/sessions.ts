import { randomBytes } from 'node:crypto'
import type { Message } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { Erasure, Range, Store } from '../../domain/ports.ts'
import type { Change, Head } from '../../domain/session.ts'
import { BoxKey, closed, keyLength } from './box.ts'
import { copyOf, type Keyring, wipe } from './keyring.ts'
import { openDerived, openMessage, sealDerived, sealSaid } from './seal.ts'
import { isKeyEntry, keyEntryOf, unwrapped, wrapped } from './wrap.ts'

/** The key of a session, which stays the same until the session is forgotten. */
type Known = { readonly epoch: number; readonly secret: BoxKey }

/** So many sessions' keys are held ready. */
const most = 10_000

/** The sessions of a store, sealed on the way in and opened on the way out. */
export class SealedSessions implements Omit<Store, 'durability'> {
  private readonly inner: Store
  private readonly ring: Keyring
  private readonly known = new Map<string, Known>()
  private isClosed = false

  constructor(inner: Store, ring: Keyring) {
    this.inner = inner
    this.ring = copyOf(ring)
  }

  /** Fails at once when the keys do not fit what there is already, as far as its first session tells. */
  async check(): Promise<void> {
    const [first] = await this.store.list({ limit: 1 })
    if (first === undefined) return
    await this.read(first.key).catch((error: unknown) => {
      // a damaged session must not keep the others shut, nor itself from being forgotten
      if (!(error instanceof MemoryError) || error.code !== 'corrupt') throw error
    })
  }

  async head(key: Key, recent: number): Promise<Head> {
    const head = await this.store.head(key, recent)
    const secret = this.knownIn(head)?.secret
    if (secret === undefined) return head
    const open = (message: Message): Message => openMessage(message, key, secret)
    return {
      ...head,
      first: head.first && open(head.first),
      asked: head.asked && open(head.asked),
      recent: head.recent.map(open),
      derived: head.derived.filter((entry) => !isKeyEntry(entry)).map((entry) => openDerived(entry, key, secret)),
    }
  }

  async page(key: Key, range: Range): Promise<readonly Message[]> {
    const before = this.known.get(formatKey(key)) ?? (await this.read(key))
    const messages = await this.store.page(key, range)
    try {
      return messages.map((message) => openMessage(message, key, before?.secret))
    } catch (error) {
      // another process may have forgotten the session, or begun it anew under another key
      if ((await this.read(key))?.epoch === before?.epoch) throw error
      return this.page(key, range)
    }
  }

  async commit(change: Change): Promise<readonly Message[]> {
    if (change.put.some(isKeyEntry))
      throw new MemoryError('bad-option', 'The entry id #key is kept for the key of a sealed session; choose another.')
    const ready = this.known.get(formatKey(change.key))
    if (ready?.epoch === change.epoch) return this.write(change, ready)
    const head = await this.store.head(change.key, 0)
    const known = this.knownIn(head)
    return known?.epoch === change.epoch ? this.write(change, known) : this.begin(change, head.revision)
  }

  list(filter: Parameters<Store['list']>[0]): ReturnType<Store['list']> {
    return this.store.list(filter)
  }

  async erase(key: Key, only?: Erasure): Promise<readonly string[]> {
    const isPart = only !== undefined && 'entries' in only
    const gone = await this.store.erase(
      key,
      isPart ? { entries: only.entries.filter((id) => !isKeyEntry({ id })) } : only,
    )
    if (!isPart) this.known.delete(formatKey(key))
    return gone.filter((id) => !isKeyEntry({ id }))
  }

  /** A copy of the keys, for what lies beside the sessions; whoever takes it wipes it. */
  keyring(): Keyring {
    return copyOf(this.keys)
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.forgetKeys()
    wipe(this.ring)
    await this.inner.close()
  }

  /** The first change of a session brings its key along. Of several first writers one wins; the others write under its key. */
  private async begin(change: Change, revision: number): Promise<readonly Message[]> {
    const bytes = randomBytes(keyLength)
    const known: Known = { epoch: change.epoch, secret: new BoxKey(bytes) }
    const entry = wrapped(bytes, change.key, change.at, this.keys.current)
    try {
      const messages = await this.write({ ...change, base: change.base ?? revision }, known, [entry])
      this.remember(change.key, known)
      return messages
    } catch (error) {
      const isRace = change.base === undefined && error instanceof MemoryError && error.code === 'conflict'
      const winner = isRace ? await this.read(change.key) : undefined
      if (winner?.epoch !== change.epoch) throw error
      return this.write(change, winner)
    }
  }

  private async write(change: Change, { secret }: Known, first: Change['put'] = []): Promise<readonly Message[]> {
    const { key } = change
    const messages = await this.store.commit({
      ...change,
      append: change.append.map((said) => sealSaid(said, key, secret)),
      put: [...first, ...change.put.map((entry) => sealDerived(entry, key, secret))],
      drop: change.drop.filter((id) => !isKeyEntry({ id })),
    })
    return messages.map((message) => openMessage(message, key, secret))
  }

  private async read(key: Key): Promise<Known | undefined> {
    return this.knownIn(await this.store.head(key, 0))
  }

  /** The key of a session, out of its head or at hand from an earlier one of the same epoch. */
  private knownIn({ key, revision, epoch, derived }: Head): Known | undefined {
    if (revision === 0) return undefined
    const ready = this.known.get(formatKey(key))
    if (ready?.epoch === epoch) return ready
    const known = { epoch, secret: new BoxKey(unwrapped(keyEntryOf(derived, key), key, this.keys)) }
    this.remember(key, known)
    return known
  }

  private remember(key: Key, known: Known): void {
    this.known.set(formatKey(key), known)
    // what was being read while the store was closed
    if (this.isClosed) this.forgetKeys()
    else if (this.known.size > most) this.known.delete(this.known.keys().next().value as string)
  }

  private forgetKeys(): void {
    for (const { secret } of this.known.values()) secret.wipe()
    this.known.clear()
  }

  /** A closed store is not asked: its keys are gone, and its own words for that may be others. */
  private get store(): Store {
    if (this.isClosed) throw closed()
    return this.inner
  }

  private get keys(): Keyring {
    if (this.isClosed) throw closed()
    return this.ring
  }
}
