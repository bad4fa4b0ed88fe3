import type { Millis, NewMessage } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import type { Clock, Store } from '../domain/ports.ts'
import { noExpiry, type SessionHead } from '../domain/session.ts'
import { wipeStores } from '../memory/forget.ts'
import { revise } from '../upkeep/revise.ts'
import {
  appendRun,
  chunkIds,
  type FileInfo,
  type FileRecord,
  findRecord,
  isAbandoned,
  isBeingIndexed,
  isComplete,
  readRecords,
  recordId,
  toItem,
} from './record.ts'

type CatalogDeps = {
  readonly store: Store
  readonly clock: Clock
  /** Unique name of this process in leases. */
  readonly holder: string
  /** Time without an update after which a file counts as abandoned: while queued and while being indexed. */
  readonly leaseDurations: { readonly waiting: Millis; readonly indexing: Millis }
  readonly maxFiles: number
}

/** Metadata of a file before it is parsed. */
export type FileDraft = Pick<FileInfo, 'id' | 'name' | 'type' | 'bytes' | 'sha256'>

/** The next chunks of a file. */
export type ChunkBatch = {
  readonly chunks: readonly NewMessage[]
  /** The number of chunks without a location line. */
  readonly unlabelled: number
  /** New values of the file's metadata. */
  readonly progress: Pick<FileInfo, 'characters' | 'chunks' | 'status'>
}

/** Attempts to commit while other processes write to the same session. */
const maxCommitAttempts = 1_000

/**
 * Stores the files of tenants: chunks as messages, and a record per file. Chunks and record change in one commit that
 * is based on the revision that was read, so every chunk has a record and a deletion cannot be undone by a concurrent
 * write.
 */
export class FileCatalog {
  private readonly deps: CatalogDeps

  constructor(deps: CatalogDeps) {
    this.deps = deps
  }

  /** Lists the files of a tenant in order of upload, after cleaning up what dead processes left behind. */
  async records(key: Key): Promise<readonly FileRecord[]> {
    const records = readRecords(await this.head(key))
    if (!records.some((record) => isAbandoned(record, this.now))) return records
    await this.cleanUp(key)
    return readRecords(await this.head(key)).filter(({ isDeleting }) => isDeleting !== true)
  }

  /**
   * Registers a file, or returns the existing one with the same name and content if it is complete or being indexed.
   */
  async register(key: Key, draft: FileDraft): Promise<{ readonly info: FileInfo; readonly isNew: boolean }> {
    const isSame = ({ info }: FileRecord): boolean => info.name === draft.name && info.sha256 === draft.sha256
    const isUsable = (record: FileRecord, head: SessionHead): boolean =>
      isBeingIndexed(record, this.now) || isComplete(record, head)
    const before = await this.head(key)
    for (const record of readRecords(before).filter(isSame))
      if (!isUsable(record, before)) await this.remove(key, record.info.id)
    const info: FileInfo = { ...draft, characters: 0, chunks: 0, at: this.now, status: 'indexing', done: 0 }
    let existing: FileInfo | undefined
    await revise(this.deps.store, key, (head) => {
      const records = readRecords(head)
      existing = records.find((record) => isSame(record) && isUsable(record, head))?.info
      if (existing !== undefined) return undefined
      if (records.length >= this.deps.maxFiles)
        throw new MemoryError('full', `The limit of ${this.deps.maxFiles} files is reached. Remove some files first.`, {
          param: 'file',
        })
      const record = { info, order: head.revision + 1, runs: [], unlabelledChunks: 0, lease: this.lease('waiting') }
      return { put: [toItem(record)], drop: [] }
    })
    return { info: existing ?? info, isNew: existing === undefined }
  }

  /** Renews the lease when indexing starts; returns undefined if the file was removed or considered abandoned. */
  claim(key: Key, id: string): Promise<FileInfo | undefined> {
    return this.updateRecord(key, id, (record) =>
      this.isMine(record) ? { ...record, lease: this.lease('indexing') } : undefined,
    )
  }

