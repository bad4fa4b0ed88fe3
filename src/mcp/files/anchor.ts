import { constants, type Stats } from 'node:fs'
import { access, type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { refusal, told } from './refusal.ts'

/** A folder that stays the one it was when it was checked, whatever its path leads to by now. */
export type Anchor = AsyncDisposable & {
  /** The path of something in it. */
  readonly inside: (name: string) => string
  /** Refuses to go on if its path has come to lead elsewhere. */
  readonly confirm: () => Promise<void>
  readonly sync: () => Promise<void>
}

/** Open files by their number: what is named through it is looked for in the open folder itself, not along its path. */
const byNumber = '/proc/self/fd'
const folderFlags = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0)

/**
 * Holds on to a folder by its real path. Between a check and the use of a path, links can be put anywhere in it; what
 * was opened cannot be swapped any more, so it is opened first and checked then.
 *
 * @example
 * await using folder = await anchored('/srv/app/notes')
 * await open(folder.inside('today.md'), constants.O_RDONLY | constants.O_NOFOLLOW)
 */
export async function anchored(real: string): Promise<Anchor> {
  const handle = await opened(real)
  const isNumbered =
    handle !== undefined &&
    (await access(`${byNumber}/${handle.fd}`).then(
      () => true,
      () => false,
    ))
  const confirm = async (): Promise<void> => {
    const leads = isNumbered ? await readlink(`${byNumber}/${handle.fd}`) : await samePath(real, handle)
    if (leads !== real) throw refusal('moved', real)
  }
  try {
    await confirm()
  } catch (error) {
    await handle?.close()
    throw told(error, real)
  }
  return {
    inside: (name) => (isNumbered ? `${byNumber}/${handle.fd}/${name}` : join(real, name)),
    confirm,
    sync: async () => handle?.sync(),
    [Symbol.asyncDispose]: async () => handle?.close(),
  }
}

/** Windows opens no folders. */
async function opened(real: string): Promise<FileHandle | undefined> {
  if (process.platform === 'win32') return undefined
  try {
    return await open(real, folderFlags)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOTDIR')) throw told(error, real)
    const isFile = await lstat(real).then(
      (state) => state.isFile(),
      () => false,
    )
    throw refusal(isFile ? 'file' : 'moved', real, error)
  }
}

/** Where open files have no paths: what the path leads to now, if that is the open folder. */
async function samePath(real: string, handle: FileHandle | undefined): Promise<string | undefined> {
  const [now, open] = [await lstat(real), await handle?.stat()]
  return open === undefined || isSame(now, open) ? realpath(real) : undefined
}

export const isSame = (one: Stats, other: Stats): boolean => one.dev === other.dev && one.ino === other.ino
