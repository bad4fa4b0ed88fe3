import type { Derived, Message } from '../../domain/entry.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { Range } from '../../domain/ports.ts'
import { emptyHead, type Head, placeOf } from '../../domain/session.ts'
import type { Reader } from './read.ts'
import type { SessionRow } from './rows.ts'

/** What is at hand of a session; `tail` are its newest messages without a hole. */
type Hot = { row: SessionRow; checked: number; tail: Message[]; first: Message | undefined; asked: Message | undefined; derived: readonly Derived[] }

/** So many of the newest messages of a session stay at hand, and so many sessions. */
const longestTail = 512
const mostSessions = 1_000

/**
 * Sessions at hand in front of the database. Nothing is told from them before it is known that nobody has written
 * since: one question to SQLite if no one has, one row of the session if someone has.
 */
export class Heads {
  private readonly reader: Reader
  private readonly hot = new Map<string, Hot>()

  constructor(reader: Reader) {
    this.reader = reader
  }

  head(key: Key, recent: number): Head {
    const hot = this.fresh(key)
    if (hot === undefined) return emptyHead(key, this.reader.buried(key))
    const { row, first, asked, derived } = hot
    const { epoch, revision, started, touched, expires, messages, last, gaps } = row
    return {
      key,
      revision,
      epoch,
      startedAt: started,
      touchedAt: touched,
      expiresAt: expires,
      messages,
      last,
      gaps,
      first,
      asked,
      recent: recent <= 0 ? [] : this.newest(key, hot, { limit: recent }),
      derived,
    }
  }

  page(key: Key, range: Range): readonly Message[] {
    const hot = this.fresh(key)
    if (hot === undefined) return []
    const { tail, row } = hot
    const { after = 0, before = Number.MAX_SAFE_INTEGER } = range
    if (range.newest === true) return this.newest(key, hot, range)
    const reaches = tail.length === row.messages || (tail[0] !== undefined && after + 1 >= tail[0].sequence)
    if (!reaches) return this.reader.messages(key, row.id, range)
    const from = placeOf(tail, after + 1)
    return tail.slice(from, Math.min(placeOf(tail, before), from + range.limit))
  }

  /** Lets go of a session: it may hold what has just been forgotten. */
  drop(key: Key): void {
    this.hot.delete(formatKey(key))
  }

  private newest(key: Key, { tail, row }: Hot, range: Range): readonly Message[] {
    const { after = 0, before = Number.MAX_SAFE_INTEGER, limit } = range
    const to = placeOf(tail, before)
    const from = Math.max(placeOf(tail, after + 1), to - limit)
    const isEnough = tail.length === row.messages || to - limit >= 0 || (tail[0] !== undefined && after + 1 >= tail[0].sequence)
    return isEnough ? tail.slice(from, to) : this.reader.messages(key, row.id, { ...range, newest: true })
  }

  private fresh(key: Key): Hot | undefined {
    const name = formatKey(key)
    const version = this.reader.version()
    const known = this.hot.get(name)
    if (known?.checked === version) return known
    const hot = this.reader.together(() => {
      const row = this.reader.session(key)
      if (row === undefined) return undefined
      const goesOn = known !== undefined && isContinued(known.row, row)
      return goesOn ? this.followed(key, known, row) : this.read(key, row)
    })
    this.hot.delete(name)
    if (hot === undefined) return undefined
    hot.checked = version
    this.hot.set(name, hot)
    if (this.hot.size > mostSessions) this.hot.delete(this.hot.keys().next().value as string)
    return hot
  }

  private read(key: Key, row: SessionRow): Hot {
    const { reader } = this
    const tail = reader.messages(key, row.id, { limit: 64, newest: true })
    const first = tail.length === row.messages ? tail[0] : reader.messages(key, row.id, { limit: 1 })[0]
    return { row, checked: 0, tail, first, asked: this.asked(key, row, tail), derived: row.learnt === 0 ? [] : reader.derived(key, row.id) }
  }

  /** Only what was added since is read. */
  private followed(key: Key, hot: Hot, row: SessionRow): Hot {
    if (row.revision === hot.row.revision) return hot
    const added = this.reader.messages(key, row.id, { after: hot.row.last, limit: Number.MAX_SAFE_INTEGER })
    hot.tail.push(...added)
    if (hot.tail.length > 2 * longestTail) hot.tail = hot.tail.slice(-longestTail)
    hot.first ??= hot.tail[0]
    if (row.asked !== hot.row.asked) hot.asked = this.asked(key, row, hot.tail)
    if (row.learnt !== hot.row.learnt) hot.derived = this.reader.derived(key, row.id)
    hot.row = row
    return hot
  }

  private asked(key: Key, { id, asked }: SessionRow, tail: readonly Message[]): Message | undefined {
    if (asked === null) return undefined
    const near = tail[placeOf(tail, asked)]
    return near?.sequence === asked ? near : this.reader.messages(key, id, { after: asked - 1, before: asked + 1, limit: 1 })[0]
  }
}

/** Whether nothing went in between, and not so much was added that it is better read anew. */
const isContinued = (was: SessionRow, is: SessionRow): boolean =>
  was.id === is.id && was.epoch === is.epoch && was.removals === is.removals && is.last - was.last <= longestTail
