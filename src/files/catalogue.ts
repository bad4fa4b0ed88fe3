import type { Message, Millis, Said } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import type { Clock, Store } from '../domain/ports.ts'
import { type Head, never } from '../domain/session.ts'
import { revise } from '../upkeep/revise.ts'
import {
  chunkIds,
  type FileInfo,
  type FileRecord,
  isLeftOver,
  isUnderWay,
  isWhole,
  itemOf,
  recordId,
  recordIn,
  recordsOf,
  withRun,
} from './record.ts'

type Means = {
  readonly store: Store
  readonly clock: Clock
  /** Who writes here: a name no other process has. */
  readonly holder: string
  /** How long a file may go without a sign of life before it counts as abandoned: while it waits for its turn, and from then on. */
  readonly patience: { readonly waiting: Millis; readonly indexing: Millis }
  /** How many files a tenant may have. */
  readonly most: number
}

/** What a file is known by before it is read. */
export type Draft = Pick<FileInfo, 'id' | 'name' | 'type' | 'bytes' | 'sha256'>

/** The next chunks of a file, how many of them do not tell where they stand, and what is known of the file with them. */
export type Batch = {
  readonly append: readonly Said[]
  readonly bare: number
  readonly known: Pick<FileInfo, 'characters' | 'chunks' | 'status'>
}

/** Chunks that were stored, and in which epoch. */
export type Added = { readonly info: FileInfo; readonly epoch: number; readonly stored: readonly Message[] }

/** What others keep undoing is given up at last. */
const mostRounds = 1_000

/**
 * The files of tenants as a store keeps them: chunks as messages, and beside them a record of each file, which is changed in one
 * step with its chunks and only as it was read. So no chunk is without a record, and whoever removes a file has the last word.
 */
export class Catalogue {
  private readonly means: Means

  constructor(means: Means) {
    this.means = means
  }

  /** The files of a tenant in order of upload. What an ended process has left half done is cleaned up first. */
  async records(key: Key): Promise<readonly FileRecord[]> {
    const records = recordsOf(await this.head(key))
    if (!records.some((record) => isLeftOver(record, this.now))) return records
    await this.clean(key)
    return recordsOf(await this.head(key)).filter(({ isGoing }) => isGoing !== true)
  }

  /** Enters a file, unless the same one is there already, whole or under way: then that one. */
  async enter(key: Key, draft: Draft): Promise<{ readonly info: FileInfo; readonly isNew: boolean }> {
    const same = ({ info }: FileRecord): boolean => info.name === draft.name && info.sha256 === draft.sha256
    const stands = (record: FileRecord, head: Head): boolean => isUnderWay(record, this.now) || isWhole(record, head)
    const head = await this.head(key)
    for (const record of recordsOf(head).filter(same)) if (!stands(record, head)) await this.remove(key, record.info.id)
    const info: FileInfo = { ...draft, characters: 0, chunks: 0, at: this.now, status: 'indexing', done: 0 }
    let found: FileInfo | undefined
    await revise(this.means.store, key, (now) => {
      const records = recordsOf(now)
      found = records.find((record) => same(record) && stands(record, now))?.info
      if (found !== undefined) return undefined
      if (records.length >= this.means.most)
        throw new MemoryError(
          'full',
          `There are ${records.length} files already, and no room for more. Remove some first.`,
          { param: 'file' },
        )
      return {
        put: [itemOf({ info, place: now.revision + 1, runs: [], bare: 0, lease: this.lease('waiting') })],
        drop: [],
      }
    })
    return { info: found ?? info, isNew: found === undefined }
  }

  /** Tells that a file's turn has come; undefined if it was removed, or somebody else has taken it for abandoned. */
  takeUp(key: Key, id: string): Promise<FileInfo | undefined> {
    return this.amend(key, id, (record) =>
      this.isMine(record) ? { ...record, lease: this.lease('indexing') } : undefined,
    )
  }

