import { constants, type Stats } from 'node:fs'
import { access, type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { fileError, toFileError } from './fileErrors.ts'

/** Open folder that later operations use instead of its path, which may lead elsewhere by then. */
export type AnchoredFolder = AsyncDisposable & {
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
 * Opens a folder by its real path and then checks it. Opening first prevents time-of-check-to-time-of-use attacks: links can
 * be swapped into a path between check and use, but not into an open folder.
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

export const isSameFile = (one: Stats, other: Stats): boolean => one.dev === other.dev && one.ino === other.ino
