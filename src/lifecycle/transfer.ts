import {
  type DerivedEntry,
  findMetadata,
  type Knowledge,
  type Message,
  type Millis,
  type NewMessage,
} from '../domain/entry.ts'
import { checkOption, hasErrorCode, MemoryError } from '../domain/error.ts'
import { formatKey, isInternalKey, type Key, parseStoredKey, scopeKey } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import { isExpired, isInRanges, type SessionChange, type SessionHead } from '../domain/session.ts'
import type { SecretMasker } from '../memory/secretMasker.ts'
import { revise, tryCommit } from '../upkeep/revise.ts'
import { auxiliaryKeysOf, ownerOf } from './auxiliaryKeys.ts'
import { applyMetadataUpdate } from './metadata.ts'

type TransferDeps = { readonly sessions: Store; readonly store: Store; readonly masker: SecretMasker | undefined }

const noLimit = Number.MAX_SAFE_INTEGER
/** A session that is written to concurrently this many times is not moved. */
const maxAttempts = 100

/**
 * Moves a session with its messages and derived entries to another key. The new key is reserved, then the old one
 * starts to redirect writers, then its content is copied and removed. Each step is idempotent: any process that meets
 * either key after an interruption continues.
 */
export class SessionTransfer {
  private readonly deps: TransferDeps

  constructor(deps: TransferDeps) {
    this.deps = deps
  }

  async transfer(from: Key, to: Key, now: Millis): Promise<void> {
    checkOption(
      'to',
      formatKey(to),
      from.scope === to.scope && from.id !== '' && to.id !== '' && from.id !== to.id,
      `another session of ${from.scope}`,
    )
    const head = await this.deps.sessions.readHead(from, 0)
    const moved = findMetadata(head.derived)?.movedTo
    if (moved !== undefined && moved !== to.id) throw movedError(from, moved)
    checkOption(
      'from',
      formatKey(from),
      head.revision > 0 && !isExpired(head, now),
      'an existing session that is not expired',
    )
    if (moved === undefined) await this.reserve(head, to)
    await this.finish(from, to, now)
  }

  /** Finishes an interrupted transfer and returns the session. Throws `moved` if it continues under another key. */
  async resumeOrReject(head: SessionHead, now: Millis): Promise<SessionHead> {
    const { key, messages, derived } = head
    const { movedTo: to, movedFrom: from } = findMetadata(derived) ?? {}
    if (to !== undefined) {
      if (messages > 0 || derived.length > 1) await this.finish(key, sessionKey(key, to), now)
      throw movedError(key, to)
    }
    if (from === undefined) return head
    await this.finish(sessionKey(key, from), key, now)
    return this.deps.sessions.readHead(key, 0)
  }

  /**
   * Reserves the new key for this transfer. It is created and erased first, which advances its epoch: writers that have
   * read it before fail, and no one else writes to it until the copy is complete. Throws `conflict` if it is in use.
   */
  private async reserve({ key: from, startedAt, expiresAt }: SessionHead, to: Key): Promise<void> {
    const { sessions } = this.deps
    const before = await sessions.readHead(to, 0)
    if (findMetadata(before.derived)?.movedFrom === from.id) return
    const change = { key: to, at: startedAt, base: 0, append: [], put: [], drop: [] }
    try {
      await sessions.commit({ ...change, epoch: before.epoch, expiresAt: 0 })
      await sessions.erase(to, { expiredBy: 0 })
      const about = { ...applyMetadataUpdate(undefined, {}, startedAt), movedFrom: from.id }
      await sessions.commit({ ...change, epoch: before.epoch + 1, put: [about], expiresAt })
    } catch (error) {
      if (!hasErrorCode(error, 'conflict', 'erased')) throw error
      throw new MemoryError(
        'conflict',
        `Session ${formatKey(to)} exists already. Transfer ${formatKey(from)} to an unused key.`,
      )
    }
  }

  private async finish(from: Key, to: Key, now: Millis): Promise<void> {
    const { sessions, masker } = this.deps
    await revise(sessions, from, ({ revision, derived }) => {
      const about = findMetadata(derived)
      return revision === 0 || about?.movedTo === to.id
        ? undefined
        : { put: [{ ...applyMetadataUpdate(about, {}, now), movedTo: to.id }], drop: [] }
    })
    await this.drain(from, to)
    await this.moveRecords(from, to)
    for (const auxiliaryKey of await auxiliaryKeysOf(sessions, from)) {
      await this.drainAuxiliary(
        auxiliaryKey,
        parseStoredKey(`${formatKey(to)}${auxiliaryKey.id.slice(from.id.length)}`),
      )
    }
    masker?.move(from, to)
    await this.renameInKnowledge(from, to)
    await this.open(from, to, now)
  }

