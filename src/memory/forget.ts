import type { DerivedEntry, Fact, Knowledge, Message, Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import {
  formatKey,
  type Key,
  parseKey,
  parseScope,
  parseStoredKey,
  personKey,
  type Scope,
  scopeKey,
} from '../domain/key.ts'
import type { EraseFilter, Store } from '../domain/ports.ts'
import type { SessionHead } from '../domain/session.ts'
import type { Lifecycle } from '../lifecycle/lifecycle.ts'
import { findMasks } from '../text/secrets.ts'
import { summariesOverlap } from '../upkeep/outcome.ts'
import { containsText, type DeletionsBySession, findAffected } from '../upkeep/rederive.ts'
import { revise, tryCommit } from '../upkeep/revise.ts'
import { checkTarget, type ForgetTarget } from './forgetTarget.ts'
import type { SecretMasker } from './secretMasker.ts'

/** Options of `forget`. */
export type ForgetOptions = {
  /**
   * Leaves unreachable copies in the file to the next `forget` or `sweep`. Overwriting them reads the whole file; when
   * you forget many targets in a row, do it with the last one only. Default: false.
   */
  readonly deferWipe?: boolean
}

/** Overwrites unreachable copies of erased content in the files of stores. */
export async function wipeStores(stores: Iterable<Store>): Promise<void> {
  for (const store of stores) await store.capabilities.file?.wipe()
}

/** Receipt of `forget`: the erased entries by session, and the derived entries rebuilt without them. */
export type ForgetResult = {
  readonly at: Millis
  readonly sessions: readonly {
    readonly key: string
    readonly entries: readonly string[]
    readonly rebuilt?: readonly string[]
  }[]
  /** Number of erased rows of the scope's table; absent if there were none. */
  readonly rows?: number
}

/** Rebuilds a derived entry from the remaining messages of its sources; undefined when nothing remains. */
export type Rederive = (entry: DerivedEntry, from: readonly Message[]) => Promise<DerivedEntry | undefined>

type ForgetDeps = {
  readonly sessions: Store
  readonly store: Store
  readonly masker?: SecretMasker | undefined
  readonly lifecycle?: Lifecycle | undefined
}

/** Takes the erasure of a session for a change of it; the caller reads the session again. */
function rejectUnlessErased(error: unknown): false {
  if (error instanceof MemoryError && error.code === 'erased') return false
  throw error
}

/** Deletions in one session. */
type Deletions = { entries: string[]; rebuilt: string[] }

/** A derived entry that depended on forgotten messages. */
type DependentEntry = {
  readonly store: Store
  readonly key: Key
  readonly entry: DerivedEntry
  readonly gone: DeletionsBySession
}

const noDeletions: DeletionsBySession = new Map()
const noLimit = Number.MAX_SAFE_INTEGER
const pageSize = 500

/**
 * Forgets a target and everything derived from it. Derived entries are erased first and rebuilt last: after an
 * interruption at any point, no derived entry states what was forgotten.
 */
export class ForgetOperation {
  private readonly stores: ForgetDeps
  private readonly rederive: Rederive
  private readonly deletions = new Map<string, Deletions>()
  private erasedRows = 0
  private cleanupError: MemoryError | undefined

  constructor(stores: ForgetDeps, rederive: Rederive) {
    this.stores = stores
    this.rederive = rederive
  }

  async forget(target: ForgetTarget, at: Millis): Promise<ForgetResult> {
    checkTarget(target)
    if ('scope' in target) {
      const scope = parseScope(target.scope)
      await ('text' in target ? this.forgetText(scope, target.text) : this.forgetScope(scope))
    } else {
      const parsed = parseKey(target.key)
      const person = 'person' in target ? target.person : undefined
      const key = person === undefined ? parsed : personKey(parsed.scope, person)
      const store = key.id === '' || person !== undefined ? this.stores.store : this.stores.sessions
      const ids = 'messageIds' in target ? target.messageIds : 'messageId' in target ? [target.messageId] : undefined
      if (ids === undefined) await this.forgetSession(store, key)
      else if (ids.length > 0) await this.forgetMessages(store, key, ids)
    }
    if (this.cleanupError !== undefined) throw this.cleanupError
    const sessions = [...this.deletions].map(([key, { entries, rebuilt }]) => ({
      key,
      entries,
      ...(rebuilt.length > 0 && { rebuilt }),
    }))
    const result = { at, sessions: sessions.filter(({ entries }) => entries.length > 0) }
    return this.erasedRows === 0 ? result : { ...result, rows: this.erasedRows }
  }

  private async forgetScope(scope: Scope): Promise<void> {
    this.stores.masker?.drop(scope)
    for (const store of this.allStores()) {
      for (const { key } of await store.list({ scope, limit: noLimit })) await this.erase(store, key)
      await this.tolerateBusy(async () => {
        this.erasedRows += await store.table.eraseRows(scope)
      })
    }
  }

  private async forgetSession(store: Store, key: Key): Promise<void> {
    this.stores.masker?.drop(key.scope, key.id)
    const gone = new Map([[key.id, 'all' as const]])
    const dependents = [...(await this.eraseScopeDependents(key, gone))]
    await this.erase(store, key)
    await this.eraseInnerSessions(store, key)
    await this.removeAsSource(key)
    // Upkeep and other calls may have derived more until the session was erased.
    dependents.push(...(await this.eraseScopeDependents(key, gone)))
    await this.rebuild(dependents)
  }

  /** Erases the branches and undelivered end events of a session. */
  private async eraseInnerSessions(store: Store, key: Key): Promise<void> {
    for (const { key: inner, only } of (await this.stores.lifecycle?.auxiliaryData(store, key)) ?? [])
      await this.erase(store, inner, only)
  }

  private async forgetMessages(store: Store, key: Key, ids: readonly string[]): Promise<void> {
    const gone = new Map([[key.id, new Set(ids)]])
    await this.dropSecretsOf(store, key, ids)
    const scopeDependents = [...(await this.eraseScopeDependents(key, gone))]
    const dependents: DependentEntry[] = []
    // Upkeep and other calls may derive more entries until the messages are erased; afterwards they cannot.
    for (let isFirst = true; ; isFirst = false) {
      const found = findAffected((await store.readHead(key, 0)).derived, key.id, gone)
      if (!isFirst && found.length === 0) break
      await this.erase(store, key, { entries: [...ids, ...found.map(({ id }) => id)] })
      for (const entry of found) dependents.push({ store, key, entry, gone })
    }
    scopeDependents.push(...(await this.eraseScopeDependents(key, gone)))
    await this.rebuild([...dependents, ...scopeDependents])
    await this.recountFacts(store, key)
  }

  /**
   * Commits a change that replaces or drops messages of a session as it was read, without the entries derived from
   * them, and derives these again from the messages that are there then.
   */
  async replaceSources<T>(
    store: Store,
    { key, derived }: SessionHead,
    ids: readonly string[],
    commit: (drop: readonly string[]) => Promise<T>,
  ): Promise<T> {
    const gone = new Map([[key.id, new Set(ids)]])
    const found = findAffected(derived, key.id, gone)
    const result = await commit(found.map(({ id }) => id))
    const dependents = [
      ...found.map((entry) => ({ store, key, entry, gone })),
      ...(await this.eraseScopeDependents(key, gone)),
    ]
    // A new text is a source like any other.
    const sourced = dependents.map((dependent) =>
      isStatedKnowledge(dependent.entry) ? dependent : { ...dependent, gone: noDeletions },
    )
    await this.rebuild(sourced)
    await this.recountFacts(store, key)
    return result
  }

  private async forgetText(scope: Scope, text: string): Promise<void> {
    if (typeof text !== 'string' || text.trim() === '') {
      throw new MemoryError(
        'bad-option',
        'text is empty. Pass the text to forget, or omit text to forget the whole scope.',
        { param: 'text' },
      )
    }
    for (const store of this.allStores()) {
      for (const { key } of await store.list({ scope, limit: noLimit })) {
        const ids = await findEntriesWith(store, key, [text, ...(this.stores.masker?.placeholdersOf(key, text) ?? [])])
        if (ids.length > 0) await this.forgetMessages(store, key, ids)
      }
      // Remains of damaged entries may contain the text too.
      await this.erase(store, parseKey(scope), { remains: true })
    }
  }

  /** Drops the secret values that only the forgotten messages contained. */
  private async dropSecretsOf(store: Store, key: Key, ids: readonly string[]): Promise<void> {
    const { masker } = this.stores
    if (masker?.hasValues(key) !== true) return
    const [inForgotten, inRemaining] = [new Set<string>(), new Set<string>()]
    for await (const message of readAll(store, key))
      for (const mark of findMasks(JSON.stringify(message)))
        (ids.includes(message.id) ? inForgotten : inRemaining).add(mark)
    masker.dropPlaceholders(
      key,
      [...inForgotten].filter((mark) => !inRemaining.has(mark)),
    )
  }

  /** Erases entries of the scope's own memory that were derived from a session. */
  private async eraseScopeDependents(key: Key, gone: DeletionsBySession): Promise<readonly DependentEntry[]> {
    if (key.id === '') return []
    const { store } = this.stores
    const ownKey = scopeKey(key)
    const found = findAffected((await store.readHead(ownKey, 0)).derived, '', gone)
    // An erasure of no entries still raises the revision, which makes concurrent upkeep read again.
    await this.erase(store, ownKey, { entries: found.map(({ id }) => id) })
    return found.map((entry) => ({ store, key: ownKey, entry, gone }))
  }

  /** Lowers the expected number of facts, so that forgotten facts do not count as lost. */
  private async recountFacts(store: Store, key: Key): Promise<void> {
    await revise(store, key, ({ derived }) => {
      const facts = derived.filter(({ kind }) => kind === 'fact').length
      const notes = derived.find((entry) => entry.kind === 'notes')
      return notes?.facts === undefined || notes.facts <= facts ? undefined : { put: [{ ...notes, facts }], drop: [] }
    })
  }

  /** Removes a session from the sources of the scope's knowledge. */
  private async removeAsSource({ scope, id }: Key): Promise<void> {
    await revise(this.stores.store, parseKey(scope), ({ derived }) => ({
      put: derived.flatMap((entry) =>
        entry.kind === 'knowledge' && namesSession(entry, id) ? [withoutSession(entry, id)] : [],
      ),
      drop: [],
    }))
  }

  private async rebuild(all: readonly DependentEntry[]): Promise<void> {
    // Oldest first, so that the newest value supersedes the others again.
    const dependents = [...all].sort((left, right) => left.entry.at - right.entry.at)
    for (const dependent of dependents) {
      const rebuilt = await this.rebuildEntry(dependent, dependents)
      this.deletionsOf(dependent.key).rebuilt.push(...rebuilt.map(({ id }) => id))
    }
  }

  /**
   * Rebuilds an entry and stores it if its session has not changed since its sources were read; otherwise reads them
   * again, because another call may have forgotten one. Resolves to the stored entries.
   */
  private async rebuildEntry(
    { store, key, entry, gone }: DependentEntry,
    dependents: readonly DependentEntry[],
  ): Promise<readonly DerivedEntry[]> {
    let last: { readonly sources: string; readonly rebuilt: DerivedEntry | undefined } | undefined
    for (;;) {
      const head = await store.readHead(key, 0)
      const messages = isStatedKnowledge(entry) ? [] : await this.remainingSources(store, key, entry, gone)
      const sources = messages.map(({ id }) => id).join()
      if (last?.sources !== sources) {
        const rebuilt = isStatedKnowledge(entry) ? withoutSessions(entry, gone) : await this.rederive(entry, messages)
        last = { sources, rebuilt }
      }
      const { rebuilt } = last
      if (head.revision === 0 || isCoveredMeanwhile(rebuilt, head.derived)) return []
      const put = rebuilt === undefined ? restoreSuperseded(entry, head.derived, dependents) : [rebuilt]
      if (put.length === 0 || (await tryCommit(store, head, { put, drop: [] }).catch(rejectUnlessErased))) return put
    }
  }

  /** Messages that a derived entry can still be rebuilt from. */
  private async remainingSources(
    store: Store,
    key: Key,
    entry: DerivedEntry,
    gone: DeletionsBySession,
  ): Promise<readonly Message[]> {
    const messages: Message[] = []
    if (entry.kind === 'summary') {
      const [first, last] = entry.covers
      const ids = gone.get(key.id)
      for await (const message of readAll(store, key, first - 1, last + 1))
        if (ids !== 'all' && !ids?.has(message.id)) messages.push(message)
      return messages
    }
    const idsBySession = new Map<string, Set<string>>()
    for (const { message, session = key.id } of entry.sources)
      idsBySession.set(session, (idsBySession.get(session) ?? new Set()).add(message))
    for (const [session, ids] of idsBySession) {
      if (gone.get(session) === 'all') continue
      const transcript =
        session === key.id
          ? readAll(store, key)
          : readAll(this.stores.sessions, parseStoredKey(`${key.scope}:${session}`))
      for await (const message of transcript) if (ids.has(message.id)) messages.push(message)
    }
    return messages
  }

  /** Erases a session or entries of it. A failed clean-up of free pages is reported at the end, after rebuilding. */
  private erase(store: Store, key: Key, only?: EraseFilter): Promise<void> {
    return this.tolerateBusy(async () => {
      const { entries } = this.deletionsOf(key)
      for (const entry of await store.erase(key, only)) entries.push(entry)
    })
  }

  private async tolerateBusy(erase: () => Promise<void>): Promise<void> {
    try {
      await erase()
    } catch (error) {
      if (!(error instanceof MemoryError && error.code === 'busy')) throw error
      this.cleanupError = error
    }
  }

  private deletionsOf(key: Key): Deletions {
    const name = formatKey(key)
    const deletions = this.deletions.get(name) ?? { entries: [], rebuilt: [] }
    this.deletions.set(name, deletions)
    return deletions
  }

  private allStores(): ReadonlySet<Store> {
    return new Set([this.stores.sessions, this.stores.store])
  }
}

async function findEntriesWith(store: Store, key: Key, texts: readonly string[]): Promise<readonly string[]> {
  const ids: string[] = []
  const matches = (entry: Message | DerivedEntry): boolean => texts.some((text) => containsText(entry, text))
  for await (const message of readAll(store, key)) if (matches(message)) ids.push(message.id)
  for (const entry of (await store.readHead(key, 0)).derived) if (matches(entry)) ids.push(entry.id)
  return ids
}

const namesSession = ({ statedBy = [], usedBy = [] }: Knowledge, session: string): boolean =>
  statedBy.includes(session) || usedBy.includes(session)

function withoutSession(entry: Knowledge, session: string): Knowledge {
  const others = (sessions: readonly string[] | undefined) => sessions?.filter((id) => id !== session)
  return omitUndefined<Knowledge>({
    ...entry,
    statedBy: others(entry.statedBy),
    usedBy: others(entry.usedBy),
    sources: entry.sources.filter((source) => source.session !== session),
  })
}

/** True for knowledge that was stated, as opposed to derived from messages: it cannot be rebuilt from the others. */
const isStatedKnowledge = (entry: DerivedEntry): entry is Knowledge =>
  entry.kind === 'knowledge' && (entry.origin !== undefined || entry.sources.every(({ message }) => message === ''))

/** The entry without the forgotten sessions; undefined when no other source remains. */
function withoutSessions(entry: Knowledge, gone: DeletionsBySession): Knowledge | undefined {
  const remaining = [...gone.keys()].reduce(withoutSession, entry)
  return remaining.sources.length === 0 ? undefined : remaining
}

/** True when upkeep has meanwhile summarised messages that the rebuilt summary covers. */
const isCoveredMeanwhile = (rebuilt: DerivedEntry | undefined, derived: readonly DerivedEntry[]): boolean =>
  rebuilt?.kind === 'summary' && derived.some((entry) => entry.kind === 'summary' && summariesOverlap(rebuilt, entry))

/** Restores the fact that a forgotten fact had superseded. */
function restoreSuperseded(
  entry: DerivedEntry,
  derived: readonly DerivedEntry[],
  dependents: readonly DependentEntry[],
): readonly DerivedEntry[] {
  if (entry.kind !== 'fact') return []
  const forgotten = new Map(dependents.map((dependent) => [dependent.entry.id, dependent.entry]))
  let before = entry.supersedes
  for (let link = forgotten.get(before ?? ''); link?.kind === 'fact'; link = forgotten.get(before ?? ''))
    before = link.supersedes
  return derived.flatMap((other) => {
    if (other.kind !== 'fact') return []
    if (other.id === before) return [omitUndefined<Fact>({ ...other, until: entry.until })]
    // Its successor now supersedes its predecessor.
    return other.supersedes === entry.id ? [omitUndefined<Fact>({ ...other, supersedes: before })] : []
  })
}

const omitUndefined = <T extends object>(entry: { [K in keyof T]: T[K] | undefined }): T =>
  Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined)) as T

/** Reads the messages of a session page by page. */
export async function* readAll(store: Store, key: Key, from = 0, before = noLimit): AsyncIterable<Message> {
  for (let after = from; ; ) {
    const page = await store.readMessages(key, { after, before, limit: pageSize })
    yield* page
    const last = page.at(-1)
    if (last === undefined) return
    after = last.sequence
  }
}
