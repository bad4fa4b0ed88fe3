import { randomUUID } from 'node:crypto'
import { constants, type Dirent, type Stats } from 'node:fs'
import { access, type FileHandle, lstat, mkdir, open, readdir, readlink, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, parse, resolve, sep } from 'node:path'
import type { Millis } from '../../domain/entry.ts'
import { type FileErrorReason, fileError, fileLimits, toFileError } from './fileErrors.ts'

export type FileContents = { readonly text: string; readonly size: number; readonly modified: Millis }
export type FolderEntry = { readonly name: string; readonly kind: 'file' | 'directory' | 'link' | 'other' }

const noFollow = constants.O_NOFOLLOW ?? 0
/** A pipe without a writer opens at once and is then rejected, instead of blocking. */
const nonBlocking = constants.O_NONBLOCK ?? 0

/** Reads a UTF-8 text file by its real path. */
export async function readText(real: string): Promise<FileContents> {
  await using folder = await openAnchored(dirname(real))
  const path = folder.pathOf(basename(real))
  const before = assertRegularFile(await lstat(path), real)
  await using file = await open(path, constants.O_RDONLY | noFollow | nonBlocking)
  await folder.confirm()
  const stats = assertRegularFile(await file.stat(), real)
  if (!isSameFile(before, stats)) throw fileError('moved', real)
  if (stats.size > fileLimits.maxFileBytes) throw fileError('too-large', real)
  const bytes = await readBytes(file)
  if (bytes.length > fileLimits.maxFileBytes) throw fileError('too-large', real)
  return { text: decodeText(bytes, real), size: bytes.length, modified: Math.floor(stats.mtimeMs) }
}

/** Reads at most one byte more than the limit, because the size in the stats may be wrong. */
async function readBytes(file: FileHandle): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of file.createReadStream({ end: fileLimits.maxFileBytes, autoClose: false }))
    chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

function decodeText(bytes: Uint8Array, real: string): string {
  if (bytes.includes(0)) throw fileError('not-text', real)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw fileError('not-text', real, cause)
  }
}