  /** Copies the content of the old key until it is empty: others may still be writing to it. */
  private async drain(from: Key, to: Key): Promise<void> {
    const { sessions } = this.deps
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const head = await sessions.readHead(from, 0)
      if (head.messages === 0 && head.derived.every(isMetadata)) return
      const target = await sessions.readHead(to, 0)
      const isReserved = findMetadata(target.derived)?.movedFrom === from.id
      const drop = await (isReserved ? this.copy(head, target) : this.appendLate(head, to))
      if (drop !== undefined) await tryCommit(sessions, head, { put: [], drop })
    }
    throw new MemoryError('conflict', `Too many concurrent writes to ${formatKey(from)}. Try again.`)
  }

  /**
   * Moves the auxiliary records. A record that is at the new key already, after an interruption, is not copied again.
   */
  private async moveRecords(from: Key, to: Key): Promise<void> {
    const { sessions } = this.deps
    const records = await sessions.records(from, { limit: noLimit })
    if (records.length === 0) return
    const moved = new Set((await sessions.records(to, { limit: noLimit })).map(({ id }) => id))
    for (const { id, at, body } of records.toReversed())
      if (!moved.has(id)) await sessions.appendRecord(to, { id, at, body }, noLimit)
    await sessions.erase(from, { records: true })
  }

  /** Copies and erases an auxiliary key. */
  private async drainAuxiliary(from: Key, to: Key): Promise<void> {
    const { sessions } = this.deps
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const head = await sessions.readHead(from, 0)
      if ((await this.copy(head, await sessions.readHead(to, 0))) === undefined) continue
      await sessions.erase(from)
      return
    }
  }

  /**
   * Copies a session to a reserved key under the same sequence numbers. Resolves to the ids of the copied entries;
   * undefined after a conflict with another process that finishes the same transfer.
   */
  private async copy(head: SessionHead, target: SessionHead): Promise<readonly string[] | undefined> {
    const { sessions } = this.deps
    const messages = await sessions.readMessages(head.key, { limit: noLimit })
    const put = transferableEntries(head, target.key)
    try {
      for (const [step, change] of changesFor(head, target, messages, put).entries())
        await sessions.commit({ ...change, base: target.revision + step })
    } catch (error) {
      if (hasErrorCode(error, 'conflict')) return undefined
      throw error
    }
    return [...messages, ...put].map(({ id }) => id)
  }

  /** Appends messages that reached the old key after the new one was opened to other writers. */
  private async appendLate(head: SessionHead, to: Key): Promise<readonly string[]> {
    const { sessions } = this.deps
    const messages = await sessions.readMessages(head.key, { limit: noLimit })
    for (const message of messages) {
      const target = await sessions.readHead(to, 0)
      await sessions.commit({
        ...baseChange(head, target),
        id: moveOperationId(head, message),
        append: [toIncoming(message)],
      })
    }
    return [...messages, ...head.derived.filter((entry) => !isMetadata(entry))].map(({ id }) => id)
  }

  /** Replaces the session id in the knowledge of the scope, so that it can be forgotten with the new session. */
  private async renameInKnowledge(from: Key, to: Key): Promise<void> {
    await revise(this.deps.store, scopeKey(from), ({ derived }) => ({
      put: derived.flatMap((entry) =>
        entry.kind === 'knowledge' && mentionsSession(entry, from.id) ? [renameSession(entry, from.id, to.id)] : [],
      ),
      drop: [],
    }))
  }

  /** Opens the new key to other writers, with the metadata of the old one. */
  private async open(from: Key, to: Key, now: Millis): Promise<void> {
    const { sessions } = this.deps
    const old = findMetadata((await sessions.readHead(from, 0)).derived)
    await revise(sessions, to, ({ derived }) => {
      if (findMetadata(derived)?.movedFrom !== from.id) return undefined
      const { movedTo: _, ...about } = applyMetadataUpdate(old, {}, now)
      return Object.keys(about).length > emptyMetadataFields
        ? { put: [about], drop: [] }
        : { put: [], drop: [about.id] }
    })
  }
}

/** Number of fields of empty metadata. */
const emptyMetadataFields = Object.keys(applyMetadataUpdate(undefined, {}, 0)).length

