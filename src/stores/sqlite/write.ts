import type { DatabaseSync } from 'node:sqlite'
import { type Entry, isBlank, messageId, type Said, sequenceOf, textOf } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { Embedded, Erasure, Where } from '../../domain/ports.ts'
import { type Change, isExpired, withGap, withGaps } from '../../domain/session.ts'
import { nameOf } from '../../search/find.ts'
import { searchTerms } from '../../search/terms.ts'
import { GraphEraser } from './graph.ts'
import { type Prepared, prepare } from './prepare.ts'
import {
  type Cells,
  derivedCells,
  derivedOf,
  digestOf,
  digestOfKey,
  messageCells,
  messageOf,
  type SessionRow,
  sessionOf,
} from './rows.ts'
import { compressed } from './snapshot.ts'
import { statements } from './statements.ts'

/** The messages a change appended, by their sequence numbers; `offset` is that of the first. `row` is the session after a change that was new. */
export type Written = {
  readonly first: number
  readonly last: number
  readonly offset: number
  readonly row: SessionRow | undefined
}

/** How many answers to changes are kept for a change that comes again, give or take those of the last while. */
const remembered = 1_000
const pruneEvery = 256

/**
 * Writes to one database, inside a transaction that somebody else begins and ends. Sessions stay at hand between
 * transactions for as long as no other process writes, and their rows are written once for each transaction.
 */
export class Writer {
  private readonly sql: Prepared<typeof statements>
  private readonly graph: GraphEraser
  private readonly sessions = new Map<string, SessionRow>()
  private readonly touched = new Set<SessionRow>()
  private version: number | undefined
  private stamp = 0

  constructor(database: DatabaseSync) {
    this.sql = prepare(database, statements)
    this.graph = new GraphEraser(database)
  }

  /** To be called when a transaction has begun: whatever others have written since is read again. */
  begun(): void {
    const [version] = this.cells(this.sql.version.get()) as [number]
    if (version !== this.version || this.sessions.size > 10_000) this.sessions.clear()
    if (version !== this.version) [this.stamp] = this.cells(this.sql.stamp.get()) as [number]
    this.version = version
    this.stamp++
  }

  /** To be called before a transaction ends. */
  ending(): void {
    for (const row of this.touched) {
      const { id, revision, removals, learnt, touched, expires, messages, last, weight, asked, gaps } = row
      row.stamp = this.stamp
      this.sql.update.run(
        revision,
        this.stamp,
        removals,
        learnt,
        touched,
        expires,
        messages,
        last,
        weight,
        asked,
        JSON.stringify(gaps),
        id,
      )
    }
    this.touched.clear()
    this.sql.stamped.run(this.stamp)
  }

  /** To be called when a transaction was undone: nothing at hand can be trusted. */
  undone(): void {
    this.sessions.clear()
    this.touched.clear()
    this.version = undefined
  }

  commit(change: Change): Written {
    const { key, id, base, from } = change
    const name = formatKey(key)
    const row = this.find(key)
    if (change.epoch !== (row?.epoch ?? this.buried(key))) {
      throw new MemoryError(
        'erased',
        `Session ${name} was forgotten while this was being written; nothing was stored. Read it again and repeat if it is still wanted.`,
      )
    }
    const before = row === undefined || id === undefined ? undefined : this.sql.operation.get(row.id, id)
    if (before !== undefined) {
      const [first, last] = this.cells(before) as [number, number]
      return { first, last, offset: 0, row: undefined }
    }
    if (base !== undefined && base !== (row?.revision ?? 0)) {
      throw new MemoryError(
        'conflict',
        `Session ${name} is at revision ${row?.revision ?? 0}, not ${base}. Read it again and decide again.`,
      )
    }
    if (from !== undefined && from.sequence <= (row?.last ?? 0)) {
      throw new MemoryError(
        'conflict',
        `The next message of ${name} cannot be number ${from.sequence}: it has ${row?.last ?? 0} already.`,
      )
    }
    return this.apply(row ?? this.begin(change), change)
  }