/** Writes a text file by its real path, atomically and durably. */
export async function writeText(
  real: string,
  text: string,
): Promise<{ readonly size: number; readonly modified: Millis }> {
  const bytes = Buffer.from(text.toWellFormed())
  if (bytes.length > fileLimits.maxFileBytes) throw fileError('too-large', real)
  await using folder = await openAnchored(dirname(real))
  const existing = await lstat(folder.pathOf(basename(real))).catch(() => undefined)
  if (existing !== undefined) assertRegularFile(existing, real)
  const temporary = folder.pathOf(`.threadkeep-${randomUUID()}`)
  try {
    const modified = await writeTemporary(temporary, bytes, existing)
    await replaceFile(folder, temporary, basename(real))
    return { size: bytes.length, modified }
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

async function writeTemporary(path: string, bytes: Uint8Array, existing: Stats | undefined): Promise<Millis> {
  await using file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | noFollow, 0o666)
  // Keep the permissions of the replaced file.
  if (existing !== undefined) await file.chmod(existing.mode & 0o777)
  await file.writeFile(bytes)
  await file.sync()
  return Math.floor((await file.stat()).mtimeMs)
}

/** Renames over the target: a link swapped in meanwhile is replaced, and the file it leads to stays untouched. */
async function replaceFile(folder: AnchoredFolder, temporary: string, name: string): Promise<void> {
  await folder.confirm()
  await rename(temporary, folder.pathOf(name))
  await folder.sync()
}

/** A link is an attack here: the real path had none when it was resolved. */
function assertRegularFile(stats: Stats, real: string): Stats {
  if (stats.isSymbolicLink()) throw fileError('moved', real)
  if (stats.isDirectory()) throw fileError('folder', real)
  if (!stats.isFile()) throw fileError('not-a-file', real)
  return stats
}

/** Lists a folder by its real path, sorted by name; `total` also counts the entries beyond the limit. */
export async function listFolder(
  real: string,
): Promise<{ readonly entries: readonly FolderEntry[]; readonly total: number }> {
  await using folder = await openAnchored(real)
  const found = await readdir(folder.pathOf('.'), { withFileTypes: true })
  await folder.confirm()
  const entries = found
    .map((entry) => ({ name: entry.name, kind: kindOf(entry) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  return { entries: entries.slice(0, fileLimits.maxListedNames), total: entries.length }
}

/** Creates a folder and its missing ancestors by its real path. Returns false if it existed. */
export async function createFolder(real: string): Promise<boolean> {
  const resolved = await resolvePath(real)
  if (resolved === undefined || toFullPath(resolved) !== real) throw fileError('moved', real)
  let current = resolved.real
  for (const name of resolved.missing) {
    await using folder = await openAnchored(current)
    await mkdir(folder.pathOf(name)).catch((error: NodeJS.ErrnoException) => {
      // Another process created it. If it is a link, opening it in the next step fails.
      if (error.code !== 'EEXIST') throw error
    })
    await folder.sync()
    current = join(current, name)
  }
  await using _folder = await openAnchored(current)
  return resolved.missing.length > 0
}

function kindOf(entry: Dirent): FolderEntry['kind'] {
  if (entry.isSymbolicLink()) return 'link'
  if (entry.isDirectory()) return 'directory'
  return entry.isFile() ? 'file' : 'other'
}

/** Path with all links resolved; `missing` are the trailing names that do not exist yet. */
type ResolvedPath = { readonly real: string; readonly missing: readonly string[] }

/** True if a path without links is the folder or inside it. `/app-evil` is not inside `/app`. */
export const isWithin = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

/** Checks the text of a path without touching the file system. */
export function validatePath(path: string): FileErrorReason | undefined {
  const names = path.split(/[/\\]/)
  if (path === '' || path.includes('\0') || !path.isWellFormed() || Buffer.byteLength(path) > fileLimits.maxPathBytes)
    return 'invalid-path'
  if (names.some((name) => Buffer.byteLength(name) > fileLimits.maxNameBytes)) return 'invalid-path'
  // On Windows a colon selects an alternate data stream or another drive.
  const relative = path.slice(parse(path).root.length)
  return process.platform === 'win32' && (relative.includes(':') || path.startsWith('\\\\'))
    ? 'invalid-path'
    : undefined
}

/** Lists the absolute paths a path may stand for: a relative one is resolved against each folder. */
export const candidatePaths = (path: string, folders: readonly string[]): string[] =>
  isAbsolute(path) ? [resolve(path)] : folders.map((folder) => resolve(folder, path))

/**
 * Resolves all links of a path. If the path does not exist, its deepest existing ancestor is resolved. Returns
 * undefined for a dangling link, because its target can change at any time.
 */
export async function resolvePath(path: string): Promise<ResolvedPath | undefined> {
  const missing: string[] = []
  for (let current = path; ; current = dirname(current)) {
    const real = await realpath(current).catch(errorCode)
    if (typeof real === 'string') return { real, missing }
    if (real.code !== 'ENOENT' && real.code !== 'ENOTDIR') return undefined
    if (real.code === 'ENOENT' && (await lstat(current).catch(() => undefined)) !== undefined) return undefined
    if (current === dirname(current)) return undefined
    missing.unshift(basename(current))
  }
}

/** Joins the resolved part of a path and its missing names. */
export const toFullPath = ({ real, missing }: ResolvedPath): string => join(real, ...missing)

const errorCode = (error: NodeJS.ErrnoException): { readonly code: string } => ({ code: error.code ?? '' })

/** Open folder that later operations use instead of its path, which may lead elsewhere by then. */
type AnchoredFolder = AsyncDisposable & {
  /** Returns the path of a name inside the folder. */
  readonly pathOf: (name: string) => string
  /** Throws `moved` if the path of the folder leads elsewhere by now. */
  readonly confirm: () => Promise<void>
  readonly sync: () => Promise<void>
}

/** On Linux, a path below an open descriptor is resolved in the open folder itself, not along the folder's path. */
const descriptorFolder = '/proc/self/fd'
const folderFlags = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0)

/**
 * Opens a folder by its real path and then checks it. Opening first prevents time-of-check-to-time-of-use attacks:
 * links can be swapped into a path between check and use, but not into an open folder.
 *
 * @example
 * await using folder = await openAnchored('/srv/app/notes')
 * await open(folder.pathOf('today.md'), constants.O_RDONLY | constants.O_NOFOLLOW)
 */
export async function openAnchored(real: string): Promise<AnchoredFolder> {
  const handle = await openFolder(real)
  const hasDescriptorPath =
    handle !== undefined &&
    (await access(`${descriptorFolder}/${handle.fd}`).then(
      () => true,
      () => false,
    ))
  const confirm = async (): Promise<void> => {
    const current = hasDescriptorPath
      ? await readlink(`${descriptorFolder}/${handle.fd}`)
      : await realPathIfSame(real, handle)
    if (current !== real) throw fileError('moved', real)
  }
  try {
    await confirm()
  } catch (error) {
    await handle?.close()
    throw toFileError(error, real)
  }
  return {
    pathOf: (name) => (hasDescriptorPath ? `${descriptorFolder}/${handle.fd}/${name}` : join(real, name)),
    confirm,
    sync: async () => handle?.sync(),
    [Symbol.asyncDispose]: async () => handle?.close(),
  }
}

/** Returns undefined on Windows, which cannot open folders. */
async function openFolder(real: string): Promise<FileHandle | undefined> {
  if (process.platform === 'win32') return undefined
  try {
    return await open(real, folderFlags)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOTDIR')) throw toFileError(error, real)
    const isFile = await lstat(real).then(
      (stats) => stats.isFile(),
      () => false,
    )
    throw fileError(isFile ? 'file' : 'moved', real, error)
  }
}

/** Fallback without descriptor paths: resolves the path if it still leads to the open folder. */
async function realPathIfSame(real: string, handle: FileHandle | undefined): Promise<string | undefined> {
  const [current, opened] = [await lstat(real), await handle?.stat()]
  return opened === undefined || isSameFile(current, opened) ? realpath(real) : undefined
}

const isSameFile = (one: Stats, other: Stats): boolean => one.dev === other.dev && one.ino === other.ino
