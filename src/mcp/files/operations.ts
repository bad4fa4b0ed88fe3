import { randomUUID } from 'node:crypto'
import { constants, type Dirent, type Stats } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Millis } from '../../domain/entry.ts'
import { type AnchoredFolder, isSameFile, openAnchored } from './anchoredFolder.ts'
import { fileError, fileLimits } from './fileErrors.ts'
import { resolvePath, toFullPath } from './paths.ts'

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