  /** Resolves to the ids that went. */
  erase(key: Key, only?: Erasure): readonly string[] {
    const row = this.find(key)
    if (only !== undefined && 'remains' in only) {
      this.sql.purgeScope.run(key.scope)
      this.removedFrom(key)
      return []
    }
    if (only !== undefined && 'entries' in only)
      return row === undefined ? [] : this.eraseEntries(row, key, only.entries)
    if (
      only !== undefined &&
      (row === undefined || !isExpired({ revision: row.revision, expiresAt: row.expires }, only.expiredBy))
    )
      return []
    const gone = row === undefined ? [] : this.idsOf(row)
    this.sql.bury.run(digestOfKey(key), (row?.epoch ?? this.buried(key)) + 1)
    this.removedFrom(key)
    this.graph.erase(key)
    if (row !== undefined) {
      this.sql.end.run(row.id)
      this.sessions.delete(formatKey(key))
      this.touched.delete(row)
    }
    return gone
  }

  /** Keeps vectors; how many. */
  embed(model: string, vectors: readonly Embedded[]): number {
    let kept = 0
    for (const { key, id, epoch, text, values } of vectors) {
      const row = this.find(key)
      const entry = row?.epoch === epoch ? this.entry(row, id) : undefined
      if (row === undefined || entry === undefined || textOf(entry) !== text) continue
      const { kind, at } = entry
      this.sql.dropVector.run(row.id, id)
      this.sql.point.run(
        row.id,
        id,
        kind,
        at,
        model,
        values.length,
        new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
      )
      kept++
    }
    return kept
  }

  /** Takes damaged entries out of the way and keeps what is left of them for a repair; which ones. */
  quarantine(key: Key, ids: readonly string[], why: string): readonly string[] {
    const row = this.find(key)
    if (row === undefined) return []
    // Somebody else may have put it aside meanwhile, and the number may be a sound message's by now.
    const damaged = ids.filter((id) => this.entry(row, id) === undefined)
    for (const id of damaged) {
      const sequence = sequenceOf(id)
      if (sequence === undefined) this.sql.keepDerived.run(why, row.id, id)
      else this.sql.keepMessage.run(id, why, row.id, sequence)
    }
    const gone = this.remove(row, key, damaged)
    if (gone.length > 0) {
      row.revision++
      this.touched.add(row)
    }
    return gone
  }

  /** Keeps an index, unless something that is in it went meanwhile; whether it did. */
  snapshot(
    where: Where,
    { stamp, lineage, data }: { readonly stamp: number; readonly lineage: string; readonly data: Uint8Array },
  ): boolean {
    const digest = digestOf(where.scope)
    if (lineage !== this.lineage(where, digest)) return false
    this.sql.snapshot.run(digestOf(nameOf(where)), digest, stamp, lineage, compressed(data))
    return true
  }

  private lineage({ scope, id }: Where, digest: Uint8Array): string {
    if (id === undefined) {
      const count = this.sql.removals.get(digest)
      return `${count === undefined ? 0 : this.cells(count)[0]}`
    }
    const key = { scope, id } as Key
    const row = this.find(key)
    return `${row?.epoch ?? this.buried(key)}.${row?.removals ?? 0}`
  }

  /** Whatever was made of a scope may hold what has just gone. */
  private removedFrom({ scope }: Key): void {
    const digest = digestOf(scope)
    this.sql.removed.run(digest)
    this.sql.unsnap.run(digest)
  }

  private apply(row: SessionRow, change: Change): Written {
    if (change.from !== undefined) {
      row.gaps = withGaps(row.gaps, row.last + 1, change.from.sequence - 1)
      row.last = change.from.sequence - 1
      row.weight = change.from.offset
    }
    const [first, offset] = [row.last + 1, row.weight]
    for (const said of change.append) this.append(row, said)
    row.revision++
    for (const entry of change.put) {
      this.sql.put.run(row.id, ...derivedCells(entry))
      this.sql.dropVector.run(row.id, entry.id)
      row.learnt++
    }
    if (change.drop.length > 0) this.remove(row, change.key, change.drop)
    row.touched = change.at
    row.expires = change.expiresAt
    if (change.id !== undefined) this.sql.done.run(row.id, change.id, row.revision, first, row.last)
    if (row.revision % pruneEvery === 0) this.sql.prune.run(row.id, row.revision - remembered)
    this.touched.add(row)
    return { first, last: row.last, offset, row: { ...row } }
  }

