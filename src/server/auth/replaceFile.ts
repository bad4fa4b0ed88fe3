import { access, chown, constants, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { MemoryError } from '../../domain/error.ts'
import { acquireFileLock } from '../../stores/sqlite/fileLock.ts'

/**
 * Replaces a small file that only its owner may read. A lock file admits one process at a time, and the file holds
 * either its old or its new content, also after a power loss. `change` receives undefined when the file does not exist.
 *
 * @throws {MemoryError} `not-durable` when the file cannot be written; its old content stays.
 *
 * @example
 * await replaceFile('keys.json', (text = '[]') => JSON.stringify([...JSON.parse(text), key]))
 */
export async function replaceFile(file: string, change: (text: string | undefined) => string): Promise<void> {
  // A symbolic link stays; its target is replaced.
  const target = await realpath(file).catch(() => file)
  try {
    // Checked first: SQLite would only say that it cannot open the lock.
    await access(dirname(target), constants.W_OK)
    const lock = `${target}.lock`
    using _lock = await acquireFileLock(
      lock,
      `${file} is locked by another process for too long; nothing was changed. Try again.`,
    )
    await copyOwner(lock, target)
    await writeAtomically(target, change(await readIfPresent(target)))
  } catch (cause) {
    if (cause instanceof MemoryError) throw cause
    throw new MemoryError(
      'not-durable',
      `${file} cannot be written (${errorCode(cause)}); nothing was changed. Check its folder and permissions.`,
      { param: 'file', cause },
    )
  }
}

async function readIfPresent(file: string): Promise<string | undefined> {
  return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
}

async function writeAtomically(target: string, text: string): Promise<void> {
  const temporary = `${target}.unfinished`
  try {
    // A crashed writer may have left one, with another owner.
    await rm(temporary, { force: true })
    await using file = await open(temporary, 'wx', 0o600)
    await file.writeFile(text)
    await copyOwner(temporary, target)
    await file.sync()
    await rename(temporary, target)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  await syncFolder(dirname(target))
}

/** Keeps the owner of the replaced file, so that a server can still read what an administrator changed. */
async function copyOwner(file: string, target: string): Promise<void> {
  const before = await stat(target).catch(() => undefined)
  if (before === undefined || process.getuid === undefined || before.uid === process.getuid()) return
  await chown(file, before.uid, before.gid)
}

/** Makes the rename durable. Windows cannot open folders and persists names by itself. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  await using handle = await open(folder, 'r')
  await handle.sync()
}

const errorCode = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
