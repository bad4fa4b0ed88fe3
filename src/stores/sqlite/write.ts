import type { DatabaseSync } from 'node:sqlite'
import {
  type Entry,
  formatMessageId,
  getEntryText,
  isBlank,
  type NewMessage,
  parseMessageId,
} from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { AuxiliaryRecord, EntryVector, EraseFilter, SearchTarget } from '../../domain/ports.ts'
import {
  addGap,
  addGapRange,
  checkMessageIds,
  findFilledSequence,
  isExpired,
  type Replacement,
  removeFromGaps,
  type SessionChange,
} from '../../domain/session.ts'
import { indexName } from '../../search/indexName.ts'
import { GraphEraser } from './graph.ts'
import { type PreparedStatements, prepareStatements } from './prepare.ts'
import {
  type Cells,
  hashName,
  hashSessionKey,
  parseDerivedRow,
  parseMessageRow,
  parseSessionRow,
  type SessionRow,
  toDerivedRow,
  toMessageRow,
} from './rows.ts'
import { compressSnapshot } from './snapshot.ts'
import { TableWriter } from './table/tableWriter.ts'
import { type IndexedTable, mergeIndexPart } from './wipe/mergeIndexes.ts'
import { writeStatements } from './writeStatements.ts'

/**
 * Sequence numbers of the first and last message of a change; `offset` is that of the first. `row` is the session after
 * the change, or undefined if the change had been applied before.
 */
export type CommitResult = {
  readonly first: number
  readonly last: number
  readonly offset: number
  readonly row: SessionRow | undefined
}

/** Revisions per session whose changes are recognised when repeated; older ones are pruned every 256 revisions. */
const rememberedRevisions = 1_000
const pruneEveryRevisions = 256

const maxCachedSessions = 10_000

/**
 * Writes to one database. The caller begins and ends the transactions. Session rows are cached between transactions as
 * long as no other process writes, and written once per transaction.
 */
export class Writer {
  private readonly database: DatabaseSync
  private readonly sql: PreparedStatements<typeof writeStatements>
  readonly table: TableWriter
  private readonly graph: GraphEraser
  private readonly sessions = new Map<string, SessionRow>()
  private readonly dirty = new Set<SessionRow>()
  private version: number | undefined
  private stamp = 0

  constructor(database: DatabaseSync) {
    this.database = database
    this.sql = prepareStatements(database, writeStatements)
    this.table = new TableWriter(database)
    this.graph = new GraphEraser(database)
  }

  /** Must be called after BEGIN: drops cached rows if another process has written. Returns true if so. */
  afterBegin(): boolean {
    const [version] = this.cells(this.sql.version.get()) as [number]
    const hasOtherWrites = version !== this.version
    if (version !== this.version || this.sessions.size > maxCachedSessions) this.sessions.clear()
    if (version !== this.version) [this.stamp] = this.cells(this.sql.readStamp.get()) as [number]
    this.version = version
    this.stamp++
    return hasOtherWrites
  }

  /** Must be called before COMMIT: writes the changed session rows. */
  beforeCommit(): void {
    for (const row of this.dirty) {
      row.stamp = this.stamp
      this.sql.updateSession.run(
        row.revision,
        row.stamp,
        row.removals,
        row.derivedVersion,
        row.touchedAt,
        row.expiresAt,
        row.messageCount,
        row.lastSequence,
        row.totalWeight,
        row.lastUserSequence,
        JSON.stringify(row.gaps),
        row.id,
      )
    }
    this.dirty.clear()
    this.sql.writeStamp.run(this.stamp)
  }

  /** Must be called after ROLLBACK: drops all cached rows. */
  afterRollback(): void {
    this.sessions.clear()
    this.dirty.clear()
    this.version = undefined
  }

  commit(change: SessionChange): CommitResult {
    const { key, id, base } = change
    const name = formatKey(key)
    const row = this.findSession(key)
    if (change.epoch !== (row?.epoch ?? this.tombstoneEpoch(key))) {
      throw new MemoryError(
        'erased',
        `Session ${name} was erased while this change was in progress; nothing was stored. Read the session again and retry if the change is still needed.`,
      )
    }
    const applied = row === undefined || id === undefined ? undefined : this.sql.findOperation.get(row.id, id)
    if (applied !== undefined) {
      const [first, last] = this.cells(applied) as [number, number]
      return { first, last, offset: 0, row: undefined }
    }
    if (base !== undefined && base !== (row?.revision ?? 0)) {
      throw new MemoryError(
        'conflict',
        `Session ${name} is at revision ${row?.revision ?? 0}, not ${base}. Read the session again and retry.`,
      )
    }
    const filled = row && findFilledSequence(change, row)
    checkMessageIds(change, {
      hasMessage: (message) => row !== undefined && this.positionOf(row, message) !== undefined,
      findExternalId: (externalId) => row && this.findExternalId(row, externalId),
    })
    return this.apply(row ?? this.insertSession(change), change, filled)
  }