  private append(row: SessionRow, said: Said): void {
    const sequence = ++row.last
    this.sql.append.run(row.id, searchTerms(said.content).join('\n'), ...messageCells(said, sequence, row.weight))
    row.weight += said.weight
    row.messages++
    if (said.role === 'user' && !isBlank(said.content)) row.asked = sequence
  }

  private eraseEntries(row: SessionRow, key: Key, entries: readonly string[]): readonly string[] {
    const gone = this.remove(row, key, entries)
    this.graph.erase(key, entries)
    this.sql.purge.run(row.id)
    this.removedFrom(key)
    // Also if nothing went: whoever has read the session before may know what should be forgotten.
    row.revision++
    this.touched.add(row)
    return gone
  }

  private remove(row: SessionRow, key: Key, ids: readonly string[]): readonly string[] {
    const gone = ids.filter((id) => {
      const sequence = sequenceOf(id)
      const isGone =
        (sequence === undefined ? this.sql.dropDerived.run(row.id, id) : this.sql.dropMessage.run(row.id, sequence))
          .changes === 1
      if (!isGone) return false
      this.sql.dropVector.run(row.id, id)
      if (sequence === undefined) row.learnt++
      else {
        row.messages--
        row.gaps = withGap(row.gaps, sequence)
        if (row.asked === sequence) row.asked = this.askedBefore(row, sequence)
      }
      return true
    })
    if (gone.length > 0) {
      row.removals++
      this.removedFrom(key)
    }
    return gone
  }

  /** The newest message of the user before this one that can be shown. */
  private askedBefore(row: SessionRow, sequence: number): number | null {
    for (let before = sequence; ; ) {
      const older = this.sql.asked.all(row.id, before) as unknown as [number, string][]
      const shown = older.find(([, content]) => !isBlank(content))
      if (shown !== undefined) return shown[0]
      if (older.length < 64) return null
      before = (older.at(-1) as [number, string])[0]
    }
  }

  private find(key: Key): SessionRow | undefined {
    const name = formatKey(key)
    const known = this.sessions.get(name)
    if (known !== undefined) return known
    const cells = this.sql.session.get(key.scope, key.id)
    if (cells === undefined) return undefined
    const row = sessionOf(this.cells(cells))
    this.sessions.set(name, row)
    return row
  }

  private begin({ key, at, expiresAt, epoch }: Change): SessionRow {
    const { lastInsertRowid } = this.sql.begin.run(key.scope, key.id, epoch, at, at, expiresAt)
    const row = sessionOf([Number(lastInsertRowid), epoch, 0, 0, 0, 0, at, at, expiresAt, 0, 0, 0, null, '[]'])
    this.sessions.set(formatKey(key), row)
    return row
  }

  private entry({ id: session }: SessionRow, id: string): Entry | undefined {
    const sequence = sequenceOf(id)
    const cells = sequence === undefined ? this.sql.derived.get(session, id) : this.sql.message.get(session, sequence)
    if (cells === undefined) return undefined
    return sequence === undefined ? derivedOf(this.cells(cells)) : messageOf(this.cells(cells))
  }

  private buried(key: Key): number {
    const cells = this.sql.epoch.get(digestOfKey(key))
    return cells === undefined ? 0 : (this.cells(cells)[0] as number)
  }

  private idsOf({ id }: SessionRow): readonly string[] {
    const messages = this.sql.messageIds.all(id) as unknown as [number][]
    const derived = this.sql.derivedIds.all(id) as unknown as [string][]
    return [...messages.map(([sequence]) => messageId(sequence)), ...derived.map(([name]) => name)]
  }

  /** A statement that returns arrays is typed as if it returned objects. */
  private cells(row: unknown): Cells {
    return row as Cells
  }
}
