import { createWriteStream, existsSync, rmSync, statSync } from 'node:fs'
import { link, open, rename } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { MemoryError } from '../../domain/error.ts'
import { option } from './help.ts'

export type OutFlags = { readonly force?: boolean }

export const forceOption = () => option('--force', 'replace an existing file')

/** Throws `bad-option` if writing to a file would replace it, before any work is done. */
export function checkOutFile(file: string, param: string, { force }: OutFlags): void {
  if (existsSync(file) && statSync(file).isDirectory())
    throw new MemoryError('bad-option', `${file} is a folder. Name a file with --${param}.`, { param })
  if (force !== true && isRegularFile(file)) throw existingFileError(file, param)
}

const existingFileError = (file: string, param: string, cause?: unknown): MemoryError =>
  new MemoryError('bad-option', `${file} exists. Choose another file with --${param}, or replace it with --force.`, {
    param,
    cause,
  })

const isRegularFile = (file: string): boolean => existsSync(file) && statSync(file).isFile()

type Chunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/** Writes a file that `createOutFile` guards. Pipes and devices are written to directly. */
export async function writeOutFile(chunks: Chunks, file: string, param: string, flags: OutFlags): Promise<void> {
  if (existsSync(file) && !statSync(file).isFile() && !statSync(file).isDirectory())
    return pipeline(chunks, createWriteStream(file, { flags: 'a' }))
  await createOutFile(file, param, flags, async (temporary) => {
    // Opened first: a stream that fails before its file is open would create it afterwards.
    const handle = await open(temporary, 'wx', 0o600)
    await pipeline(chunks, handle.createWriteStream({ flush: true }))
  })
}

/**
 * Lets `write` create a temporary file and moves it to its name, so that the target never holds a partial result. Never
 * replaces a file without `force`, not even one that was created meanwhile.
 */
export async function createOutFile(
  file: string,
  param: string,
  flags: OutFlags,
  write: (temporary: string) => Promise<void>,
): Promise<void> {
  checkOutFile(file, param, flags)
  const temporary = `${file}.${process.pid}.unfinished`
  const removeTemporary = (): void => rmSync(temporary, { force: true })
  // Also removed when the process is interrupted.
  process.once('exit', removeTemporary)
  try {
    await write(temporary)
    if (flags.force === true) await rename(temporary, file)
    else await moveToNewFile(temporary, file, param)
  } catch (error) {
    throw toWriteError(error, file, param)
  } finally {
    removeTemporary()
    process.off('exit', removeTemporary)
  }
}

/** Moves a file to a name that must be free. A hard link fails if the name exists; a rename would replace it. */
async function moveToNewFile(from: string, to: string, param: string): Promise<void> {
  try {
    await link(from, to)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw existingFileError(to, param, error)
    // Some file systems have no hard links.
    if (existsSync(to)) throw existingFileError(to, param, error)
    await rename(from, to)
  }
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code

function toWriteError(error: unknown, file: string, param: string): unknown {
  const code = codeOf(error)
  if (!['ENOENT', 'EACCES', 'ENOTDIR', 'EROFS', 'EPERM'].includes(code ?? '')) return error
  return new MemoryError('bad-option', `Cannot write ${file} (${code}). Name a file in an existing folder.`, {
    param,
    cause: error,
  })
}