  /** Returns the ids of the erased entries. */
  erase(key: Key, only?: EraseFilter): readonly string[] {
    const row = this.findSession(key)
    if (only !== undefined && 'remains' in only) {
      this.sql.purgeScopeQuarantine.run(key.scope)
      this.table.purgeQuarantine(key.scope)
      this.recordRemoval(key)
      return []
    }
    if (only !== undefined && 'records' in only) {
      if (row !== undefined) this.sql.deleteRecords.run(row.id)
      return []
    }
    if (only !== undefined && 'entries' in only)
      return row === undefined ? [] : this.eraseEntries(row, key, only.entries)
    if (
      only !== undefined &&
      (row === undefined || !isExpired({ revision: row.revision, expiresAt: row.expiresAt }, only.expiredBy))
    )
      return []
    const erasedIds = row === undefined ? [] : this.listEntryIds(row)
    this.sql.putTombstone.run(hashSessionKey(key), (row?.epoch ?? this.tombstoneEpoch(key)) + 1)
    this.recordRemoval(key)
    this.graph.erase(key)
    if (row !== undefined) {
      this.sql.deleteSession.run(row.id)
      this.sessions.delete(formatKey(key))
      this.dirty.delete(row)
    }
    return erasedIds
  }

  /** Merges a trigram index of the graph for a short time. Returns true if nothing is left to merge. */
  mergeIndex(table: IndexedTable, isFirst: boolean): boolean {
    return mergeIndexPart(this.database, table, isFirst)
  }

  /** Appends a record; false if the session does not exist. */
  appendRecord(key: Key, { id, at, body }: AuxiliaryRecord, keep: number): boolean {
    const row = this.findSession(key)
    if (row === undefined) return false
    this.sql.insertRecord.run(row.id, id, at, body)
    this.sql.pruneRecords.run(row.id, Math.min(keep, Number.MAX_SAFE_INTEGER))
    return true
  }

  /** Stores vectors of entries that still have the same text; returns their number. */
  embed(model: string, vectors: readonly EntryVector[]): number {
    let stored = 0
    for (const { key, id, epoch, text, values } of vectors) {
      const row = this.findSession(key)
      const entry = row?.epoch === epoch ? this.readEntry(row, id) : undefined
      if (row === undefined || entry === undefined || getEntryText(entry) !== text) continue
      const { kind, at } = entry
      this.sql.deleteVector.run(row.id, id)
      this.sql.insertVector.run(
        row.id,
        id,
        kind,
        at,
        model,
        values.length,
        new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
      )
      stored++
    }
    return stored
  }

  /** Moves damaged entries to the quarantine table; returns their ids. */
  quarantine(key: Key, ids: readonly string[], reason: string): readonly string[] {
    const row = this.findSession(key)
    if (row === undefined) return []
    // Another process may have quarantined the entry meanwhile and the id may belong to an intact one now.
    const damaged = ids.filter((id) => this.readEntry(row, id) === undefined)
    for (const id of damaged) {
      const sequence = parseMessageId(id)
      if (sequence === undefined) this.sql.quarantineDerived.run(reason, row.id, id)
      else this.sql.quarantineMessage.run(id, reason, row.id, sequence)
    }
    const removedIds = this.remove(row, key, damaged)
    if (removedIds.length > 0) {
      row.revision++
      this.dirty.add(row)
    }
    return removedIds
  }

  /** Saves a search index; returns false if something in it was removed meanwhile. */
  snapshot(
    where: SearchTarget,
    { stamp, lineage, data }: { readonly stamp: number; readonly lineage: string; readonly data: Uint8Array },
  ): boolean {
    const digest = hashName(where.scope)
    if (lineage !== this.currentLineage(where, digest)) return false
    this.sql.putSnapshot.run(hashName(indexName(where)), digest, stamp, lineage, compressSnapshot(data))
    return true
  }

