import type { Derived, Message } from '../../domain/entry.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { Range } from '../../domain/ports.ts'
import { emptyHead, type Head, placeOf } from '../../domain/session.ts'
import type { Reader } from './read.ts'
import type { SessionRow } from './rows.ts'

/** What is at hand of a session: its row, and of the rest what has been asked for. `tail` are its newest messages without a hole. */
type Hot = {
  row: SessionRow
  checked: number
  tail: Message[]
  first?: Message | undefined
  asked?: Message | undefined
  derived?: readonly Derived[] | undefined
  /** What the derived entries take, and everything together as it was last counted. */
  derivedBytes: number
  bytes: number
}

/** So many of the newest messages of a session stay at hand, and so many sessions, as long as all of them take no more than so many bytes. */
const longestTail = 512
const mostSessions = 1_000
const mostBytes = 64_000_000

/**
 * Sessions at hand in front of the database. Nothing is told from them before it is known that nobody has written
 * since: one question to SQLite if no one has, one row of the session if someone has.
 */
export class Heads {
  private readonly reader: Reader
  private readonly hot = new Map<string, Hot>()
  private readonly most: number
  private total = 0

  constructor(reader: Reader, most = mostBytes) {
    this.reader = reader
    this.most = most
  }

  /** What is at hand, about, in bytes. */
  get bytes(): number {
    return this.total
  }

  head(key: Key, recent: number): Head {
    const known = this.unchanged(key)
    if (known !== undefined && isComplete(known, recent)) return this.headOf(key, known, recent)
    return this.reader.together(() => {
      const hot = this.fresh(key)
      return hot === undefined
        ? emptyHead(key, this.reader.buried(key))
        : this.counted(key, hot, this.headOf(key, hot, recent))
    })
  }

  page(key: Key, range: Range): readonly Message[] {
    const known = this.unchanged(key)
    const slice = known && sliceOf(known, range)
    if (slice !== undefined) return slice
    return this.reader.together(() => {
      const hot = this.fresh(key)
      return hot === undefined ? [] : this.counted(key, hot, this.pageOf(key, hot, range))
    })
  }

  /** Takes in what was just written from here, so that it need not be read back. */
  wrote(key: Key, row: SessionRow, messages: readonly Message[]): void {
    const hot = this.hot.get(formatKey(key))
    if (hot === undefined || hot.row.revision + 1 !== row.revision || !isContinued(hot.row, row)) return
    this.counted(key, this.follow(hot, row, messages), undefined)
  }

  /** Lets go of a session: it may hold what has just been forgotten. */
  drop(key: Key): void {
    this.letGo(formatKey(key))
  }

  /** What is at hand of a session, if nothing was written to it since; never more than one row is read. */
  private unchanged(key: Key): Hot | undefined {
    const known = this.hot.get(formatKey(key))
    if (known === undefined) return undefined
    const version = this.reader.version()
    if (known.checked === version) return known
    const row = this.reader.session(key)
    if (row === undefined || row.revision !== known.row.revision || !isContinued(known.row, row)) return undefined
    known.checked = version
    return known
  }

