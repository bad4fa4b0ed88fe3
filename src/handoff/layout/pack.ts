import type { Message } from '../../domain/entry.ts'
import type { Entity, EntityDraft, RelationshipDraft } from '../../graph/graph.ts'
import { canonical } from '../../portable/canonical.ts'
import { every } from '../every.ts'
import { metadataOf } from '../records.ts'
import { keyOf } from '../sessions.ts'
import type { HandoffParts } from '../settings.ts'
import {
  type contents,
  hashOf,
  linesText,
  listText,
  type Packed,
  type PackedEntity,
  type PackedMessage,
  type PackedRelationship,
  version,
} from './format.ts'

/** A session as its folder holds it: the same session gives the same texts, wherever it is kept. */
export async function packed(parts: HandoffParts, workspace: string, row: Entity): Promise<Packed> {
  const { graph, memory } = parts
  const { id: session } = row
  const sort = [{ by: 'id' }] as const
  const entities = await every(async (page) => (await graph.entities(workspace, { session, sort, ...page })).entities)
  const links = await every(
    async (page) => (await graph.relationships(workspace, { session, sort, ...page })).relationships,
  )
  const messages = (await memory.transcript(keyOf(workspace, session))).map(packedMessage)
  const { createdAt, savedAt } = metadataOf(row)
  return assembled({ workspace, session, createdAt, savedAt }, entities, links, messages)
}

type About = {
  readonly workspace: string
  readonly session: string
  readonly createdAt: string
  readonly savedAt: string
}

/** Puts rows in order, and what is said of files into the shared folder. */
export function assembled(
  about: About,
  entities: readonly EntityDraft[],
  links: readonly RelationshipDraft[],
  messages: readonly PackedMessage[],
): Packed {
  const shared = new Map<string, string>()
  // That it was begun is told by what was said in it.
  const own = entities.filter(({ type }) => type !== 'session_begun').sort(byId)
  const rows = own.map(({ type, id, properties }): PackedEntity => {
    if (type !== 'file_reference') return { type, id, properties }
    const text = `${canonical(properties)}\n`
    shared.set(hashOf(text), text)
    return { type, id, shared: hashOf(text) }
  })
  const relationships = links
    .map(({ from, to, type, properties = {} }) => ({ from, to, type, properties }))
    .sort(byEnds)
  const texts = textsOf({ entities: rows, relationships, messages })
  const hashes = {
    entities: hashOf(texts.entities),
    relationships: hashOf(texts.relationships),
    transcript: hashOf(texts.transcript),
  }
  const { workspace, session, createdAt, savedAt } = about
  return {
    metadata: {
      format: 'threadkeep-handoff',
      version,
      session,
      workspace,
      created_at: createdAt,
      saved_at: savedAt,
      messages: messages.length,
      hashes,
    },
    entities: rows,
    relationships,
    messages,
    shared,
  }
}

/** The texts of a session's files, without its metadata, which comes last. */
export const textsOf = ({
  entities,
  relationships,
  messages,
}: Pick<Packed, 'entities' | 'relationships' | 'messages'>): Readonly<Record<keyof typeof contents, string>> => ({
  entities: listText(entities),
  relationships: listText(relationships),
  transcript: linesText(messages),
})

const byId = (left: EntityDraft, right: EntityDraft): number => (left.id < right.id ? -1 : 1)
const byEnds = (left: PackedRelationship, right: PackedRelationship): number =>
  canonical(left) < canonical(right) ? -1 : 1

const packedMessage = ({ id, at, role, content, name, calls, answers }: Message): PackedMessage => ({
  id,
  at,
  role,
  content,
  ...(name === undefined ? {} : { name }),
  ...(calls === undefined ? {} : { calls }),
  ...(answers === undefined ? {} : { answers }),
})
