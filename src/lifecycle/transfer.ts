import { aboutIn, type Derived, type Knowledge, type Message, type Millis, type Said } from '../domain/entry.ts'
import { check, MemoryError } from '../domain/error.ts'
import { formatKey, isInner, type Key, parseStoredKey, scopeKey } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import { type Change, type Head, isExpired } from '../domain/session.ts'
import type { Barrier } from '../memory/secretMasker.ts'
import { revise, wrote } from '../upkeep/revise.ts'
import { described } from './about.ts'
import { innerOf, ownerOf } from './inner.ts'

type Means = { readonly sessions: Store; readonly store: Store; readonly barrier: Barrier | undefined }

const everything = Number.MAX_SAFE_INTEGER
/** What others keep writing to is not moved. */
const mostRounds = 100

/**
 * Lets a session go on under another key, with everything that was said and made of it. First the new key is reserved,
 * then the old one sends its writers there, then what it holds is copied and leaves it: whoever meets either of them
 * after this was interrupted goes on with it, and every step that was done before changes nothing.
 */
export class Transfer {
  private readonly means: Means

  constructor(means: Means) {
    this.means = means
  }

  async transfer(from: Key, to: Key, now: Millis): Promise<void> {
    check(
      'to',
      formatKey(to),
      from.scope === to.scope && from.id !== '' && to.id !== '' && from.id !== to.id,
      `another session of ${from.scope}`,
    )
    const head = await this.means.sessions.head(from, 0)
    const moved = aboutIn(head.derived)?.movedTo
    if (moved !== undefined && moved !== to.id) throw movedTo(from, moved)
    check(
      'from',
      formatKey(from),
      head.revision > 0 && !isExpired(head, now),
      'a session that has begun and is not over',
    )
    if (moved === undefined) await this.reserve(head, to)
    await this.finish(from, to, now)
  }

  /** The session as writers may find it, once a transfer that was interrupted is done. Refused where it goes on elsewhere. */
  async settled(head: Head, now: Millis): Promise<Head> {
    const { key, messages, derived } = head
    const { movedTo: to, movedFrom: from } = aboutIn(derived) ?? {}
    if (to !== undefined) {
      if (messages > 0 || derived.length > 1) await this.finish(key, sessionOf(key, to), now)
      throw movedTo(key, to)
    }
    if (from === undefined) return head
    await this.finish(sessionOf(key, from), key, now)
    return this.means.sessions.head(key, 0)
  }

  /**
   * Takes the new key for this transfer, if nobody has used it. It begins and ends first: who has read it before is then
   * refused, and nobody else writes to it until everything is there.
   */
  private async reserve({ key: from, startedAt, expiresAt }: Head, to: Key): Promise<void> {
    const { sessions } = this.means
    const before = await sessions.head(to, 0)
    if (aboutIn(before.derived)?.movedFrom === from.id) return
    const change = { key: to, at: startedAt, base: 0, append: [], put: [], drop: [] }
    try {
      await sessions.commit({ ...change, epoch: before.epoch, expiresAt: 0 })
      await sessions.erase(to, { expiredBy: 0 })
      const about = { ...described(undefined, {}, startedAt), movedFrom: from.id }
      await sessions.commit({ ...change, epoch: before.epoch + 1, put: [about], expiresAt })
    } catch (error) {
      if (!(error instanceof MemoryError && (error.code === 'conflict' || error.code === 'erased'))) throw error
      throw new MemoryError(
        'conflict',
        `Session ${formatKey(to)} has begun already. Transfer ${formatKey(from)} to a key that nobody has used.`,
      )
    }
  }

