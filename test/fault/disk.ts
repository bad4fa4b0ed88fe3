import { type Call, dataOf, numbersOf, succeeded, targetOf } from './trace.ts'

/** The calls that change files, and the one that tells what was acknowledged. */
export const watched = ['openat', 'pwrite64', 'write', 'ftruncate', 'fsync', 'fdatasync', 'unlink', 'rename'] as const

type Written = { readonly offset: number; readonly data: Buffer; readonly to: number }
type Truncated = { readonly size: number; readonly to: number }
type Change = Written | Truncated
/** What a disk holds of a file for certain, and what has been written to it since. */
type File = { certain: Buffer; since: Change[] }
/** A file that came under a name, or left it. */
type Naming = { readonly path: string; readonly file: File | undefined; readonly to: number }

/** Whether something that was never synced reached the disk nevertheless. */
export type Luck = () => boolean

const sector = 512

/**
 * A disk as a power failure finds it: what was synced is there, anything later may be, in any selection of sectors; a
 * new or removed name is certain once its folder was synced.
 */
export class Disk {
  private readonly folder: string
  private readonly isLie: (path: string) => boolean
  /** As the running programs see them. */
  private readonly files = new Map<string, File>()
  private readonly certain = new Map<string, File>()
  private since: Naming[] = []
  private told = ''

  /** A sync of which `isLie` holds is told to have happened and has not. */
  constructor(folder: string, isLie: (path: string) => boolean = () => false) {
    this.folder = folder
    this.isLie = isLie
  }

  /** Everything that was written to stdout so far. */
  get output(): string {
    return this.told
  }

  /** Applies a call; whether it changed anything. */
  apply(call: Call): boolean {
    if (!succeeded(call)) return false
    const { name } = call
    if (name === 'write' && call.args.startsWith('1<')) {
      this.told += Buffer.concat(dataOf(call)).toString()
      return true
    }
    const path = name === 'openat' || name === 'unlink' ? String(dataOf(call)[0]) : targetOf(call)
    // The index of the log in shared memory is made anew when the database is opened.
    if (path.endsWith('-shm') || !(path === this.folder || path.startsWith(`${this.folder}/`))) return false
    if (name === 'openat') return this.open(path, call)
    if (name === 'fsync' || name === 'fdatasync') return this.sync(path, call)
    if (name === 'unlink') return this.name(path, undefined, call)
    const file = this.files.get(path)
    // A file without a name is of no use to anybody after a power failure.
    if (file === undefined) return false
    if (name === 'pwrite64')
      file.since.push({ offset: numbersOf(call)[1] as number, data: dataOf(call)[0] as Buffer, to: call.to })
    else if (name === 'ftruncate') file.since.push({ size: numbersOf(call)[0] as number, to: call.to })
    else throw new Error(`A disk knows nothing of ${name}`)
    return true
  }

  /** The files as they are found when the power comes back. */
  remains(luck: Luck): ReadonlyMap<string, Buffer> {
    const names = new Map(this.certain)
    for (const { path, file } of this.since.filter(luck)) {
      if (file === undefined) names.delete(path)
      else names.set(path, file)
    }
    return new Map([...names].map(([path, { certain, since }]) => [path, changed(certain, since, luck)]))
  }

  private open(path: string, call: Call): boolean {
    if (!call.args.includes('O_CREAT') || this.files.has(path)) return false
    return this.name(path, { certain: Buffer.alloc(0), since: [] }, call)
  }

  private name(path: string, file: File | undefined, { to }: Call): boolean {
    if (file === undefined) this.files.delete(path)
    else this.files.set(path, file)
    this.since.push({ path, file, to })
    return true
  }

  private sync(path: string, { from }: Call): boolean {
    if (path === this.folder) {
      for (const { path: named, file } of this.since.filter(({ to }) => to <= from)) {
        if (file === undefined) this.certain.delete(named)
        else this.certain.set(named, file)
      }
      this.since = this.since.filter(({ to }) => to > from)
      return true
    }
    const file = this.files.get(path)
    if (file === undefined || this.isLie(path)) return false
    file.certain = changed(
      file.certain,
      file.since.filter(({ to }) => to <= from),
      () => true,
    )
    file.since = file.since.filter(({ to }) => to > from)
    return true
  }
}

/** A file after these changes, of which only some sectors may have reached the disk. */
function changed(content: Buffer, changes: readonly Change[], luck: Luck): Buffer {
  const result = Buffer.alloc(
    Math.max(
      content.length,
      ...changes.map((change) => ('size' in change ? change.size : change.offset + change.data.length)),
    ),
  )
  let size = content.copy(result)
  for (const change of changes) {
    if (!('size' in change)) size = Math.max(size, written(result, change, luck))
    else if (luck()) {
      result.fill(0, change.size, Math.max(size, change.size))
      size = change.size
    }
  }
  return result.subarray(0, size)
}

/** Writes each sector if luck will have it; where the last one ends. */
function written(into: Buffer, { offset, data }: Written, luck: Luck): number {
  let end = 0
  for (let from = 0; from < data.length; ) {
    const to = Math.min(data.length, from + sector - ((offset + from) % sector))
    if (luck()) {
      data.copy(into, offset + from, from, to)
      end = offset + to
    }
    from = to
  }
  return end
}
