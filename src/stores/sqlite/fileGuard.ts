import { closeSync, fstatSync, lstatSync, openSync, readlinkSync, readSync, realpathSync, type Stats } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { MemoryError } from '../../domain/error.ts'

/** Identity of an open store, read when its file was opened with the right keys. */
export type StoreIdentity = { readonly store: number; readonly isEncrypted: boolean }

type Inode = Pick<Stats, 'dev' | 'ino'>

/** The open file of a store, as plain data that can be sent to a worker thread. */
export type GuardedFile = {
  /** The database itself: SQLite puts its log beside it, not beside a symbolic link to it. */
  readonly path: string
  /** Symbolic link under which the store was opened. */
  readonly link: string | undefined
  readonly identity: StoreIdentity
  readonly descriptor: number
  /** Device and inode of the database, its log and the index of the log. */
  readonly inodes: readonly (Inode | undefined)[]
  /** Place of the page with the store id and the stamp. */
  readonly metaOffset: number
  readonly pageSize: number
  /** Stamp of the newest checkpoint that was seen, shared by the threads of this process. */
  readonly checkpointStamp: Float64Array
}

const maxCheckpointAttempts = 5
const suffixes = ['', '-wal', '-shm'] as const

export function readIdentity(database: DatabaseSync): StoreIdentity {
  const rows = database.prepare("SELECT name, value FROM meta WHERE name IN ('store', 'encrypted')").all()
  const values = new Map(rows.map(({ name, value }) => [name, Number(value)]))
  return { store: values.get('store') ?? 0, isEncrypted: values.get('encrypted') === 1 }
}

/** Throws `file-changed` if a connection belongs to another store, or another process encrypted the store. */
export function checkIdentity(database: DatabaseSync, path: string, { store, isEncrypted }: StoreIdentity): void {
  const found = readIdentity(database)
  if (found.store !== store) throw fileChangedError(path, 'was replaced by another store')
  if (found.isEncrypted !== isEncrypted) throw fileChangedError(path, 'was encrypted by another process')
}

const fileChangedError = (path: string, problem: string): MemoryError =>
  new MemoryError(
    'file-changed',
    `${path} ${problem} while it was open. Nothing is read or written until the original file is back; otherwise restart.`,
  )

/** Descriptors by device and inode. */
const descriptors = new Map<string, { readonly descriptor: number; users: number }>()

/**
 * Opens a descriptor on a database. Closing any descriptor of a file releases all locks that this process holds on it,
 * SQLite's too, so all users in this process share one, which is closed after the last of them closed its connections.
 */
function retainDescriptor(path: string): { readonly descriptor: number; readonly inode: Inode } {
  const inode = inodeOf(path)
  const known = inode === undefined ? undefined : descriptors.get(formatInode(inode))
  if (inode !== undefined && known !== undefined) {
    known.users++
    return { descriptor: known.descriptor, inode }
  }
  const descriptor = openSync(path, 'r+')
  const { dev, ino } = fstatSync(descriptor)
  descriptors.set(formatInode({ dev, ino }), { descriptor, users: 1 })
  return { descriptor, inode: { dev, ino } }
}

/** Reads a name without following links: behind a link that was put in place of a file, SQLite uses another log. */
const readStats = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false })

function inodeOf(path: string): Inode | undefined {
  const stats = readStats(path)
  return stats === undefined ? undefined : { dev: stats.dev, ino: stats.ino }
}

const maxLinks = 40

/** Returns the file that a path names, which need not exist. */
export function followLinks(path: string): string {
  let file = resolve(path)
  // A link leads on from the folder that it is in, which may have been reached by a link too.
  for (let count = 0; count < maxLinks && readStats(file)?.isSymbolicLink() === true; count++)
    file = resolve(realpathSync(dirname(file)), readlinkSync(file))
  return file
}

function rejectOtherFile(path: string, stats: Stats | undefined, expected: Inode | undefined): asserts stats is Stats {
  if (stats === undefined) throw fileChangedError(path, 'was deleted or moved')
  if (stats.ino !== expected?.ino || stats.dev !== expected.dev) throw fileChangedError(path, 'was replaced')
}

const formatInode = ({ dev, ino }: Inode): string => `${dev} ${ino}`

/**
 * Guards the file of an open connection, which must have read from it. Call `releaseFile` after all connections are
 * closed.
 */
export function guardFile(database: DatabaseSync, name: string, identity: StoreIdentity): GuardedFile {
  const path = followLinks(name)
  const { descriptor, inode } = retainDescriptor(path)
  const { rootpage } = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'meta'").get() as {
    rootpage: number
  }
  const { page_size: pageSize } = database.prepare('PRAGMA page_size').get() as { page_size: number }
  const file: GuardedFile = {
    path,
    link: readStats(name)?.isSymbolicLink() === true ? name : undefined,
    identity,
    descriptor,
    inodes: [inode, ...suffixes.slice(1).map((suffix) => inodeOf(path + suffix))],
    metaOffset: (rootpage - 1) * pageSize,
    pageSize,
    checkpointStamp: new Float64Array(new SharedArrayBuffer(8)),
  }
  // With other processes at work, a file that was created or migrated just now may still be in the log only.
  for (let attempts = 0; attempts < maxCheckpointAttempts && new FileGuard(file).isOverwritten(); attempts++)
    database.prepare('PRAGMA wal_checkpoint(FULL)').get()
  return file
}