  private headOf(key: Key, hot: Hot, recent: number): Head {
    const { epoch, revision, started, touched, expires, messages, last, gaps } = hot.row
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
      recent: recent <= 0 ? [] : this.pageOf(key, hot, { limit: recent, newest: true }),
      first: this.first(key, hot),
      asked: this.asked(key, hot),
      derived: this.derived(key, hot),
    }
  }

  private pageOf(key: Key, hot: Hot, range: Range): readonly Message[] {
    const { row } = hot
    const isNewest = range.newest === true && (range.before ?? Number.POSITIVE_INFINITY) > row.last
    const wanted = Math.min(range.limit, longestTail, row.messages)
    if (isNewest && hot.tail.length < wanted)
      hot.tail = this.reader.messages(key, row.id, { limit: wanted, newest: true })
    return sliceOf(hot, range) ?? this.reader.messages(key, row.id, range)
  }

  private first(key: Key, hot: Hot): Message | undefined {
    if (hot.row.messages === 0) return undefined
    hot.first ??=
      hot.tail.length === hot.row.messages ? hot.tail[0] : this.reader.messages(key, hot.row.id, { limit: 1 })[0]
    return hot.first
  }

  private asked(key: Key, hot: Hot): Message | undefined {
    const { id, asked } = hot.row
    if (asked === null) return undefined
    if (hot.asked?.sequence === asked) return hot.asked
    const near = hot.tail[placeOf(hot.tail, asked)]
    hot.asked =
      near?.sequence === asked
        ? near
        : this.reader.messages(key, id, { after: asked - 1, before: asked + 1, limit: 1 })[0]
    return hot.asked
  }

  private derived(key: Key, hot: Hot): readonly Derived[] {
    if (hot.derived === undefined) {
      hot.derived = hot.row.learnt === 0 ? [] : this.reader.derived(key, hot.row.id)
      hot.derivedBytes = JSON.stringify(hot.derived).length
    }
    return hot.derived
  }

  private fresh(key: Key): Hot | undefined {
    const name = formatKey(key)
    const version = this.reader.version()
    const known = this.hot.get(name)
    if (known?.checked === version) return known
    const row = this.reader.session(key)
    this.letGo(name)
    if (row === undefined) return undefined
    const hot =
      known !== undefined && isContinued(known.row, row)
        ? this.followed(key, known, row)
        : { row, checked: version, tail: [], derivedBytes: 0, bytes: 0 }
    hot.checked = version
    this.hot.set(name, hot)
    this.total += hot.bytes
    return hot
  }

  /** Counts what is at hand of a session once it was read or followed; others that nobody has asked for make room. */
  private counted<T>(key: Key, hot: Hot, told: T): T {
    const bytes = bytesOf(hot)
    this.total += bytes - hot.bytes
    hot.bytes = bytes
    const name = formatKey(key)
    for (const oldest of this.hot.keys()) {
      if (this.total <= this.most && this.hot.size <= mostSessions) break
      if (oldest !== name) this.letGo(oldest)
    }
    return told
  }

  private letGo(name: string): void {
    this.total -= this.hot.get(name)?.bytes ?? 0
    this.hot.delete(name)
  }

  /** Only what others have added since is read, and only if the messages before it are at hand. */
  private followed(key: Key, hot: Hot, row: SessionRow): Hot {
    if (row.revision === hot.row.revision) return hot
    const added =
      hot.tail.length === 0 ? [] : this.reader.messages(key, row.id, { after: hot.row.last, limit: longestTail })
    return this.follow(hot, row, added)
  }

  private follow(hot: Hot, row: SessionRow, added: readonly Message[]): Hot {
    if (hot.tail.length > 0 || hot.row.messages === 0) hot.tail.push(...added)
    if (hot.tail.length > 2 * longestTail) hot.tail = hot.tail.slice(-longestTail)
    if (row.learnt !== hot.row.learnt) hot.derived = undefined
    if (row.asked !== hot.row.asked) hot.asked = added.find(({ sequence }) => sequence === row.asked)
    hot.row = row
    return hot
  }
}

/** What a message takes beside its text, about. */
const sizeOfMessage = 200

const bytesOf = ({ tail, first, asked, derivedBytes }: Hot): number =>
  [...tail, first, asked].reduce(
    (bytes, message) => bytes + (message === undefined ? 0 : sizeOfMessage + lengthOf(message)),
    derivedBytes,
  )

const lengthOf = ({ content, calls = [] }: Message): number =>
  calls.reduce((length, { name, arguments: text }) => length + name.length + text.length, content.length)

/** A piece of the transcript from the messages at hand; undefined if they do not reach far enough. */
function sliceOf(
  { tail, row }: Hot,
  { after = 0, before = Number.MAX_SAFE_INTEGER, limit, newest = false }: Range,
): readonly Message[] | undefined {
  const [from, to] = [placeOf(tail, after + 1), placeOf(tail, before)]
  const reaches = tail.length === row.messages || (tail[0] !== undefined && after + 1 >= tail[0].sequence)
  if (!newest) return reaches ? tail.slice(from, Math.min(to, from + limit)) : undefined
  return reaches || to >= limit ? tail.slice(Math.max(from, to - limit), to) : undefined
}

/** Whether a head can be told without reading anything. */
function isComplete({ row, tail, first, asked, derived }: Hot, recent: number): boolean {
  const hasEnds = (first !== undefined || row.messages === 0) && (row.asked === null || asked?.sequence === row.asked)
  return hasEnds && derived !== undefined && (tail.length >= recent || tail.length === row.messages)
}

/** Whether nothing went in between, and not so much was added that it is better read anew. */
const isContinued = (was: SessionRow, is: SessionRow): boolean =>
  was.id === is.id && was.epoch === is.epoch && was.removals === is.removals && is.last - was.last <= longestTail
