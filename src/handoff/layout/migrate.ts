import { hash } from 'node:crypto'
import { type Incoming, parseMessage } from '../../domain/chat.ts'
import { isObject } from '../../domain/checks.ts'
import { type Json, messageId } from '../../domain/entry.ts'
import { type Category, type ContextItem, categories } from '../item.ts'
import { stateOf } from '../records.ts'
import type { FileReference } from '../references.ts'
import { type Draft, itemId, rowsOf } from '../save/rows.ts'
import { turnsOf } from '../save/turns.ts'
import { damaged, type Packed, type PackedMessage } from './format.ts'
import { assembled } from './pack.ts'

type Row = { readonly type: string; readonly id: string; readonly properties: Readonly<Record<string, Json>> }

/**
 * A session of the plain layout that came first, without versions and transcripts: the conversation is one text, and what
 * was said is read from it.
 */
export function migrated(
  folder: { readonly workspace: string; readonly session: string },
  metadata: Readonly<Record<string, unknown>>,
  entities: unknown,
  relationships: unknown,
): Packed {
  const rows = rowsIn(entities)
  const of = (type: string): readonly Row[] => rows.filter((row) => row.type === type)
  const conversation = of('conversation')[0]
  if (conversation === undefined) throw damaged('it has no conversation')
  const begun = timeOf(of('session')[0]?.properties.created_at ?? metadata.created_at)
  const messages = turnsOf(textOf(conversation.properties.context)).map((said, at) => messageOf(said, at, begun))
  const summary = textOf(of('session')[0]?.properties.summary)
  const state = of('workspace_state')[0]
  const continues = continuedBy(relationships, folder.session)
  const draft: Draft = {
    id: folder.session,
    workspace: folder.workspace,
    createdAt: begun,
    savedAt: begun,
    title: summary === '' ? (messages[0]?.content.slice(0, 80) ?? folder.session) : summary.slice(0, 80),
    tokens: numberOf(of('session')[0]?.properties.token_count),
    messages: messages.length,
    levels: summary === '' ? [] : [{ text: summary, sources: messages.map(({ id }) => id) }],
    titleSources: messages.map(({ id }) => id),
    items: of('context_item').map((row) => itemFrom(folder.session, row)),
    files: of('file_reference').map(fileFrom),
    provided: [],
    references: [],
    ...(state === undefined ? {} : { state: stateOf(state) }),
    ...(continues === undefined ? {} : { continues }),
  }
  const { entities: packedRows, relationships: links } = rowsOf(draft)
  return assembled({ ...folder, createdAt: begun, savedAt: begun }, packedRows, links, messages)
}

/** A list of entities, or an object with one. */
function rowsIn(value: unknown): readonly Row[] {
  const list = isObject(value) ? value.entities : value
  if (!Array.isArray(list)) throw damaged('its entities are no list')
  return list.filter(
    (row): row is Row =>
      isObject(row) && typeof row.type === 'string' && typeof row.id === 'string' && isObject(row.properties),
  )
}

function continuedBy(value: unknown, session: string): string | undefined {
  const list = isObject(value) ? value.relationships : value
  const found = (Array.isArray(list) ? list : []).find(
    (one) => isObject(one) && one.type === 'SESSION_CONTINUES' && [one.from, one.from_id].includes(session),
  )
  const to = isObject(found) ? (found.to ?? found.to_id) : undefined
  return typeof to === 'string' && /^session_[\w+\-.@]{1,100}$/.test(to) ? to : undefined
}

function messageOf(said: Incoming, at: number, begun: string): PackedMessage {
  const { role, content, name, calls, answers, at: time } = parseMessage(said, at, Date.parse(begun))
  const more = {
    ...(name === undefined ? {} : { name }),
    ...(calls === undefined ? {} : { calls }),
    ...(answers === undefined ? {} : { answers }),
  }
  return { id: messageId(at + 1), at: time, role, content, ...more }
}

function itemFrom(session: string, { properties }: Row): ContextItem {
  const { category, importance, token_count } = properties
  const content = textOf(properties.content)
  return {
    id: itemId(session, `given_${hash('sha256', `${category}\n${content}`).slice(0, 16)}`),
    category: categories.includes(category as Category) ? (category as Category) : 'concept',
    content,
    importance: Math.min(10, Math.max(1, numberOf(importance) || 5)),
    tokens: numberOf(token_count),
    marked: false,
    factors: { recency: 0, frequency: 0, specificity: 0, type: 0, marking: 0 },
    sources: [],
  }
}

const fileFrom = ({ properties }: Row): FileReference => ({
  path: textOf(properties.path),
  hash: textOf(properties.hash),
  last_modified: textOf(properties.last_modified),
  size: 0,
  lines: '',
})

/** Numbers stood there as text too. */
const numberOf = (value: unknown): number =>
  Number.isFinite(Number(value)) && value !== null && value !== '' ? Number(value ?? 0) : 0
const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value)

function timeOf(value: unknown): string {
  const at = typeof value === 'string' || typeof value === 'number' ? new Date(value).getTime() : Number.NaN
  if (Number.isNaN(at)) throw damaged('it does not say when it was created')
  return new Date(at).toISOString()
}