export function releaseFile({ inodes: [inode] }: GuardedFile): void {
  const name = inode === undefined ? '' : formatInode(inode)
  const known = descriptors.get(name)
  if (known === undefined || --known.users > 0) return
  descriptors.delete(name)
  closeSync(known.descriptor)
}

/** True if the database was deleted, moved or replaced, or its log was, so that only open connections can read it. */
export const hasLostName = ({ path, inodes }: GuardedFile): boolean =>
  suffixes.some((suffix, index) => {
    const [found, expected] = [inodeOf(path + suffix), inodes[index]]
    return found?.ino !== expected?.ino || found?.dev !== expected?.dev
  })

/** Notices that the file of a store was deleted, replaced or overwritten while connections to it are open. */
export class FileGuard {
  private readonly file: GuardedFile
  /** Size and time of the last change of the database that was checked. */
  private checkedState: Pick<Stats, 'size' | 'mtimeMs' | 'ctimeMs'> | undefined

  constructor(file: GuardedFile) {
    this.file = file
  }

  /** Throws `file-changed` unless the path still names the open file, with the content that SQLite left in it. */
  check(): void {
    const { path, link, inodes } = this.file
    if (link !== undefined && followLinks(link) !== path) throw fileChangedError(link, 'was replaced')
    const stats = readStats(path)
    rejectOtherFile(path, stats, inodes[0])
    this.checkContent(stats)
  }

  /** Checks the log and its index too. */
  checkAll(): void {
    this.check()
    const { path, inodes } = this.file
    for (const index of [1, 2] as const) {
      const name = path + suffixes[index]
      rejectOtherFile(name, readStats(name), inodes[index])
    }
  }

  /** True if something else than a checkpoint wrote to the file, so that writes of SQLite would damage it. */
  isOverwritten(): boolean {
    const { identity, checkpointStamp } = this.file
    const found = this.readContent()
    return found?.store !== identity.store || found.stamp < (checkpointStamp[0] ?? 0)
  }

  /**
   * Only checkpoints and `wipeFile` write to the database in WAL mode. They keep the id of the store and never lower
   * its stamp.
   */
  private checkContent({ size, mtimeMs, ctimeMs }: Stats): void {
    const last = this.checkedState
    if (last?.mtimeMs === mtimeMs && last.ctimeMs === ctimeMs && last.size === size) return
    // A page that is being written by a checkpoint is read again.
    if (this.isOverwritten() && this.isOverwritten()) throw fileChangedError(this.file.path, 'was overwritten')
    this.checkedState = { size, mtimeMs, ctimeMs }
    const { checkpointStamp } = this.file
    checkpointStamp[0] = Math.max(checkpointStamp[0] ?? 0, this.readContent()?.stamp ?? 0)
  }

  private readContent(): { readonly store: number; readonly stamp: number } | undefined {
    const { descriptor, metaOffset, pageSize } = this.file
    const header = Buffer.alloc(16)
    const page = Buffer.alloc(pageSize)
    readSync(descriptor, header, 0, header.length, 0)
    if (header.toString('latin1') !== 'SQLite format 3\0') return undefined
    if (readSync(descriptor, page, 0, pageSize, metaOffset) < pageSize) return undefined
    const values = parseMetaPage(page)
    const [store, stamp] = [values.get('store'), values.get('stamp')]
    return store === undefined || stamp === undefined ? undefined : { store, stamp }
  }
}

const indexLeafPage = 0x0a

/**
 * Parses the only page of the table `meta`, rows of a short name and an integer, as SQLite's file format defines it.
 * Returns nothing for any other page.
 */
function parseMetaPage(page: Buffer): ReadonlyMap<string, number> {
  const values = new Map<string, number>()
  if (page[0] !== indexLeafPage) return values
  try {
    for (let cell = 0; cell < page.readUInt16BE(3); cell++) {
      // All lengths are below 128, so each is one byte.
      const record = page.readUInt16BE(8 + 2 * cell) + 1
      const [headerBytes = 0, nameType = 0, valueType = 0] = page.subarray(record, record + 3)
      const nameStart = record + headerBytes
      const nameEnd = nameStart + (nameType - 13) / 2
      values.set(page.toString('utf8', nameStart, nameEnd), readInteger(page, nameEnd, valueType))
    }
  } catch {
    return new Map()
  }
  return values
}

const integerBytes: Readonly<Record<number, number>> = { 1: 1, 2: 2, 3: 3, 4: 4, 5: 6 }

function readInteger(page: Buffer, start: number, type: number): number {
  if (type === 8 || type === 9) return type - 8
  if (type === 6) return Number(page.readBigInt64BE(start))
  return page.readIntBE(start, integerBytes[type] ?? 0)
}