  /** Stores the next chunks of a file, in one step with its record; undefined if it was removed meanwhile. */
  async add(key: Key, id: string, { append, bare, known }: Batch): Promise<Added | undefined> {
    for (let round = 0; round < mostRounds; round++) {
      const head = await this.head(key)
      const record = recordIn(head, id)
      if (record === undefined || !this.isMine(record)) return undefined
      const { lease: _, ...before } = record
      const info = { ...record.info, ...known, done: record.info.done + append.length }
      const runs = append.length === 0 ? record.runs : withRun(record.runs, head.last + 1, head.last + append.length)
      const grown = {
        ...before,
        info,
        runs,
        bare: record.bare + bare,
        ...(info.status === 'indexing' ? { lease: this.lease('indexing') } : {}),
      }
      const { epoch, revision } = head
      const step = {
        id: `${recordId(id)}@${revision}`,
        key,
        at: this.now,
        epoch,
        base: revision,
        drop: [],
        expiresAt: never,
      }
      const stored = await unless(
        ['conflict', 'erased'],
        this.means.store.commit({ ...step, append, put: [itemOf(grown)] }),
      )
      if (stored !== undefined) return { info, epoch, stored }
    }
    throw new MemoryError('conflict', 'Others have written to the files of this tenant without pause. Try again.')
  }

  /** Takes back what was stored of a file and says why; it stays in the list. */
  async fail(
    key: Key,
    id: string,
    why: string,
    isStill = (record: FileRecord): boolean => record.isGoing !== true,
  ): Promise<FileInfo | undefined> {
    // From here on nobody adds to it, so that all of it can be taken back.
    const failed = await this.amend(key, id, (found) => {
      const { lease: _, ...record } = found
      return isStill(found)
        ? { ...record, info: { ...found.info, status: 'failed', why, done: 0, chunks: 0 } }
        : undefined
    })
    const record = failed && recordIn(await this.head(key), id)
    if (record === undefined) return undefined
    if (record.runs.length > 0) await this.means.store.erase(key, { entries: chunkIds(record) })
    return this.amend(key, id, (emptied) => ({ ...emptied, runs: [], bare: 0 }))
  }

  /** Removes a file with everything that was stored of it; whether there was one. */
  async remove(key: Key, id: string): Promise<boolean> {
    const removed = await this.amend(key, id, (record) => ({ ...record, isGoing: true }))
    const record = recordIn(await this.head(key), id)
    // Also if there is none: traces of one that went before may be left, which a reader kept from being cleaned.
    await this.means.store.erase(key, { entries: [...(record === undefined ? [] : chunkIds(record)), recordId(id)] })
    return removed !== undefined
  }

  /** Finishes what ended processes have begun: removals are done, and of files that were being indexed nothing but their failure is left. */
  async clean(key: Key): Promise<void> {
    const isStill = (record: FileRecord): boolean => isLeftOver(record, this.now)
    for (const { info, isGoing } of recordsOf(await this.head(key)).filter(isStill)) {
      if (isGoing === true) await this.remove(key, info.id)
      else await this.fail(key, info.id, info.why ?? 'Reading it was interrupted. Upload it again.', isStill)
    }
  }

  head(key: Key): Promise<Head> {
    return this.means.store.head(key, 0)
  }

  private async amend(
    key: Key,
    id: string,
    change: (record: FileRecord) => FileRecord | undefined,
  ): Promise<FileInfo | undefined> {
    let info: FileInfo | undefined
    const decide = (head: Head) => {
      const record = recordIn(head, id)
      const changed = record && change(record)
      info = changed?.info
      return changed === undefined ? undefined : { put: [itemOf(changed)], drop: [] }
    }
    const revised = await unless(['erased'], revise(this.means.store, key, decide, this.now))
    return revised && info
  }

  private isMine({ info, lease, isGoing }: FileRecord): boolean {
    return info.status === 'indexing' && isGoing !== true && lease?.holder === this.means.holder
  }

  private lease(during: keyof Means['patience']): NonNullable<FileRecord['lease']> {
    return { holder: this.means.holder, until: this.now + this.means.patience[during] }
  }

  private get now(): Millis {
    return this.means.clock()
  }
}

/** What comes of a work, or undefined if it was refused for one of these reasons: then it is decided anew. */
async function unless<T>(codes: readonly MemoryError['code'][], work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (error instanceof MemoryError && codes.includes(error.code)) return undefined
    throw error
  }
}
