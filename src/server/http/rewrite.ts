import { access, chown, constants, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { MemoryError } from '../../domain/error.ts'
import { takeTurn } from '../../stores/sqlite/turn.ts'

/**
 * Replaces a small file that only its owner may read. One process at a time reads, changes and writes it, and it is there
 * either as it was or as it is to be, whenever the power goes; a file that is not there yet is `undefined`.
 *
 * @example
 * await rewrite('keys.json', (text = '[]') => JSON.stringify([...JSON.parse(text), key]))
 */
export async function rewrite(file: string, change: (text: string | undefined) => string): Promise<void> {
  // Where the name is a link, what it leads to is replaced, and the link stays.
  const target = await realpath(file).catch(() => file)
  try {
    // Asked first, because SQLite would only tell that it cannot open the lock.
    await access(dirname(target), constants.W_OK)
    const lock = `${target}.lock`
    using _turn = await takeTurn(
      lock,
      `${file} is being written by another process for too long; nothing was changed. Try again.`,
    )
    await keepOwner(lock, target)
    await replace(target, change(await contentOf(target)))
  } catch (cause) {
    if (cause instanceof MemoryError) throw cause
    throw new MemoryError(
      'not-durable',
      `${file} cannot be written (${reasonOf(cause)}); nothing was changed. Look at its folder and its permissions.`,
      {
        param: 'file',
        cause,
      },
    )
  }
}

/** The text of a file; `undefined` if there is none. */
async function contentOf(file: string): Promise<string | undefined> {
  return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
}

async function replace(target: string, text: string): Promise<void> {
  const unfinished = `${target}.unfinished`
  try {
    // What a writer left that died is of no use, and may have another owner.
    await rm(unfinished, { force: true })
    await using file = await open(unfinished, 'wx', 0o600)
    await file.writeFile(text)
    await keepOwner(unfinished, target)
    await file.sync()
    await rename(unfinished, target)
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  }
  await syncFolder(dirname(target))
}

/** What an administrator changes, the server must still be able to read. */
async function keepOwner(made: string, target: string): Promise<void> {
  const before = await stat(target).catch(() => undefined)
  if (before === undefined || process.getuid === undefined || before.uid === process.getuid()) return
  await chown(made, before.uid, before.gid)
}

/** The new name is on the disk too. */
async function syncFolder(folder: string): Promise<void> {
  // Windows opens no folders, and keeps their names by itself.
  if (process.platform === 'win32') return
  await using handle = await open(folder, 'r')
  await handle.sync()
}

const reasonOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : 'an unknown fault'