  private currentLineage({ scope, id }: SearchTarget, digest: Uint8Array): string {
    if (id === undefined) {
      const count = this.sql.removals.get(digest)
      return `${count === undefined ? 0 : this.cells(count)[0]}`
    }
    const key = { scope, id } as Key
    const row = this.findSession(key)
    return `${row?.epoch ?? this.tombstoneEpoch(key)}.${row?.removals ?? 0}`
  }

  /** Counts a removal and deletes the scope's snapshots, which may contain the removed data. */
  private recordRemoval({ scope }: Key): void {
    const digest = hashName(scope)
    this.sql.countRemoval.run(digest)
    this.sql.deleteSnapshots.run(digest)
  }

  /** `filled` is the sequence number of the change's only message if it is inside a gap. */
  private apply(row: SessionRow, change: SessionChange, filled: number | undefined): CommitResult {
    this.replaceMessages(row, change.key, change.replace ?? [])
    const position = filled === undefined ? this.append(row, change) : this.fillGap(row, change, filled)
    row.revision++
    for (const entry of change.put) {
      this.sql.putDerived.run(row.id, ...toDerivedRow(entry))
      this.sql.deleteVector.run(row.id, entry.id)
      row.derivedVersion++
    }
    if (change.drop.length > 0) this.remove(row, change.key, change.drop)
    row.touchedAt = change.at
    row.expiresAt = change.expiresAt
    const { first, last } = position
    if (change.id !== undefined) this.sql.insertOperation.run(row.id, change.id, row.revision, first, last)
    if (row.revision % pruneEveryRevisions === 0)
      this.sql.pruneOperations.run(row.id, row.revision - rememberedRevisions)
    this.dirty.add(row)
    return { ...position, row: { ...row } }
  }

  private append(row: SessionRow, { from, append }: SessionChange): Omit<CommitResult, 'row'> {
    if (from !== undefined) {
      row.gaps = addGapRange(row.gaps, row.lastSequence + 1, from.sequence - 1)
      row.lastSequence = from.sequence - 1
      row.totalWeight = from.offset ?? row.totalWeight
    }
    const [first, offset] = [row.lastSequence + 1, row.totalWeight]
    for (const message of append) this.insertMessage(row, message, ++row.lastSequence, row.totalWeight)
    return { first, last: row.lastSequence, offset }
  }

  /** Stores the only message of a change under a sequence number inside a gap. */
  private fillGap(row: SessionRow, { key, append }: SessionChange, sequence: number): Omit<CommitResult, 'row'> {
    const [end = 0] = this.cells(this.sql.endBefore.get(row.id, sequence) ?? []) as number[]
    const [next] = this.cells(this.sql.offsetAfter.get(row.id, sequence) ?? []) as number[]
    const offset = Math.min(end, next ?? end)
    this.insertMessage(row, append[0] as NewMessage, sequence, offset)
    row.gaps = removeFromGaps(row.gaps, sequence)
    // Caches and search indexes read only what follows the last message they know; a changed lineage makes them start
    // again.
    if (next !== undefined) this.recordLineageChange(row, key)
    return { first: sequence, last: sequence, offset }
  }

  private insertMessage(row: SessionRow, message: NewMessage, sequence: number, offset: number): void {
    this.sql.insertMessage.run(row.id, ...toMessageRow(message, sequence, offset))
    row.totalWeight += message.weight
    row.messageCount++
    if (isVisibleUserMessage(message)) row.lastUserSequence = Math.max(sequence, row.lastUserSequence ?? 0)
  }

  /** Replaces messages, which must exist. */
  private replaceMessages(row: SessionRow, key: Key, replace: readonly Replacement[]): void {
    for (const { id, message } of replace) {
      const sequence = parseMessageId(id) as number
      const [offset, weight] = this.positionOf(row, id) as readonly [number, number]
      this.sql.replaceMessage.run(...toMessageRow(message, sequence, offset), row.id, sequence)
      this.sql.deleteVector.run(row.id, id)
      // Positions of later messages never move back.
      row.totalWeight += Math.max(0, message.weight - weight)
      if (isVisibleUserMessage(message)) row.lastUserSequence = Math.max(sequence, row.lastUserSequence ?? 0)
      else if (row.lastUserSequence === sequence) row.lastUserSequence = this.lastUserSequenceBefore(row, sequence)
    }
    if (replace.length === 0) return
    this.recordLineageChange(row, key)
    this.graph.erase(
      key,
      replace.map(({ id }) => id),
    )
  }

