import { constants, type Dirent } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { parseMessage } from '../../domain/chat.ts'
import { formatMessageId, type Json } from '../../domain/entry.ts'
import { isObject, MemoryError } from '../../domain/error.ts'
import type { FileReference } from '../fileReferences.ts'
import { type Category, type ContextItem, itemCategories } from '../item.ts'
import { type SessionDraft, toGraphRows, workspaceStateFromRow } from '../rows.ts'
import { parseConversation } from '../save/conversation.ts'
import { clientItemId, createClientItem } from '../save/request.ts'
import { isValidSessionId } from '../sessions.ts'
import {
  type ContentFile,
  contentFiles,
  damagedError,
  decodeText,
  decompressText,
  formatVersion,
  hashText,
  maxFileBytes,
  metadataFile,
  type PackedEntity,
  type PackedMessage,
  type PackedMetadata,
  type PackedRelationship,
  type PackedSession,
  sessionFolder,
  sharedFile,
} from './format.ts'
import { packMessage, packRows } from './write.ts'

/** Folder of a session; workspace and session form a valid key. */
export type SessionFolder = { readonly workspace: string; readonly session: string }
export type SkippedSession = { readonly session: string; readonly why: string }

const symbolicLink = 'symbolic links are not followed'

/** Finds the session folders of a directory in order, and reports links and invalid names. */
export async function findFolders(
  directory: string,
): Promise<{ readonly folders: readonly SessionFolder[]; readonly skipped: readonly SkippedSession[] }> {
  const folders: SessionFolder[] = []
  const skipped: SkippedSession[] = []
  for (const workspace of await readEntries(join(directory, 'sessions'))) {
    if (workspace.isSymbolicLink()) skipped.push({ session: workspace.name, why: symbolicLink })
    if (!workspace.isDirectory()) continue
    for (const session of await readEntries(join(directory, 'sessions', workspace.name))) {
      const name = `${workspace.name}/${session.name}`
      if (session.isSymbolicLink()) skipped.push({ session: name, why: symbolicLink })
      if (!session.isDirectory()) continue
      if (isValidSessionId(workspace.name, session.name))
        folders.push({ workspace: workspace.name, session: session.name })
      else skipped.push({ session: name, why: 'the folder name is not a valid session id' })
    }
  }
  return { folders, skipped }
}

async function readEntries(folder: string): Promise<readonly Dirent[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((cause: unknown) => {
    throw damagedError(`${folder} cannot be read. Name the directory that holds the folder sessions.`, cause)
  })
  return entries.sort((left, right) => (left.name < right.name ? -1 : 1))
}

/** Reads the format version of a folder; 0 for the unversioned layout that came before version 1. */
export async function readVersion(directory: string, folder: SessionFolder): Promise<number> {
  return versionOf(await readMetadata(directory, folder))
}

function versionOf({ version = 0 }: Readonly<Record<string, unknown>>): number {
  if (typeof version !== 'number' || !Number.isSafeInteger(version) || version < 0)
    throw damagedError('the version is not a number')
  return version
}

async function readMetadata(
  directory: string,
  { workspace, session }: SessionFolder,
): Promise<Readonly<Record<string, unknown>>> {
  const file = join(sessionFolder(directory, workspace, session), metadataFile)
  const metadata = parseJsonFile(await readTextFile(file), metadataFile)
  if (!isObject(metadata)) throw damagedError(`${metadataFile} is not an object`)
  return metadata
}

/** Reads a session from its folder, verifies its checksums and migrates older versions. */
export async function readFolder(directory: string, folder: SessionFolder): Promise<PackedSession> {
  const metadata = await readMetadata(directory, folder)
  const path = sessionFolder(directory, folder.workspace, folder.session)
  const readContent = (name: ContentFile): Promise<string> => readTextFile(join(path, contentFiles[name]))
  const entitiesText = await readContent('entities')
  const relationshipsText = await readContent('relationships')
  const entities = parseJsonFile(entitiesText, contentFiles.entities)
  const relationships = parseJsonFile(relationshipsText, contentFiles.relationships)
  if (versionOf(metadata) < formatVersion) return migrateUnversioned(folder, metadata, entities, relationships)
  const transcript = await readContent('transcript')
  verifyMetadata(metadata, folder, { entities: entitiesText, relationships: relationshipsText, transcript })
  const packedEntities = parseList<PackedEntity>(entities, contentFiles.entities, ['type', 'id'])
  return {
    metadata: metadata as unknown as PackedMetadata,
    entities: packedEntities,
    relationships: parseList<PackedRelationship>(relationships, contentFiles.relationships, ['from', 'to', 'type']),
    messages: parseList<PackedMessage>(parseJsonLines(transcript), contentFiles.transcript, ['id', 'role']),
    shared: await readShared(directory, packedEntities),
  }
}

