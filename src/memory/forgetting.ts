import type { Derived, Fact, Knowledge, Message, Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key, parseKey, parseStoredKey, type Scope, scopeKey } from '../domain/key.ts'
import type { Erasure, Store } from '../domain/ports.ts'
import type { Lifecycle } from '../lifecycle/lifecycle.ts'
import { marksIn } from '../text/secretMark.ts'
import { type GoneBySession, says, taintedBy } from '../upkeep/erase.ts'
import { overlaps } from '../upkeep/fold.ts'
import { revise } from '../upkeep/revise.ts'
import type { Barrier } from './secrets.ts'

/** What `forget` takes: a session, one message of it or several, a scope with all its sessions, or whatever in a scope holds a text. */
export type Target =
  | { readonly key: string }
  | { readonly key: string; readonly messageId: string }
  | { readonly key: string; readonly messageIds: readonly string[] }
  | { readonly scope: Scope }
  | { readonly scope: Scope; readonly text: string }

/** What went, by session, and which derived entries were made anew without it. */
export type Forgotten = {
  readonly at: Millis
  readonly sessions: readonly {
    readonly key: string
    readonly entries: readonly string[]
    readonly renewed?: readonly string[]
  }[]
}

/** Makes a derived entry anew from the messages that are left of its sources; undefined when nothing is left to say. */
export type Rederive = (entry: Derived, from: readonly Message[]) => Promise<Derived | undefined>

type Stores = {
  readonly sessions: Store
  readonly store: Store
  readonly barrier?: Barrier | undefined
  readonly life?: Lifecycle | undefined
}
type Went = { entries: string[]; renewed: string[] }

const everything = Number.MAX_SAFE_INTEGER

/**
 * Forgets for good: what is named, and everything derived from it. Derived entries go first and come back, made anew
 * from what is left, last: whenever this is interrupted, nothing says what should be forgotten that has lost its source.
 */
export class Forgetting {
  private readonly stores: Stores
  private readonly rederive: Rederive
  private readonly went = new Map<string, Went>()
  private unclean: MemoryError | undefined

  constructor(stores: Stores, rederive: Rederive) {
    this.stores = stores
    this.rederive = rederive
  }

  async forget(target: Target, at: Millis): Promise<Forgotten> {
    if ('scope' in target)
      await ('text' in target ? this.text(parseKey(target.scope), target.text) : this.scope(parseKey(target.scope)))
    else {
      const key = parseKey(target.key)
      const store = key.id === '' ? this.stores.store : this.stores.sessions
      const ids = 'messageIds' in target ? target.messageIds : 'messageId' in target ? [target.messageId] : undefined
      await (ids === undefined ? this.session(store, key) : this.messages(store, key, ids))
    }
    if (this.unclean !== undefined) throw this.unclean
    const sessions = [...this.went].map(([key, { entries, renewed }]) => ({
      key,
      entries,
      ...(renewed.length === 0 ? {} : { renewed }),
    }))
    return { at, sessions: sessions.filter(({ entries }) => entries.length > 0) }
  }

  private async scope({ scope }: Key): Promise<void> {
    this.stores.barrier?.drop(scope)
    for (const store of this.both()) {
      for (const { key } of await store.list({ scope, limit: everything })) await this.erase(store, key)
    }
  }

  /** The values of secrets go with the messages that held them, and no others do. */
  private async uncover(store: Store, key: Key, ids: readonly string[]): Promise<void> {
    const { barrier } = this.stores
    if (barrier?.knows(key) !== true) return
    const [gone, left] = [new Set<string>(), new Set<string>()]
    for await (const message of walk(store, key))
      for (const mark of marksIn(JSON.stringify(message))) (ids.includes(message.id) ? gone : left).add(mark)
    barrier.dropMarks(
      key,
      [...gone].filter((mark) => !left.has(mark)),
    )
  }

  private async session(store: Store, key: Key): Promise<void> {
    this.stores.barrier?.drop(key.scope, key.id)
    const gone = new Map([[key.id, 'all' as const]])
    const tainted = [...(await this.untaint(key, gone))]
    await this.erase(store, key)
    await this.beside(store, key)
    await this.unname(key)
    // Until then somebody could still derive something from it.
    tainted.push(...(await this.untaint(key, gone)))
    await this.renew(tainted)
  }

