import { randomUUID } from 'node:crypto'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Message } from '../../domain/entry.ts'
import { allRows } from '../../graph/query.ts'
import type { Entity, EntityDraft, RelationshipDraft } from '../../graph/types.ts'
import { toCanonicalJson } from '../../portable/canonical.ts'
import { metadataFromRow } from '../rows.ts'
import { sessionKey } from '../sessions.ts'
import type { HandoffDeps } from '../settings.ts'
import {
  type ContentFile,
  compressText,
  contentFiles,
  formatVersion,
  hashText,
  metadataFile,
  type PackedEntity,
  type PackedMessage,
  type PackedRelationship,
  type PackedSession,
  sessionFolder,
  sharedFile,
} from './format.ts'

/** Reads a session in the form of its folder. The same session gives the same texts in every store. */
export async function packSession(deps: HandoffDeps, workspace: string, row: Entity): Promise<PackedSession> {
  const { graph, memory } = deps
  const { id: session } = row
  const query = { session, sort: [{ by: 'id' }], limit: allRows }
  const { entities } = await graph.queryEntities(workspace, query)
  const { relationships } = await graph.queryRelationships(workspace, query)
  const messages = (await memory.transcript(sessionKey(workspace, session))).map(packMessage)
  const { createdAt, savedAt } = metadataFromRow(row)
  return packRows({ workspace, session, createdAt, savedAt }, entities, relationships, messages)
}

type SessionIdentity = {
  readonly workspace: string
  readonly session: string
  readonly createdAt: string
  readonly savedAt: string
}

/** Sorts the rows of a session and moves file references to the shared folder. */
export function packRows(
  { workspace, session, createdAt, savedAt }: SessionIdentity,
  entityDrafts: readonly EntityDraft[],
  relationshipDrafts: readonly RelationshipDraft[],
  messages: readonly PackedMessage[],
): PackedSession {
  const shared = new Map<string, string>()
  // Draft markers are not exported: the messages imply them.
  const sortedDrafts = entityDrafts.filter(({ type }) => type !== 'session_begun').sort(compareById)
  const entities = sortedDrafts.map(({ type, id, properties }): PackedEntity => {
    if (type !== 'file_reference') return { type, id, properties }
    const text = `${toCanonicalJson(properties)}\n`
    shared.set(hashText(text), text)
    return { type, id, shared: hashText(text) }
  })
  const relationships = relationshipDrafts
    .map(({ from, to, type, properties = {} }) => ({ from, to, type, properties }))
    .sort(compareCanonical)
  const texts = formatContents({ entities, relationships, messages })
  return {
    metadata: {
      format: 'threadkeep-handoff',
      version: formatVersion,
      session,
      workspace,
      created_at: createdAt,
      saved_at: savedAt,
      messages: messages.length,
      hashes: {
        entities: hashText(texts.entities),
        relationships: hashText(texts.relationships),
        transcript: hashText(texts.transcript),
      },
    },
    entities,
    relationships,
    messages,
    shared,
  }
}

/** Formats the content files of a session. */
const formatContents = ({
  entities,
  relationships,
  messages,
}: Pick<PackedSession, 'entities' | 'relationships' | 'messages'>): Readonly<Record<ContentFile, string>> => ({
  entities: formatList(entities),
  relationships: formatList(relationships),
  transcript: messages.map((message) => `${toCanonicalJson(message)}\n`).join(''),
})

/** Formats a list as JSON with one value per line, so that a change affects one line. */
const formatList = (values: readonly unknown[]): string =>
  values.length === 0 ? '[]\n' : `[\n${values.map(toCanonicalJson).join(',\n')}\n]\n`

const compareById = (left: EntityDraft, right: EntityDraft): number => (left.id < right.id ? -1 : 1)
const compareCanonical = (left: PackedRelationship, right: PackedRelationship): number =>
  toCanonicalJson(left) < toCanonicalJson(right) ? -1 : 1

/** Copies the exported fields of a message. */
export const packMessage = ({
  id,
  at,
  role,
  content,
  name,
  toolCalls,
  toolCallId,
}: Pick<Message, 'id' | 'at' | 'role' | 'content' | 'name' | 'toolCalls' | 'toolCallId'>): PackedMessage => ({
  id,
  at,
  role,
  content,
  ...(name === undefined ? {} : { name }),
  ...(toolCalls === undefined ? {} : { calls: toolCalls }),
  ...(toolCallId === undefined ? {} : { answers: toolCallId }),
})

/**
 * Writes a session to its folder, metadata last: an interrupted write leaves the previous state or detectable damage.
 */
export async function writeFolder(directory: string, session: PackedSession, compress: boolean): Promise<void> {
  const { workspace, session: id } = session.metadata
  const folder = sessionFolder(directory, workspace, id)
  for (const [hash, text] of session.shared) await writeTextFile(sharedFile(directory, hash), text, compress)
  for (const [name, text] of Object.entries(formatContents(session)))
    await writeTextFile(join(folder, contentFiles[name as ContentFile]), text, compress)
  await writeTextFile(join(folder, metadataFile), `${toCanonicalJson(session.metadata)}\n`, compress)
}

/** Writes a file atomically and removes its other variant, compressed or not. */
async function writeTextFile(file: string, text: string, compress: boolean): Promise<void> {
  const [target, otherVariant] = compress ? [`${file}.zst`, file] : [file, `${file}.zst`]
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const temporary = `${target}.${randomUUID()}.unfinished`
  try {
    const handle = await open(temporary, 'wx', 0o600)
    try {
      await handle.writeFile(compress ? await compressText(text) : text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, target)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  await rm(otherVariant, { force: true })
}