  private async finish(from: Key, to: Key, now: Millis): Promise<void> {
    const { sessions, barrier } = this.means
    await revise(sessions, from, ({ revision, derived }) => {
      const about = aboutIn(derived)
      return revision === 0 || about?.movedTo === to.id
        ? undefined
        : { put: [{ ...described(about, {}, now), movedTo: to.id }], drop: [] }
    })
    await this.empty(from, to)
    for (const inner of await innerOf(sessions, from)) {
      await this.emptyInner(inner, parseStoredKey(`${formatKey(to)}${inner.id.slice(from.id.length)}`))
    }
    barrier?.move(from, to)
    await this.rename(from, to)
    await this.open(from, to, now)
  }

  /** Brings over whatever the old key holds, until it holds nothing: somebody may have been writing to it. */
  private async empty(from: Key, to: Key): Promise<void> {
    const { sessions } = this.means
    for (let round = 0; round < mostRounds; round++) {
      const head = await sessions.head(from, 0)
      if (head.messages === 0 && head.derived.every(isAbout)) return
      const target = await sessions.head(to, 0)
      const isReserved = aboutIn(target.derived)?.movedFrom === from.id
      const drop = await (isReserved ? this.copy(head, target) : this.follow(head, to))
      if (drop !== undefined) await wrote(sessions, head, { put: [], drop })
    }
    throw new MemoryError('conflict', `Others write to ${formatKey(from)} without pause. Try again.`)
  }

  /** The same for what is kept beside a session, which then goes. */
  private async emptyInner(from: Key, to: Key): Promise<void> {
    const { sessions } = this.means
    for (let round = 0; round < mostRounds; round++) {
      const head = await sessions.head(from, 0)
      if ((await this.copy(head, await sessions.head(to, 0))) === undefined) continue
      await sessions.erase(from)
      return
    }
  }

  /**
   * Copies what a session holds to a key to which nobody else writes, under the same numbers, and resolves to the ids of
   * what is there then. Undefined if somebody did write: another who finishes the same transfer.
   */
  private async copy(head: Head, target: Head): Promise<readonly string[] | undefined> {
    const { sessions } = this.means
    const messages = await sessions.page(head.key, { limit: everything })
    const put = movedAlong(head, target.key)
    try {
      for (const [step, change] of stepsOf(head, target, messages, put).entries())
        await sessions.commit({ ...change, base: target.revision + step })
    } catch (error) {
      if (error instanceof MemoryError && error.code === 'conflict') return undefined
      throw error
    }
    return [...messages, ...put].map(({ id }) => id)
  }

  /** What was said to the old key at the last moment, when others write to the new one already, comes last there. */
  private async follow(head: Head, to: Key): Promise<readonly string[]> {
    const { sessions } = this.means
    const messages = await sessions.page(head.key, { limit: everything })
    for (const message of messages) {
      const target = await sessions.head(to, 0)
      await sessions.commit({ ...changeOf(head, target), id: moveOf(head, message), append: [saidOf(message)] })
    }
    return [...messages, ...head.derived.filter((entry) => !isAbout(entry))].map(({ id }) => id)
  }

  /** What the scope has learnt from the old session it has learnt from the new one: it is forgotten with it. */
  private async rename(from: Key, to: Key): Promise<void> {
    await revise(this.means.store, scopeKey(from), ({ derived }) => ({
      put: derived.flatMap((entry) =>
        entry.kind === 'knowledge' && names(entry, from.id) ? [renamed(entry, from.id, to.id)] : [],
      ),
      drop: [],
    }))
  }

  /** Lets others write to the new key, which is now what the old one was. */
  private async open(from: Key, to: Key, now: Millis): Promise<void> {
    const { sessions } = this.means
    const old = aboutIn((await sessions.head(from, 0)).derived)
    await revise(sessions, to, ({ derived }) => {
      if (aboutIn(derived)?.movedFrom !== from.id) return undefined
      const { movedTo: _, ...about } = described(old, {}, now)
      return Object.keys(about).length > bare ? { put: [about], drop: [] } : { put: [], drop: [about.id] }
    })
  }
}

/** An `about` that says nothing has this many fields. */
const bare = Object.keys(described(undefined, {}, 0)).length