  /** What the engine keeps beside a session goes with it: branches, receipts, and what nobody was told yet of its end. */
  private async beside(store: Store, key: Key): Promise<void> {
    for (const { key: inner, only } of (await this.stores.life?.beside(store, key)) ?? [])
      await this.erase(store, inner, only)
  }

  private async messages(store: Store, key: Key, ids: readonly string[]): Promise<void> {
    const gone = new Map([[key.id, new Set(ids)]])
    await this.uncover(store, key, ids)
    const above = await this.untaint(key, gone)
    const own: Tainted[] = []
    // Somebody may derive something from the message until it is gone; then nobody can any more.
    for (let isFirst = true; ; isFirst = false) {
      const tainted = taintedBy((await store.head(key, 0)).derived, key.id, gone)
      if (!isFirst && tainted.length === 0) break
      await this.erase(store, key, { entries: [...ids, ...tainted.map(({ id }) => id)] })
      own.push(...tainted.map((entry) => ({ store, key, entry, gone })))
    }
    await this.renew([...own, ...above])
    await this.recount(store, key)
  }

  private async text({ scope }: Key, text: string): Promise<void> {
    if (typeof text !== 'string' || text.trim() === '') {
      throw new MemoryError(
        'bad-option',
        'text is empty; say what should be forgotten, or leave text out to forget the whole scope.',
        { param: 'text' },
      )
    }
    for (const store of this.both()) {
      for (const { key } of await store.list({ scope, limit: everything })) {
        const ids = await holding(store, key, [text, ...(this.stores.barrier?.marksOf(key, text) ?? [])])
        if (ids.length > 0) await this.messages(store, key, ids)
      }
      // What the store keeps beside entries, such as remains of damaged ones, may hold it too.
      await this.erase(store, parseKey(scope), { remains: true })
    }
  }

  /** Takes what was derived from a session out of the scope's own memory. */
  private async untaint(key: Key, gone: GoneBySession): Promise<readonly Tainted[]> {
    if (key.id === '') return []
    const { store } = this.stores
    const home = scopeKey(key)
    const tainted = taintedBy((await store.head(home, 0)).derived, '', gone)
    // Also if there is none: who is about to derive something there must read again what there is to derive it from.
    await this.erase(store, home, { entries: tainted.map(({ id }) => id) })
    return tainted.map((entry) => ({ store, key: home, entry, gone }))
  }

  /** Facts that were forgotten are not missed. */
  private async recount(store: Store, key: Key): Promise<void> {
    await revise(store, key, ({ derived }) => {
      const facts = derived.filter(({ kind }) => kind === 'fact').length
      const notes = derived.find((entry) => entry.kind === 'notes')
      return notes?.facts === undefined || notes.facts <= facts ? undefined : { put: [{ ...notes, facts }], drop: [] }
    })
  }

  /** Takes the name of a session out of what others have told: that it told or used it too is forgotten. */
  private async unname({ scope, id }: Key): Promise<void> {
    if (id === '') return
    await revise(this.stores.store, parseKey(scope), ({ derived }) => ({
      put: derived.flatMap((entry) =>
        entry.kind === 'knowledge' && names(entry, id) ? [withoutSession(entry, id)] : [],
      ),
      drop: [],
    }))
  }

  private async renew(all: readonly Tainted[]): Promise<void> {
    // The newest last: what it had superseded holds for as long as nothing else does.
    const tainted = [...all].sort((left, right) => left.entry.at - right.entry.at)
    for (const { store, key, entry, gone } of tainted) {
      const fresh = isTold(entry)
        ? stillTold(entry, gone)
        : await this.rederive(entry, await this.left(store, key, entry, gone))
      const revised = await revise(store, key, ({ revision, derived }) => {
        if (revision === 0 || isOvertaken(fresh, derived)) return undefined
        return { put: fresh === undefined ? revived(entry, derived, tainted) : [fresh], drop: [] }
      })
      this.of(key).renewed.push(...(revised?.put.map(({ id }) => id) ?? []))
    }
  }