  private positionOf(row: SessionRow, id: string): readonly [offset: number, weight: number] | undefined {
    const sequence = parseMessageId(id)
    return sequence === undefined
      ? undefined
      : (this.sql.messagePosition.get(row.id, sequence) as unknown as [number, number] | undefined)
  }

  private findExternalId(row: SessionRow, externalId: string): string | undefined {
    const cells = this.sql.findExternalId.get(row.id, externalId)
    return cells === undefined ? undefined : formatMessageId(this.cells(cells)[0] as number)
  }

  private recordLineageChange(row: SessionRow, key: Key): void {
    row.removals++
    this.recordRemoval(key)
  }

  private eraseEntries(row: SessionRow, key: Key, entries: readonly string[]): readonly string[] {
    const removedIds = this.remove(row, key, entries)
    this.graph.erase(key, entries)
    this.sql.purgeQuarantine.run(row.id)
    this.recordRemoval(key)
    // Increments the revision even if nothing was removed: a writer that read the session earlier may hold the erased
    // text.
    row.revision++
    this.dirty.add(row)
    return removedIds
  }

  private remove(row: SessionRow, key: Key, ids: readonly string[]): readonly string[] {
    const removedIds = ids.filter((id) => {
      const sequence = parseMessageId(id)
      const wasRemoved =
        (sequence === undefined ? this.sql.deleteDerived.run(row.id, id) : this.sql.deleteMessage.run(row.id, sequence))
          .changes === 1
      if (!wasRemoved) return false
      this.sql.deleteVector.run(row.id, id)
      if (sequence === undefined) row.derivedVersion++
      else {
        row.messageCount--
        row.gaps = addGap(row.gaps, sequence)
        if (row.lastUserSequence === sequence) row.lastUserSequence = this.lastUserSequenceBefore(row, sequence)
      }
      return true
    })
    if (removedIds.length > 0) this.recordLineageChange(row, key)
    return removedIds
  }

  /** Finds the newest user message with visible text before a sequence number. */
  private lastUserSequenceBefore(row: SessionRow, sequence: number): number | null {
    for (let before = sequence; ; ) {
      const older = this.sql.userMessagesBefore.all(row.id, before) as unknown as [number, string][]
      const shown = older.find(([, content]) => !isBlank(content))
      if (shown !== undefined) return shown[0]
      if (older.length < 64) return null
      before = (older.at(-1) as [number, string])[0]
    }
  }

  private findSession(key: Key): SessionRow | undefined {
    const name = formatKey(key)
    const cached = this.sessions.get(name)
    if (cached !== undefined) return cached
    const cells = this.sql.session.get(key.scope, key.id)
    if (cells === undefined) return undefined
    const row = parseSessionRow(this.cells(cells))
    this.sessions.set(name, row)
    return row
  }

  private insertSession({ key, at, expiresAt, epoch }: SessionChange): SessionRow {
    const { lastInsertRowid } = this.sql.insertSession.run(key.scope, key.id, epoch, at, at, expiresAt)
    const row = parseSessionRow([Number(lastInsertRowid), epoch, 0, 0, 0, 0, at, at, expiresAt, 0, 0, 0, null, '[]'])
    this.sessions.set(formatKey(key), row)
    return row
  }

  private readEntry({ id: session }: SessionRow, id: string): Entry | undefined {
    const sequence = parseMessageId(id)
    const cells = sequence === undefined ? this.sql.derived.get(session, id) : this.sql.message.get(session, sequence)
    if (cells === undefined) return undefined
    return sequence === undefined ? parseDerivedRow(this.cells(cells)) : parseMessageRow(this.cells(cells))
  }

  private tombstoneEpoch(key: Key): number {
    const cells = this.sql.epoch.get(hashSessionKey(key))
    return cells === undefined ? 0 : (this.cells(cells)[0] as number)
  }

  private listEntryIds({ id }: SessionRow): readonly string[] {
    const messages = this.sql.messageIds.all(id) as unknown as [number][]
    const derived = this.sql.derivedIds.all(id) as unknown as [string][]
    return [...messages.map(([sequence]) => formatMessageId(sequence)), ...derived.map(([name]) => name)]
  }

  /** Casts a row: the types of node:sqlite do not know about `setReturnArrays`. */
  private cells(row: unknown): Cells {
    return row as Cells
  }
}

const isVisibleUserMessage = ({ role, content }: NewMessage): boolean => role === 'user' && !isBlank(content)