const isAbout = ({ kind }: Derived): boolean => kind === 'about'

/** The changes that make one session what another is, as far as it is not yet: each run of messages, what was made of them, the last number. */
function stepsOf(head: Head, target: Head, messages: readonly Message[], put: readonly Derived[]): readonly Change[] {
  const change = changeOf(head, target)
  const missing = messages.filter(({ sequence }) => sequence > target.last)
  // What was said at the last moment, when most is there, somebody else may bring over too.
  const isLate = target.last > 0
  const steps = (isLate ? missing.map((message) => [message]) : runsIn(missing)).map((run): Change => {
    const first = run[0] as Message
    const { sequence, offset } = first
    return {
      ...change,
      ...(isLate ? { id: moveOf(head, first) } : {}),
      from: { sequence, offset },
      append: run.map(saidOf),
    }
  })
  if (put.length > 0) steps.push({ ...change, put })
  const newest = messages.at(-1)
  // Numbers of messages that are gone are not given again.
  const from = { sequence: head.last + 1, offset: newest === undefined ? 0 : newest.offset + newest.weight }
  if (head.last > Math.max(target.last, newest?.sequence ?? 0)) steps.push({ ...change, from })
  return steps
}

/** What names the way of a message from the old key to the new one, however many bring it over. */
const moveOf = ({ key, epoch }: Head, { sequence }: Message): string => `move:${key.id}:${epoch}:${sequence}`

const changeOf = (head: Head, target: Head): Change => ({
  key: target.key,
  at: Math.max(head.touchedAt, target.touchedAt),
  epoch: target.epoch,
  append: [],
  put: [],
  drop: [],
  expiresAt: Math.max(head.expiresAt, target.expiresAt),
})

const sessionOf = ({ scope }: Key, id: string): Key => parseStoredKey(`${scope}:${id}`)

const movedTo = ({ scope, id }: Key, to: string): MemoryError =>
  new MemoryError('moved', `Session ${scope}:${id} goes on as ${scope}:${to}. Write there.`, { to: `${scope}:${to}` })

/** Messages that follow on each other without a gap. */
function runsIn(messages: readonly Message[]): readonly (readonly Message[])[] {
  const runs: Message[][] = []
  for (const message of messages) {
    const run = runs.at(-1)
    if (run?.at(-1)?.sequence === message.sequence - 1) run.push(message)
    else runs.push([message])
  }
  return runs
}

function saidOf({ kind: _, id: __, sequence: ___, offset: ____, ...said }: Message): Said {
  return said
}

/** What was made of a session. What is said about it comes last, when others may write; about a branch, it goes along and names the new session. */
function movedAlong({ key, derived }: Head, to: Key): readonly Derived[] {
  if (!isInner(key)) return derived.filter((entry) => !isAbout(entry)).map(withoutLease)
  const session = ownerOf(to)?.id ?? to.id
  return derived.map((entry) =>
    entry.kind === 'about' && entry.branchOf !== undefined
      ? { ...entry, branchOf: { ...entry.branchOf, session } }
      : entry,
  )
}

/** Who was at work on the old session is not at work on the new one. */
function withoutLease(entry: Derived): Derived {
  if (entry.kind !== 'notes') return entry
  const { lease: _, ...notes } = entry
  return notes
}

const names = ({ told = [], used = [], sources }: Knowledge, session: string): boolean =>
  told.includes(session) || used.includes(session) || sources.some((source) => source.session === session)

function renamed(entry: Knowledge, from: string, to: string): Knowledge {
  const other = (session: string): string => (session === from ? to : session)
  const { told, used, sources } = entry
  return {
    ...entry,
    ...(told === undefined ? {} : { told: told.map(other) }),
    ...(used === undefined ? {} : { used: used.map(other) }),
    sources: sources.map((source) => (source.session === from ? { ...source, session: to } : source)),
  }
}
