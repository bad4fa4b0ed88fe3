import { dataOf, numbersOf, pathOf, type SystemCall, succeeded } from './straceOutput.ts'

/** System calls that change files, and `write`, which carries the acknowledgements on stdout. */
export const diskCalls = ['openat', 'pwrite64', 'write', 'ftruncate', 'fsync', 'fdatasync', 'unlink', 'rename'] as const

type Write = { readonly offset: number; readonly data: Buffer; readonly endLine: number }
type Truncation = { readonly size: number; readonly endLine: number }
type Change = Write | Truncation
/** Synced content of a file, and the changes since the last sync. */
type File = { durable: Buffer; pending: Change[] }
/** A file that was created under a name, or removed from it. */
type NameChange = { readonly path: string; readonly file: File | undefined; readonly endLine: number }

/** Decides for each unsynced sector, truncation or name whether it reached the disk anyway. */
export type SectorSurvival = () => boolean

const sectorBytes = 512

/**
 * Disk state at a power loss. Synced data is there; later writes may be, in any selection of sectors. A created or
 * removed name is durable once its folder was synced.
 */
export class SimulatedDisk {
  private readonly folder: string
  private readonly ignoresSync: (path: string) => boolean
  /** Files as the running programs see them. */
  private readonly files = new Map<string, File>()
  private readonly durableNames = new Map<string, File>()
  private pendingNames: NameChange[] = []
  private stdout = ''

  /** Syncs of paths for which `ignoresSync` is true report success without effect. */
  constructor(folder: string, ignoresSync: (path: string) => boolean = () => false) {
    this.folder = folder
    this.ignoresSync = ignoresSync
  }

  /** Everything written to stdout so far. */
  get output(): string {
    return this.stdout
  }

  /** Applies a call; returns whether it changed anything. */
  apply(call: SystemCall): boolean {
    if (!succeeded(call)) return false
    const { name } = call
    if (name === 'write' && call.args.startsWith('1<')) {
      this.stdout += Buffer.concat(dataOf(call)).toString()
      return true
    }
    const path = name === 'openat' || name === 'unlink' ? String(dataOf(call)[0]) : pathOf(call)
    // SQLite rebuilds the shared-memory index of the log when it opens the database.
    if (path.endsWith('-shm') || !(path === this.folder || path.startsWith(`${this.folder}/`))) return false
    if (name === 'openat') return this.open(path, call)
    if (name === 'fsync' || name === 'fdatasync') return this.sync(path, call)
    if (name === 'unlink') return this.setName(path, undefined, call)
    const file = this.files.get(path)
    // A file without a name is lost in a power failure anyway.
    if (file === undefined) return false
    if (name === 'pwrite64')
      file.pending.push({
        offset: numbersOf(call)[1] as number,
        data: dataOf(call)[0] as Buffer,
        endLine: call.endLine,
      })
    else if (name === 'ftruncate') file.pending.push({ size: numbersOf(call)[0] as number, endLine: call.endLine })
    else throw new Error(`The simulated disk does not support ${name}`)
    return true
  }

  /** Returns the files that exist after the power comes back. */
  filesAfterPowerLoss(survives: SectorSurvival): ReadonlyMap<string, Buffer> {
    const names = new Map(this.durableNames)
    for (const { path, file } of this.pendingNames.filter(survives)) {
      if (file === undefined) names.delete(path)
      else names.set(path, file)
    }
    return new Map([...names].map(([path, { durable, pending }]) => [path, applyChanges(durable, pending, survives)]))
  }

  private open(path: string, call: SystemCall): boolean {
    if (!call.args.includes('O_CREAT') || this.files.has(path)) return false
    return this.setName(path, { durable: Buffer.alloc(0), pending: [] }, call)
  }

  private setName(path: string, file: File | undefined, { endLine }: SystemCall): boolean {
    if (file === undefined) this.files.delete(path)
    else this.files.set(path, file)
    this.pendingNames.push({ path, file, endLine })
    return true
  }

  /** Makes changes durable that had finished before the sync started. */
  private sync(path: string, { startLine }: SystemCall): boolean {
    if (path === this.folder) {
      for (const { path: name, file } of this.pendingNames.filter(({ endLine }) => endLine <= startLine)) {
        if (file === undefined) this.durableNames.delete(name)
        else this.durableNames.set(name, file)
      }
      this.pendingNames = this.pendingNames.filter(({ endLine }) => endLine > startLine)
      return true
    }
    const file = this.files.get(path)
    if (file === undefined || this.ignoresSync(path)) return false
    file.durable = applyChanges(
      file.durable,
      file.pending.filter(({ endLine }) => endLine <= startLine),
      () => true,
    )
    file.pending = file.pending.filter(({ endLine }) => endLine > startLine)
    return true
  }
}

/** Returns a file's content after the changes that survive. */
function applyChanges(content: Buffer, changes: readonly Change[], survives: SectorSurvival): Buffer {
  const result = Buffer.alloc(
    Math.max(
      content.length,
      ...changes.map((change) => ('size' in change ? change.size : change.offset + change.data.length)),
    ),
  )
  let size = content.copy(result)
  for (const change of changes) {
    if (!('size' in change)) size = Math.max(size, writeSectors(result, change, survives))
    else if (survives()) {
      result.fill(0, change.size, Math.max(size, change.size))
      size = change.size
    }
  }
  return result.subarray(0, size)
}

/** Writes the sectors that survive; returns the end of the last one. */
function writeSectors(target: Buffer, { offset, data }: Write, survives: SectorSurvival): number {
  let end = 0
  for (let from = 0; from < data.length; ) {
    const to = Math.min(data.length, from + sectorBytes - ((offset + from) % sectorBytes))
    if (survives()) {
      data.copy(target, offset + from, from, to)
      end = offset + to
    }
    from = to
  }
  return end
}
