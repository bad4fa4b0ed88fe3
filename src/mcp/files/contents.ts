import { randomUUID } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, open, rename, rm } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { Millis } from '../../domain/entry.ts'
import { type Anchor, anchored, isSame } from './anchor.ts'
import { most, refusal } from './refusal.ts'

export type Contents = { readonly text: string; readonly size: number; readonly modified: Millis }

const unfollowed = constants.O_NOFOLLOW ?? 0
// A pipe without a writer is opened at once, and refused, instead of keeping its reader waiting.
const unwaiting = constants.O_NONBLOCK ?? 0

/** The text of a file by its real path. */
export async function readText(real: string): Promise<Contents> {
  await using folder = await anchored(dirname(real))
  const path = folder.inside(basename(real))
  const before = fileAt(await lstat(path), real)
  await using file = await open(path, constants.O_RDONLY | unfollowed | unwaiting)
  await folder.confirm()
  const state = fileAt(await file.stat(), real)
  if (!isSame(before, state)) throw refusal('moved', real)
  if (state.size > most.bytes) throw refusal('large', real)
  const bytes = await bytesOf(file)
  if (bytes.length > most.bytes) throw refusal('large', real)
  return { text: decoded(bytes, real), size: bytes.length, modified: Math.floor(state.mtimeMs) }
}

/** What a file holds, whatever size it claims to have, but hardly more than is allowed. */
async function bytesOf(file: FileHandle): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of file.createReadStream({ end: most.bytes, autoClose: false })) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

function decoded(bytes: Uint8Array, real: string): string {
  if (bytes.includes(0)) throw refusal('binary', real)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw refusal('binary', real, cause)
  }
}

/** Writes a file by its real path: it is there as it was or as it is to be, whenever the power goes. */
export async function writeText(
  real: string,
  text: string,
): Promise<{ readonly size: number; readonly modified: Millis }> {
  const bytes = Buffer.from(text.toWellFormed())
  if (bytes.length > most.bytes) throw refusal('large', real)
  await using folder = await anchored(dirname(real))
  const before = await lstat(folder.inside(basename(real))).catch(() => undefined)
  if (before !== undefined) fileAt(before, real)
  const unfinished = folder.inside(`.threadkeep-${randomUUID()}`)
  try {
    const modified = await fill(unfinished, bytes, before)
    await swapIn(folder, unfinished, basename(real))
    return { size: bytes.length, modified }
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  }
}

async function fill(path: string, bytes: Uint8Array, before: Stats | undefined): Promise<Millis> {
  await using file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | unfollowed, 0o666)
  // Whoever could read or run the file before still can, and nobody else.
  if (before !== undefined) await file.chmod(before.mode & 0o777)
  await file.writeFile(bytes)
  await file.sync()
  return Math.floor((await file.stat()).mtimeMs)
}

/** A name is replaced, never what it leads to: a link put there meanwhile is gone, and its target untouched. */
async function swapIn(folder: Anchor, unfinished: string, name: string): Promise<void> {
  await folder.confirm()
  await rename(unfinished, folder.inside(name))
  await folder.sync()
}

/** Refuses what is not a plain file; a link where there was none a moment ago is somebody's doing. */
function fileAt(state: Stats, real: string): Stats {
  if (state.isSymbolicLink()) throw refusal('moved', real)
  if (state.isDirectory()) throw refusal('folder', real)
  if (!state.isFile()) throw refusal('device', real)
  return state
}
