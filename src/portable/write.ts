import type { Derived, Millis, Said, Tokens } from '../domain/entry.ts'
import type { Key } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { Change, Head } from '../domain/session.ts'
import type { Linked } from './read.ts'
import type { MessageRecord, SessionRecord } from './records.ts'

/** How many messages and entries one change holds. */
const most = 500

/** What a store has of a session, as far as a writer needs to know. */
export type Held = Pick<Head, 'key' | 'revision' | 'epoch' | 'touchedAt' | 'expiresAt' | 'last'>

/** Where the next message would stand. */
type Next = { readonly sequence: number; readonly offset: Tokens }

/**
 * Writes one session into a store, change by change, from where the store's own copy of it ends. Every change is based
 * on the one before, so that anybody else who writes to the session meanwhile is not run over but a `conflict`.
 */
export class SessionWriter {
  private readonly store: Store
  private readonly key: Key
  private readonly session: SessionRecord
  private readonly had: number
  private readonly epoch: number
  private revision: number
  private touchedAt: Millis
  private expiresAt: Millis
  private last: number
  private next: Next = { sequence: 1, offset: 0 }
  private from: Next | undefined
  private append: Said[] = []
  private put: Derived[] = []
  private hash: string

  /** `held` is nothing, or the beginning of the session. `hash` stands for the session's line. */
  constructor(store: Store, held: Held, session: SessionRecord, hash: string) {
    this.store = store
    this.key = held.key
    this.session = session
    this.hash = hash
    this.had = held.last
    this.last = held.last
    this.epoch = held.epoch
    this.revision = held.revision
    this.touchedAt = held.touchedAt
    this.expiresAt = held.expiresAt
  }

  async add({ record, hash }: Linked): Promise<void> {
    if ('message' in record) await this.message(record.message)
    if ('entry' in record) {
      if (this.append.length + this.put.length >= most) await this.flush()
      this.put.push(record.entry)
    }
    this.hash = hash
  }

  /** Writes what is left, and what only the last change can say: when the session was touched and which number comes next. */
  async finish(): Promise<void> {
    await this.flush()
    const { startedAt, touchedAt, expiresAt, last } = this.session
    // a session of which nothing is left still began at its own time
    if (this.revision === 0 && startedAt !== touchedAt) await this.commit({ at: startedAt, append: [], put: [] })
    const done = this.revision > 0 && this.touchedAt === touchedAt && this.expiresAt === expiresAt && this.last === last
    if (done) return
    const from = this.last === last ? undefined : { sequence: last + 1, offset: this.next.offset }
    await this.commit({ at: touchedAt, append: [], put: [], ...(from === undefined ? {} : { from }) })
  }

  private async message({ sequence, offset, ...said }: MessageRecord): Promise<void> {
    const follows = sequence === this.next.sequence && offset === this.next.offset
    this.next = { sequence: sequence + 1, offset: offset + said.weight }
    if (sequence <= this.had) return
    if (this.append.length > 0 && (!follows || this.append.length >= most)) await this.flush()
    if (this.append.length === 0) this.from = { sequence, offset }
    this.append.push(said)
    this.last = sequence
  }

  private async flush(): Promise<void> {
    const { append, put, from } = this
    if (append.length === 0 && put.length === 0) return
    await this.commit({ at: this.session.startedAt, append, put, ...(from === undefined ? {} : { from }) })
    this.append = []
    this.put = []
    this.from = undefined
  }

  private async commit(change: Pick<Change, 'at' | 'append' | 'put' | 'from'>): Promise<void> {
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