  /** The messages a derived entry may still be made from. */
  private async left(store: Store, key: Key, entry: Derived, gone: GoneBySession): Promise<readonly Message[]> {
    const messages: Message[] = []
    if (entry.kind === 'summary') {
      const [first, last] = entry.covers
      const ids = gone.get(key.id)
      for await (const message of walk(store, key, first - 1, last + 1))
        if (ids !== 'all' && !ids?.has(message.id)) messages.push(message)
      return messages
    }
    const wanted = new Map<string, Set<string>>()
    for (const { message, session = key.id } of entry.sources)
      wanted.set(session, (wanted.get(session) ?? new Set()).add(message))
    for (const [session, ids] of wanted) {
      if (gone.get(session) === 'all') continue
      const said =
        session === key.id ? walk(store, key) : walk(this.stores.sessions, parseStoredKey(`${key.scope}:${session}`))
      for await (const message of said) if (ids.has(message.id)) messages.push(message)
    }
    return messages
  }

  /** Erases a session or entries of it. That its traces could not be cleaned is told at the end: what was derived is made anew first. */
  private async erase(store: Store, key: Key, only?: Erasure): Promise<void> {
    try {
      this.of(key).entries.push(...(await store.erase(key, only)))
    } catch (error) {
      if (!(error instanceof MemoryError && error.code === 'busy')) throw error
      this.unclean = error
    }
  }

  private of(key: Key): Went {
    const name = formatKey(key)
    const went = this.went.get(name) ?? { entries: [], renewed: [] }
    this.went.set(name, went)
    return went
  }

  private both(): ReadonlySet<Store> {
    return new Set([this.stores.sessions, this.stores.store])
  }
}

type Tainted = { readonly store: Store; readonly key: Key; readonly entry: Derived; readonly gone: GoneBySession }

async function holding(store: Store, key: Key, texts: readonly string[]): Promise<readonly string[]> {
  const ids: string[] = []
  const holds = (entry: Message | Derived): boolean => texts.some((text) => says(entry, text))
  for await (const message of walk(store, key)) if (holds(message)) ids.push(message.id)
  for (const entry of (await store.head(key, 0)).derived) if (holds(entry)) ids.push(entry.id)
  return ids
}

const names = ({ told = [], used = [] }: Knowledge, session: string): boolean =>
  told.includes(session) || used.includes(session)

function withoutSession(entry: Knowledge, session: string): Knowledge {
  const others = (sessions: readonly string[] | undefined) => sessions?.filter((one) => one !== session)
  return defined<Knowledge>({
    ...entry,
    told: others(entry.told),
    used: others(entry.used),
    sources: entry.sources.filter((source) => source.session !== session),
  })
}

/** Whether an entry was not made of messages, but told by sessions. */
const isTold = (entry: Derived): entry is Knowledge =>
  entry.kind === 'knowledge' && entry.sources.every(({ message }) => message === '')

/** Knowledge that others have told as well stays with them; what nobody else has told goes. */
function stillTold(entry: Knowledge, gone: GoneBySession): Knowledge | undefined {
  const left = [...gone.keys()].reduce(withoutSession, entry)
  return left.sources.length === 0 ? undefined : left
}

/** Whether upkeep has summed up meanwhile what a summary made anew would stand for. */
const isOvertaken = (fresh: Derived | undefined, derived: readonly Derived[]): boolean =>
  fresh?.kind === 'summary' && derived.some((entry) => entry.kind === 'summary' && overlaps(fresh, entry))

/** What a forgotten fact had superseded holds again, as if nobody had ever said otherwise. */
function revived(entry: Derived, derived: readonly Derived[], tainted: readonly Tainted[]): readonly Derived[] {
  if (entry.kind !== 'fact') return []
  const forgotten = new Map(tainted.map((one) => [one.entry.id, one.entry]))
  let before = entry.supersedes
  for (let link = forgotten.get(before ?? ''); link?.kind === 'fact'; link = forgotten.get(before ?? ''))
    before = link.supersedes
  return derived.flatMap((other) => {
    if (other.kind !== 'fact') return []
    if (other.id === before) return [defined<Fact>({ ...other, until: entry.until })]
    // What came after it now follows on what was before.
    return other.supersedes === entry.id ? [defined<Fact>({ ...other, supersedes: before })] : []
  })
}

const defined = <T extends object>(entry: { [K in keyof T]: T[K] | undefined }): T =>
  Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined)) as T

/** The messages of a session, a page at a time. */
async function* walk(store: Store, key: Key, from = 0, before = everything): AsyncIterable<Message> {
  for (let after = from; ; ) {
    const page = await store.page(key, { after, before, limit: 500 })
    yield* page
    const last = page.at(-1)
    if (last === undefined) return
    after = last.sequence
  }
}