const isMetadata = ({ kind }: DerivedEntry): boolean => kind === 'about'

/**
 * Lists the changes that are missing at the target: runs of messages, derived entries, and the last sequence number.
 */
function changesFor(
  head: SessionHead,
  target: SessionHead,
  messages: readonly Message[],
  put: readonly DerivedEntry[],
): readonly SessionChange[] {
  const change = baseChange(head, target)
  // A reply may have been stored in a reserved slot after the messages around it were copied.
  const missing = messages.filter(({ sequence }) => sequence > target.lastSequence || isInRanges(target.gaps, sequence))
  // Late messages get an operation id each, because another process may copy them too.
  const isLate = target.lastSequence > 0
  const steps = (isLate ? missing.map((message) => [message]) : consecutiveRuns(missing)).map((run): SessionChange => {
    const first = run[0] as Message
    const { sequence, offset } = first
    return {
      ...change,
      ...(isLate ? { id: moveOperationId(head, first) } : {}),
      from: { sequence, offset },
      append: run.map(toIncoming),
    }
  })
  if (put.length > 0) steps.push({ ...change, put })
  const newest = messages.at(-1)
  // Sequence numbers of deleted messages are not reused.
  const from = { sequence: head.lastSequence + 1, offset: newest === undefined ? 0 : newest.offset + newest.weight }
  if (head.lastSequence > Math.max(target.lastSequence, newest?.sequence ?? 0)) steps.push({ ...change, from })
  return steps
}

/** Operation id of moving a message, the same for all processes. */
const moveOperationId = ({ key, epoch }: SessionHead, { sequence }: Message): string =>
  `move:${key.id}:${epoch}:${sequence}`

const baseChange = (head: SessionHead, target: SessionHead): SessionChange => ({
  key: target.key,
  at: Math.max(head.touchedAt, target.touchedAt),
  epoch: target.epoch,
  append: [],
  put: [],
  drop: [],
  expiresAt: Math.max(head.expiresAt, target.expiresAt),
})

const sessionKey = ({ scope }: Key, id: string): Key => parseStoredKey(`${scope}:${id}`)

const movedError = ({ scope, id }: Key, to: string): MemoryError =>
  new MemoryError('moved', `Session ${scope}:${id} was moved to ${scope}:${to}. Write there.`, { to: `${scope}:${to}` })

/** Splits messages into runs of consecutive sequence numbers and offsets. */
function consecutiveRuns(messages: readonly Message[]): readonly (readonly Message[])[] {
  const runs: Message[][] = []
  for (const message of messages) {
    const run = runs.at(-1)
    const last = run?.at(-1)
    const isNext = last?.sequence === message.sequence - 1 && last.offset + last.weight === message.offset
    if (isNext) run?.push(message)
    else runs.push([message])
  }
  return runs
}

function toIncoming({ kind: _, id: __, sequence: ___, offset: ____, ...incoming }: Message): NewMessage {
  return incoming
}

/**
 * Lists the derived entries to copy. Session metadata follows last, when the key is opened; that of a branch gets the
 * new session id.
 */
function transferableEntries({ key, derived }: SessionHead, to: Key): readonly DerivedEntry[] {
  if (!isInternalKey(key)) return derived.filter((entry) => !isMetadata(entry)).map(withoutLease)
  const session = ownerOf(to)?.id ?? to.id
  return derived.map((entry) =>
    entry.kind === 'about' && entry.branchOf !== undefined
      ? { ...entry, branchOf: { ...entry.branchOf, session } }
      : entry,
  )
}

/** Removes the lease, which refers to the old session. */
function withoutLease(entry: DerivedEntry): DerivedEntry {
  if (entry.kind !== 'notes') return entry
  const { lease: _, ...notes } = entry
  return notes
}

const mentionsSession = ({ statedBy = [], usedBy = [], sources }: Knowledge, session: string): boolean =>
  statedBy.includes(session) || usedBy.includes(session) || sources.some((source) => source.session === session)

function renameSession(entry: Knowledge, from: string, to: string): Knowledge {
  const rename = (session: string): string => (session === from ? to : session)
  const { statedBy, usedBy, sources } = entry
  return {
    ...entry,
    ...(statedBy === undefined ? {} : { statedBy: statedBy.map(rename) }),
    ...(usedBy === undefined ? {} : { usedBy: usedBy.map(rename) }),
    sources: sources.map((source) => (source.session === from ? { ...source, session: to } : source)),
  }
}