/** Checks the checksums of the content files, the times, and that the metadata is that of this folder. */
function verifyMetadata(
  { hashes, created_at, saved_at, session, workspace }: Readonly<Record<string, unknown>>,
  folder: SessionFolder,
  texts: Readonly<Record<ContentFile, string>>,
): void {
  for (const name of Object.keys(texts) as ContentFile[])
    if (hashText(texts[name]) !== (isObject(hashes) ? hashes[name] : undefined))
      throw damagedError(`${contentFiles[name]} does not match its checksum`)
  if (!isIsoTime(created_at) || !isIsoTime(saved_at))
    throw damagedError(`${metadataFile} has no valid created_at and saved_at`)
  if (session !== folder.session || workspace !== folder.workspace)
    throw damagedError(`${metadataFile} names another session`)
}

/**
 * Checks that a value is a list of objects with non-empty string fields. Other fields are checked where they are used.
 */
function parseList<T>(value: unknown, file: string, stringFields: readonly string[]): readonly T[] {
  const isValid = (element: unknown): boolean =>
    isObject(element) && stringFields.every((field) => typeof element[field] === 'string' && element[field] !== '')
  if (!Array.isArray(value) || !value.every(isValid)) throw damagedError(`${file} has an invalid structure`)
  return value
}

const isIsoTime = (value: unknown): boolean =>
  typeof value === 'string' && !Number.isNaN(Date.parse(value)) && new Date(value).toISOString() === value

const parseJsonLines = (text: string): readonly unknown[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => parseJsonFile(line, contentFiles.transcript))

async function readShared(directory: string, entities: readonly PackedEntity[]): Promise<ReadonlyMap<string, string>> {
  const shared = new Map<string, string>()
  for (const { shared: hash } of entities) {
    if (hash === undefined || shared.has(hash)) continue
    if (!/^[0-9a-f]{64}$/.test(hash)) throw damagedError('the name of a shared file reference is not a hash')
    const text = await readTextFile(sharedFile(directory, hash))
    if (hashText(text) !== hash) throw damagedError(`shared file reference ${hash} does not match its checksum`)
    shared.set(hash, text)
  }
  return shared
}

/** Reads a text file, compressed or not. */
async function readTextFile(file: string): Promise<string> {
  const compressed = await readBytes(`${file}.zst`)
  try {
    if (compressed !== undefined) return await decompressText(compressed)
    const bytes = await readBytes(file)
    if (bytes === undefined) throw damagedError(`${basename(file)} is missing`)
    return decodeText(bytes)
  } catch (cause) {
    throw cause instanceof MemoryError ? cause : damagedError(`${basename(file)} cannot be decoded`, cause)
  }
}

async function readBytes(file: string): Promise<Uint8Array | undefined> {
  // O_NONBLOCK: opening a named pipe would otherwise block forever.
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (cause: NodeJS.ErrnoException) => {
      if (cause.code === 'ENOENT') return undefined
      throw damagedError(`${basename(file)} cannot be read`, cause)
    },
  )
  try {
    if (handle === undefined) return undefined
    const stat = await handle.stat()
    if (!stat.isFile()) throw damagedError(`${basename(file)} is not a regular file`)
    if (stat.size > maxFileBytes) throw damagedError(`${basename(file)} is larger than ${maxFileBytes} bytes`)
    return await handle.readFile()
  } finally {
    await handle?.close()
  }
}

export function parseJsonFile(text: string, file: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw damagedError(`${file} is not valid JSON`, cause)
  }
}

type LegacyRow = { readonly type: string; readonly id: string; readonly properties: Readonly<Record<string, Json>> }

const maxTitleChars = 80
const defaultImportance = 5

