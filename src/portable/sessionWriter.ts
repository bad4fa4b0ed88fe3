import type { DerivedEntry, Millis, NewMessage, Tokens } from '../domain/entry.ts'
import type { Key } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { SessionChange, SessionHead } from '../domain/session.ts'
import type { VerifiedRecord } from './read.ts'
import type { MessageRecord, SessionRecord } from './records.ts'

/** Messages and entries per commit. */
const maxCommitItems = 500

/** The state of a stored session that a writer continues from. */
export type StoredState = Pick<SessionHead, 'key' | 'revision' | 'epoch' | 'touchedAt' | 'expiresAt' | 'lastSequence'>

/** The sequence number and token offset of a message. */
type MessagePosition = { readonly sequence: number; readonly offset: Tokens }

/**
 * Writes one imported session in several commits, continuing where the stored copy ends. Each commit is based on the
 * previous revision, so a concurrent write causes a `conflict` instead of being overwritten.
 */
export class SessionWriter {
  private readonly store: Store
  readonly key: Key
  private readonly session: SessionRecord
  private readonly storedLast: number
  private readonly epoch: number
  private revision: number
  private touchedAt: Millis
  private expiresAt: Millis
  private last: number
  private next: MessagePosition = { sequence: 1, offset: 0 }
  private appendFrom: MessagePosition | undefined
  private append: NewMessage[] = []
  private put: DerivedEntry[] = []
  private hash: string

  /** `stored` is empty or the beginning of the session; `hash` is that of the session's line. */
  constructor(store: Store, stored: StoredState, session: SessionRecord, hash: string) {
    this.store = store
    this.key = stored.key
    this.session = session
    this.hash = hash
    this.storedLast = stored.lastSequence
    this.last = stored.lastSequence
    this.epoch = stored.epoch
    this.revision = stored.revision
    this.touchedAt = stored.touchedAt
    this.expiresAt = stored.expiresAt
  }

  async add({ record, hash }: VerifiedRecord): Promise<void> {
    if ('message' in record) await this.addMessage(record.message)
    if ('entry' in record) {
      if (this.append.length + this.put.length >= maxCommitItems) await this.flush()
      this.put.push(record.entry)
    }
    this.hash = hash
  }

  /** Writes the rest, and a last commit that restores the session's times and next sequence number if needed. */
  async finish(): Promise<void> {
    await this.flush()
    const { startedAt, touchedAt, expiresAt, last } = this.session
    // An empty session also needs a first commit at its start time.
    if (this.revision === 0 && startedAt !== touchedAt) await this.commit({ at: startedAt, append: [], put: [] })
    const isDone =
      this.revision > 0 && this.touchedAt === touchedAt && this.expiresAt === expiresAt && this.last === last
    if (isDone) return
    const from = this.last === last ? undefined : { sequence: last + 1, offset: this.next.offset }
    await this.commit({ at: touchedAt, append: [], put: [], ...(from === undefined ? {} : { from }) })
  }

  private async addMessage({ sequence, offset, ...message }: MessageRecord): Promise<void> {
    const isContiguous = sequence === this.next.sequence && offset === this.next.offset
    this.next = { sequence: sequence + 1, offset: offset + message.weight }
    if (sequence <= this.storedLast) return
    if (this.append.length > 0 && (!isContiguous || this.append.length >= maxCommitItems)) await this.flush()
    if (this.append.length === 0) this.appendFrom = { sequence, offset }
    this.append.push(message)
    this.last = sequence
  }

  private async flush(): Promise<void> {
    const { append, put, appendFrom: from } = this
    if (append.length === 0 && put.length === 0) return
    await this.commit({ at: this.session.startedAt, append, put, ...(from === undefined ? {} : { from }) })
    this.append = []
    this.put = []
    this.appendFrom = undefined
  }

  private async commit(change: Pick<SessionChange, 'at' | 'append' | 'put' | 'from'>): Promise<void> {
    const { key, epoch, revision } = this
    const { expiresAt } = this.session
    await this.store.commit({
      ...change,
      id: `import ${this.hash} ${epoch}.${revision}`,
      key,
      epoch,
      base: revision,
      drop: [],
      expiresAt,
    })
    this.revision = revision + 1
    this.touchedAt = change.at
    this.expiresAt = expiresAt
  }
}
