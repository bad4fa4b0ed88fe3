import { constants, type Dirent } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isObject } from '../../domain/checks.ts'
import { keyOf } from '../sessions.ts'
import {
  contents,
  damaged,
  decoded,
  hashOf,
  largest,
  metadataFile,
  type Packed,
  type PackedEntity,
  type PackedMessage,
  type PackedMetadata,
  type PackedRelationship,
  uncompressed,
  version,
} from './format.ts'
import { migrated } from './migrate.ts'
import { folderOf, sharedFile } from './write.ts'

/** The folder of a session, by names that are fit for a key. */
export type Folder = { readonly workspace: string; readonly session: string }
export type Skipped = { readonly session: string; readonly why: string }

const isLink = 'it is a link, and links are not followed'

/** The folders of a layout in order, and what stands among them that is none. */
export async function foldersIn(
  directory: string,
): Promise<{ readonly folders: readonly Folder[]; readonly skipped: readonly Skipped[] }> {
  const folders: Folder[] = []
  const skipped: Skipped[] = []
  for (const workspace of await entriesOf(join(directory, 'sessions'))) {
    if (workspace.isSymbolicLink()) skipped.push({ session: workspace.name, why: isLink })
    if (!workspace.isDirectory()) continue
    for (const session of await entriesOf(join(directory, 'sessions', workspace.name))) {
      const name = `${workspace.name}/${session.name}`
      const isFolder = session.isDirectory()
      if (isFolder && isFit(workspace.name, session.name))
        folders.push({ workspace: workspace.name, session: session.name })
      else if (isFolder || session.isSymbolicLink())
        skipped.push({ session: name, why: isFolder ? 'its name is none that a session may have' : isLink })
    }
  }
  return { folders, skipped }
}

async function entriesOf(folder: string): Promise<readonly Dirent[]> {
  const found = await readdir(folder, { withFileTypes: true }).catch((cause: unknown) => {
    throw damaged(`${folder} cannot be read. Name the directory that holds the folder sessions.`, cause)
  })
  return found.sort((left, right) => (left.name < right.name ? -1 : 1))
}

function isFit(workspace: string, session: string): boolean {
  try {
    keyOf(workspace, session)
    return true
  } catch {
    return false
  }
}

/** Which version a folder was written in; without a number it is the plain layout that came before them. */
export async function versionOf(directory: string, folder: Folder): Promise<number> {
  const found = (await metadataIn(directory, folder)).version ?? 0
  if (typeof found !== 'number' || !Number.isSafeInteger(found) || found < 0) throw damaged('its version is no number')
  return found
}

async function metadataIn(
  directory: string,
  { workspace, session }: Folder,
): Promise<Readonly<Record<string, unknown>>> {
  const metadata = parsed(await textIn(join(folderOf(directory, workspace, session), metadataFile)), metadataFile)
  if (!isObject(metadata)) throw damaged(`${metadataFile} is no object`)
  return metadata
}

/** A session from its folder, proved whole; an older version as it is now. */
export async function readFolder(directory: string, folder: Folder): Promise<Packed> {
  const { workspace, session } = folder
  const metadata = await metadataIn(directory, folder)
  const read = (name: string): Promise<string> => textIn(join(folderOf(directory, workspace, session), name))
  const [entitiesText, relationshipsText] = [await read(contents.entities), await read(contents.relationships)]
  const [entities, relationships] = [
    parsed(entitiesText, contents.entities),
    parsed(relationshipsText, contents.relationships),
  ]
  if ((await versionOf(directory, folder)) < version) return migrated(folder, metadata, entities, relationships)
  const transcript = await read(contents.transcript)
  const { hashes } = metadata as unknown as PackedMetadata
  for (const [name, text] of Object.entries({ entities: entitiesText, relationships: relationshipsText, transcript }))
    if (hashOf(text) !== (isObject(hashes) ? hashes[name as keyof typeof contents] : undefined))
      throw damaged(`${contents[name as keyof typeof contents]} is not what was written`)
  if (!isTime(metadata.created_at) || !isTime(metadata.saved_at))
    throw damaged(`${metadataFile} does not say when it was saved`)
  if (metadata.session !== session || metadata.workspace !== workspace)
    throw damaged('it was written as another session')
  const rows = listOf<PackedEntity>(entities, contents.entities, ['type', 'id'])
  return {
    metadata: metadata as unknown as PackedMetadata,
    entities: rows,
    relationships: listOf<PackedRelationship>(relationships, contents.relationships, ['from', 'to', 'type']),
    messages: listOf<PackedMessage>(linesOf(transcript), contents.transcript, ['id', 'role']),
    shared: await sharedIn(directory, rows),
  }
}

/** A list of objects that have these names, each a text that is not empty; what else they hold is checked where it is used. */
function listOf<T>(value: unknown, name: string, texts: readonly string[]): readonly T[] {
  const isOne = (one: unknown): boolean =>
    isObject(one) && texts.every((text) => typeof one[text] === 'string' && one[text] !== '')
  if (!Array.isArray(value) || !value.every(isOne)) throw damaged(`${name} holds something else than it should`)
  return value
}

const isTime = (value: unknown): boolean =>
  typeof value === 'string' && !Number.isNaN(Date.parse(value)) && new Date(value).toISOString() === value

const linesOf = (text: string): readonly unknown[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => parsed(line, contents.transcript))

async function sharedIn(directory: string, entities: readonly PackedEntity[]): Promise<ReadonlyMap<string, string>> {
  const shared = new Map<string, string>()
  for (const { shared: hash } of entities) {
    if (hash === undefined || shared.has(hash)) continue
    if (!/^[0-9a-f]{64}$/.test(hash)) throw damaged('it names a shared file that none may be called')
    const text = await textIn(sharedFile(directory, hash))
    if (hashOf(text) !== hash) throw damaged(`shared file reference ${hash} is not what was written`)
    shared.set(hash, text)
  }
  return shared
}

/** The text of a file, compressed or not. Links are not followed. */
async function textIn(file: string): Promise<string> {
  const bytes = await bytesOf(`${file}.zst`)
  try {
    return bytes === undefined ? decoded((await bytesOf(file)) ?? missing(file)) : await uncompressed(bytes)
  } catch (cause) {
    throw cause instanceof Error && cause.name === 'MemoryError'
      ? cause
      : damaged(`${nameOf(file)} cannot be unpacked`, cause)
  }
}

const nameOf = (file: string): string => file.split(/[\\/]/).at(-1) ?? file

const missing = (file: string): never => {
  throw damaged(`${nameOf(file)} is missing`)
}

async function bytesOf(file: string): Promise<Uint8Array | undefined> {
  // Without waiting: a pipe in the place of a file would keep whoever opens it for ever.
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (cause: NodeJS.ErrnoException) => {
      if (cause.code === 'ENOENT') return undefined
      throw damaged(`${nameOf(file)} cannot be read`, cause)
    },
  )
  try {
    if (handle === undefined) return undefined
    const found = await handle.stat()
    if (!found.isFile()) throw damaged(`${nameOf(file)} is no file`)
    if (found.size > largest) throw damaged(`${nameOf(file)} is larger than ${largest} bytes`)
    return await handle.readFile()
  } finally {
    await handle?.close()
  }
}

export function parsed(text: string, name: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw damaged(`${name} is no JSON`, cause)
  }
}