/** Migrates the unversioned layout, which has no transcript: the messages are parsed from the conversation's text. */
function migrateUnversioned(
  folder: { readonly workspace: string; readonly session: string },
  metadata: Readonly<Record<string, unknown>>,
  entities: unknown,
  relationships: unknown,
): PackedSession {
  const rows = parseRows(entities)
  const ofType = (type: string): readonly LegacyRow[] => rows.filter((row) => row.type === type)
  const [[conversation], [session], [state]] = [ofType('conversation'), ofType('session'), ofType('workspace_state')]
  if (conversation === undefined) throw damagedError('the conversation entity is missing')
  const createdAt = parseTime(session?.properties.created_at ?? metadata.created_at)
  const messages = parseConversation(toText(conversation.properties.context)).map((message, index) =>
    packMessage({ ...parseMessage(message, index, Date.parse(createdAt)), id: formatMessageId(index + 1) }),
  )
  const messageIds = messages.map(({ id }) => id)
  const summary = toText(session?.properties.summary)
  const continues = findPredecessor(relationships, folder.session)
  const draft: SessionDraft = {
    id: folder.session,
    workspace: folder.workspace,
    createdAt,
    savedAt: createdAt,
    title: (summary === '' ? (messages[0]?.content ?? folder.session) : summary).slice(0, maxTitleChars),
    tokens: toNumber(session?.properties.token_count),
    messages: messages.length,
    summaries: summary === '' ? [] : [{ text: summary, sources: messageIds }],
    titleSources: messageIds,
    items: ofType('context_item').map((row) => toItem(folder.session, row)),
    files: ofType('file_reference').map(toFileReference),
    provided: [],
    references: [],
    ...(state === undefined ? {} : { workspaceState: workspaceStateFromRow(state) }),
    ...(continues === undefined ? {} : { continues }),
  }
  const packedRows = toGraphRows(draft)
  return packRows({ ...folder, createdAt, savedAt: createdAt }, packedRows.entities, packedRows.relationships, messages)
}

/** Parses a list of entities, or an object with a list `entities`. Invalid entities are dropped. */
function parseRows(value: unknown): readonly LegacyRow[] {
  const list = isObject(value) ? value.entities : value
  if (!Array.isArray(list)) throw damagedError('entities.json is not a list')
  return list.filter(
    (row): row is LegacyRow =>
      isObject(row) && typeof row.type === 'string' && typeof row.id === 'string' && isObject(row.properties),
  )
}

function findPredecessor(value: unknown, session: string): string | undefined {
  const list = isObject(value) ? value.relationships : value
  const link = (Array.isArray(list) ? list : []).find(
    (entry) => isObject(entry) && entry.type === 'SESSION_CONTINUES' && [entry.from, entry.from_id].includes(session),
  )
  const to = isObject(link) ? (link.to ?? link.to_id) : undefined
  return typeof to === 'string' && /^session_[\w+\-.@]{1,100}$/.test(to) ? to : undefined
}

function toItem(session: string, { properties }: LegacyRow): ContextItem {
  const { category, importance, token_count } = properties
  const content = toText(properties.content)
  const knownCategory = itemCategories.includes(category as Category) ? (category as Category) : 'concept'
  const clampedImportance = Math.min(10, Math.max(1, toNumber(importance) || defaultImportance))
  return {
    ...createClientItem(session, knownCategory, content, clampedImportance, toNumber(token_count)),
    // Hashed with the original category, so that an unknown one does not collide with `concept`.
    id: clientItemId(session, `${category}`, content),
  }
}

const toFileReference = ({ properties }: LegacyRow): FileReference => ({
  path: toText(properties.path),
  hash: toText(properties.hash),
  last_modified: toText(properties.last_modified),
  size: 0,
  lines: '',
})

/** Converts a number that may be stored as text. */
const toNumber = (value: unknown): number =>
  Number.isFinite(Number(value)) && value !== null && value !== '' ? Number(value ?? 0) : 0
const toText = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value)

function parseTime(value: unknown): string {
  const time = typeof value === 'string' || typeof value === 'number' ? new Date(value).getTime() : Number.NaN
  if (Number.isNaN(time)) throw damagedError('the session has no valid created_at')
  return new Date(time).toISOString()
}