  /** Stores chunks and the updated record in one commit; returns undefined if the file was removed. */
  async appendChunks(key: Key, id: string, batch: ChunkBatch): Promise<FileInfo | undefined> {
    const { chunks, unlabelled, progress } = batch
    for (let attempt = 0; attempt < maxCommitAttempts; attempt++) {
      const head = await this.head(key)
      const record = findRecord(head, id)
      if (record === undefined || !this.isMine(record)) return undefined
      const { lease: _, ...withoutLease } = record
      const info = { ...record.info, ...progress, done: record.info.done + chunks.length }
      const updated = {
        ...withoutLease,
        info,
        runs:
          chunks.length === 0
            ? record.runs
            : appendRun(record.runs, head.lastSequence + 1, head.lastSequence + chunks.length),
        unlabelledChunks: record.unlabelledChunks + unlabelled,
        ...(info.status === 'indexing' ? { lease: this.lease('indexing') } : {}),
      }
      const { epoch, revision } = head
      const committed = await undefinedOn(
        ['conflict', 'erased'],
        this.deps.store.commit({
          id: `${recordId(id)}@${revision}`,
          key,
          at: this.now,
          epoch,
          base: revision,
          append: chunks,
          put: [toItem(updated)],
          drop: [],
          expiresAt: noExpiry,
        }),
      )
      if (committed !== undefined) return info
    }
    throw new MemoryError('conflict', 'The files of this tenant are being changed too often. Try again.')
  }

  /** Marks a file as failed, erases its chunks and keeps its record. */
  async fail(
    key: Key,
    id: string,
    why: string,
    condition = (record: FileRecord): boolean => record.isDeleting !== true,
  ): Promise<FileInfo | undefined> {
    // Removing the lease first prevents further appends, so all chunks can be erased.
    const failed = await this.updateRecord(key, id, (record) => {
      const { lease: _, ...withoutLease } = record
      return condition(record)
        ? { ...withoutLease, info: { ...record.info, status: 'failed', why, done: 0, chunks: 0 } }
        : undefined
    })
    const record = failed && findRecord(await this.head(key), id)
    if (record === undefined) return undefined
    if (record.runs.length > 0) await this.deps.store.erase(key, { entries: chunkIds(record) })
    return this.updateRecord(key, id, (erased) => ({ ...erased, runs: [], unlabelledChunks: 0 }))
  }

  /** Removes a file with its chunks; returns false if there was none. */
  async remove(key: Key, id: string): Promise<boolean> {
    const removed = await this.updateRecord(key, id, (record) => ({ ...record, isDeleting: true }))
    const record = findRecord(await this.head(key), id)
    // Erases even without a record: an open reader may have kept traces of an earlier removal from being cleaned up.
    await this.deps.store.erase(key, { entries: [...(record === undefined ? [] : chunkIds(record)), recordId(id)] })
    await wipeStores([this.deps.store])
    return removed !== undefined
  }

  /** Finishes removals of dead processes and marks files that they were indexing as failed. */
  async cleanUp(key: Key): Promise<void> {
    const condition = (record: FileRecord): boolean => isAbandoned(record, this.now)
    for (const { info, isDeleting } of readRecords(await this.head(key)).filter(condition)) {
      if (isDeleting === true) await this.remove(key, info.id)
      else await this.fail(key, info.id, info.why ?? 'Indexing was interrupted. Upload the file again.', condition)
    }
  }

  private head(key: Key): Promise<SessionHead> {
    return this.deps.store.readHead(key, 0)
  }

  private async updateRecord(
    key: Key,
    id: string,
    update: (record: FileRecord) => FileRecord | undefined,
  ): Promise<FileInfo | undefined> {
    let info: FileInfo | undefined
    const decide = (head: SessionHead) => {
      const record = findRecord(head, id)
      const updated = record && update(record)
      info = updated?.info
      return updated === undefined ? undefined : { put: [toItem(updated)], drop: [] }
    }
    const revised = await undefinedOn(['erased'], revise(this.deps.store, key, decide, this.now))
    return revised && info
  }

  private isMine({ info, lease, isDeleting }: FileRecord): boolean {
    return info.status === 'indexing' && isDeleting !== true && lease?.holder === this.deps.holder
  }

  private lease(phase: keyof CatalogDeps['leaseDurations']): NonNullable<FileRecord['lease']> {
    return { holder: this.deps.holder, until: this.now + this.deps.leaseDurations[phase] }
  }

  private get now(): Millis {
    return this.deps.clock()
  }
}

/** Resolves to undefined when the promise rejects with one of these error codes. */
async function undefinedOn<T>(codes: readonly MemoryError['code'][], promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise
  } catch (error) {
    if (error instanceof MemoryError && codes.includes(error.code)) return undefined
    throw error
  }
}
