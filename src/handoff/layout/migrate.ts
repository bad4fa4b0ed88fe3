import { parseMessage } from '../../domain/chat.ts'
import { isObject } from '../../domain/checks.ts'
import { type Json, messageId } from '../../domain/entry.ts'
import type { FileReference } from '../fileReferences.ts'
import { type Category, type ContextItem, categories } from '../item.ts'
import { type SessionDraft, toGraphRows, workspaceStateFromRow } from '../rows.ts'
import { parseConversation } from '../save/conversation.ts'
import { clientItemId, createClientItem } from '../save/request.ts'
import { damagedError, type PackedSession } from './format.ts'
import { packMessage, packRows } from './write.ts'

type LegacyRow = { readonly type: string; readonly id: string; readonly properties: Readonly<Record<string, Json>> }

const maxTitleChars = 80
const defaultImportance = 5

/** Migrates the unversioned layout, which has no transcript: the messages are parsed from the conversation's text. */
export function migrateUnversioned(
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
    packMessage({ ...parseMessage(message, index, Date.parse(createdAt)), id: messageId(index + 1) }),
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
  const knownCategory = categories.includes(category as Category) ? (category as Category) : 'concept'
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
