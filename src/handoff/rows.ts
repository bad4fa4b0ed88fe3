import { hash } from 'node:crypto'
import type { Json, Tokens } from '../domain/entry.ts'
import { isObject } from '../domain/error.ts'
import type { Entity, EntityDraft, GraphChange, RelationshipDraft } from '../graph/types.ts'
import type { FileReference } from './fileReferences.ts'
import { type Category, type ContextItem, type Factors, itemCategories, type Preservation } from './item.ts'

// Graph rows of a saved session: ids, encoding and decoding. Clients write to the graph too, and directory layouts come
// from anywhere, so decoding validates every property.

export type WorkspaceState = {
  readonly activeProject?: string
  readonly enabledMcps?: readonly string[]
  readonly settings?: Json
}

/** Text contributed by a context provider. Data, never instructions. */
export type ProvidedContext = { readonly from: string; readonly text: string }

/** Preservation of a session when it was last restored, in total and per category. */
export type PreservationReport = Preservation & {
  readonly budget: Tokens
  readonly at: string
  readonly categories: Readonly<Partial<Record<Category, Preservation>>>
}

/** Details of the restore that created a session: `items` were shown, `left` were omitted. */
export type Restoration = {
  readonly from: string
  readonly budget: Tokens
  readonly tokens: Tokens
  readonly items: readonly string[]
  readonly left: readonly string[]
  readonly preservation: PreservationReport
  /** Hash that identifies the restored text when a client pastes it back. */
  readonly record?: string
}

/** Session as shown in a list. */
export type SavedSessionMetadata = {
  readonly sessionId: string
  readonly workspaceId: string
  readonly title: string
  readonly createdAt: string
  readonly savedAt: string
  readonly tokenCount: Tokens
  readonly messageCount: number
  readonly summary: string
  readonly continuedFrom?: string
  /** Only the lines needed to continue are stored, not the full transcript. */
  readonly keep?: 'needed'
  /** Messages were appended, but the session was never saved. */
  readonly unsaved?: true
  /** Held in memory only until the store works again. */
  readonly degraded?: 'not durable'
}

/** Summary of a conversation and the messages it quotes. */
export type Summary = { readonly text: string; readonly sources: readonly string[] }

/** Everything a save writes to the graph. */
export type SessionDraft = {
  readonly id: string
  readonly workspace: string
  readonly createdAt: string
  readonly savedAt: string
  readonly title: string
  /** Ids of the messages quoted by the title. */
  readonly titleSources: readonly string[]
  readonly tokens: Tokens
  readonly messages: number
  readonly continues?: string
  /** Only the needed lines of the messages are stored. */
  readonly keep?: 'needed'
  /** Ids of the stored messages and hashes of their full texts, by which a client's messages are recognised. */
  readonly messageHashes?: { readonly messages: readonly string[]; readonly hashes: readonly string[] }
  /** Restoration that created the session, stored unchanged. */
  readonly restored?: Json
  /** Summaries, shortest first. */
  readonly summaries: readonly Summary[]
  readonly items: readonly ContextItem[]
  readonly files: readonly FileReference[]
  readonly workspaceState?: WorkspaceState
  readonly provided: readonly ProvidedContext[]
  readonly references: readonly SessionReference[]
}

/** Other session that a session names, or that is about the same topic. */
export type SessionReference = { readonly session: string; readonly found: 'named' | 'search' }

export const conversationId = (session: string): string => `conversation_${session}`
export const originId = (session: string): string => `origin_${session}`
/** Id of the row that marks a session as started but not saved yet. */
export const draftMarkerId = (session: string): string => `begun_${session}`
export const hashesId = (session: string): string => `hashes_${session}`
export const stateId = (session: string): string => `workspace_state_${session}`
export const itemId = (session: string, item: string): string => `context_${session}_${item}`
/** Hash that distinguishes items and sources of a session in their row ids. */
export const shortHash = (text: string): string => hash('sha256', text).slice(0, 16)
/** File rows are per session, so that deleting one session does not affect another. */
export const fileId = (session: string, path: string): string =>
  `file_${hash('sha256', `${session}\n${path}`).slice(0, 32)}`
export const workspaceRowId = (workspace: string): string => `workspace_${workspace}`

/** Row of the workspace itself, which its sessions link to. */
export const workspaceEntity = (workspace: string, properties: EntityDraft['properties'] = {}): EntityDraft => ({
  type: 'workspace',
  id: workspaceRowId(workspace),
  properties: { workspace_id: workspace, ...properties },
})

/**
 * Encodes a session as entities and relationships. The same draft always gives the same rows.
 *
 * @example
 * toGraphRows(draft).entities.map(({ type }) => type) // ['session', 'session_origin', 'conversation', 'context_item', 'workspace_state']
 */
export function toGraphRows(draft: SessionDraft): Required<Pick<GraphChange, 'entities' | 'relationships'>> {
  const { id: session } = draft
  const entities = [
    sessionEntity(draft),
    originEntity(draft),
    conversationEntity(draft),
    ...draft.items.map((item) => itemEntity(session, item)),
    ...draft.files.map((file) => fileEntity(session, file)),
    ...draft.provided.map((provided) => providedEntity(session, provided)),
    ...(draft.messageHashes === undefined ? [] : [hashesEntity(session, draft.messageHashes)]),
  ]
  if (draft.workspaceState !== undefined) entities.push(stateEntity(draft.workspace, session, draft.workspaceState))
  return { entities, relationships: toRelationships(draft) }
}

/** Session row; `summary` is the shortest one. */
function sessionEntity(draft: SessionDraft): EntityDraft {
  const { id, continues, restored } = draft
  return {
    type: 'session',
    id,
    session: id,
    sources: [...new Set([...draft.titleSources, ...(draft.summaries[0]?.sources ?? [])])],
    properties: {
      created_at: draft.createdAt,
      saved_at: draft.savedAt,
      workspace_id: draft.workspace,
      title: draft.title,
      summary: draft.summaries[0]?.text ?? '',
      token_count: draft.tokens,
      message_count: draft.messages,
      ...(continues === undefined ? {} : { continued_from: continues }),
      ...(draft.keep === undefined ? {} : { keep: draft.keep }),
      ...(restored === undefined ? {} : { restored }),
    },
  }
}

/**
 * Properties of a session that quote no message. Survives a `forget` that deletes the session row and lets it be
 * rebuilt.
 */
const originEntity = ({ id, createdAt, continues, restored }: SessionDraft): EntityDraft => ({
  type: 'session_origin',
  id: originId(id),
  session: id,
  properties: {
    created_at: createdAt,
    ...(continues === undefined ? {} : { continued_from: continues }),
    ...(restored === undefined ? {} : { restored }),
  },
})

const conversationEntity = ({ id, summaries, tokens }: SessionDraft): EntityDraft => ({
  type: 'conversation',
  id: conversationId(id),
  session: id,
  sources: [...new Set(summaries.flatMap(({ sources }) => sources))],
  properties: { context: summaries.map(({ text }) => text), token_count: tokens },
})

const itemEntity = (session: string, item: ContextItem): EntityDraft => ({
  type: 'context_item',
  id: item.id,
  session,
  sources: item.sources,
  properties: {
    category: item.category,
    content: item.content,
    importance: item.importance,
    token_count: item.tokens,
    marked: item.marked,
    factors: { ...item.factors },
    sources: [...item.sources],
  },
})

const fileEntity = (session: string, file: FileReference): EntityDraft => ({
  type: 'file_reference',
  id: fileId(session, file.path),
  session,
  properties: { ...file },
})

const providedEntity = (session: string, { from, text }: ProvidedContext): EntityDraft => ({
  type: 'provided',
  id: `provided_${session}_${shortHash(from)}`,
  session,
  properties: { from, text },
})

/** Forgetting any of the messages erases the hashes of all. */
const hashesEntity = (
  session: string,
  { messages, hashes }: NonNullable<SessionDraft['messageHashes']>,
): EntityDraft => ({
  type: 'message_hashes',
  id: hashesId(session),
  session,
  sources: messages,
  properties: { hashes: [...hashes] },
})

/** Marks a message as important. One row per message, so that concurrent marks do not overwrite each other. */
export const markEntity = (session: string, message: string): EntityDraft => ({
  type: 'mark',
  id: `mark_${session}_${message}`,
  session,
  sources: [message],
  properties: { message },
})

const stateEntity = (
  workspace: string,
  session: string,
  { activeProject, enabledMcps, settings }: WorkspaceState,
): EntityDraft => ({
  type: 'workspace_state',
  id: stateId(session),
  session,
  properties: {
    workspace_id: workspace,
    ...(activeProject === undefined ? {} : { active_project: activeProject }),
    ...(enabledMcps === undefined ? {} : { enabled_mcps: [...enabledMcps] }),
    ...(settings === undefined ? {} : { settings }),
  },
})

function toRelationships(draft: SessionDraft): RelationshipDraft[] {
  const { id, workspace, items, files, workspaceState, continues, references } = draft
  const conversation = conversationId(id)
  const link = (
    from: string,
    type: string,
    to: string,
    properties: Readonly<Record<string, Json>> = {},
  ): RelationshipDraft => ({ from, type, to, properties, session: id })
  return [
    link(id, 'SESSION_IN_WORKSPACE', workspaceRowId(workspace)),
    link(id, 'SESSION_HAS_CONVERSATION', conversation),
    ...items.map((item) => link(conversation, 'CONVERSATION_REFERENCES_ITEM', item.id)),
    ...files.map(({ path }) => link(conversation, 'CONVERSATION_REFERENCES_FILE', fileId(id, path))),
    ...(workspaceState === undefined ? [] : [link(id, 'SESSION_HAS_WORKSPACE_STATE', stateId(id))]),
    ...(continues === undefined ? [] : [link(id, 'SESSION_CONTINUES', continues)]),
    ...references.map(({ session, found }) => link(id, 'SESSION_REFERENCES', session, { found })),
  ]
}

type Row = Pick<Entity, 'id' | 'properties'>

export const textProperty = ({ properties }: Row, name: string): string =>
  typeof properties[name] === 'string' ? properties[name] : ''
const countProperty = ({ properties }: Row, name: string): number => (isCount(properties[name]) ? properties[name] : 0)
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
const isFiniteNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
export const stringsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((element) => typeof element === 'string') : []

export function metadataFromRow(row: Entity): SavedSessionMetadata {
  const continuedFrom = textProperty(row, 'continued_from')
  return {
    sessionId: row.id,
    workspaceId: textProperty(row, 'workspace_id'),
    title: textProperty(row, 'title'),
    createdAt: textProperty(row, 'created_at'),
    savedAt: textProperty(row, 'saved_at'),
    tokenCount: countProperty(row, 'token_count'),
    messageCount: countProperty(row, 'message_count'),
    summary: textProperty(row, 'summary'),
    ...(continuedFrom === '' ? {} : { continuedFrom }),
    ...(row.properties.keep === 'needed' ? { keep: 'needed' } : {}),
  }
}

/** Decodes the summaries of a conversation, shortest first. */
export const summariesFromRow = (conversation: Row | undefined): readonly string[] =>
  stringsIn(conversation?.properties.context)

/** Decodes a context item; undefined if its category or importance is invalid. */
export function itemFromRow(row: Row): ContextItem | undefined {
  const { category, importance, factors, sources, marked } = row.properties
  if (!isCategory(category) || typeof importance !== 'number' || !(importance >= 1 && importance <= 10))
    return undefined
  return {
    id: row.id,
    category,
    content: textProperty(row, 'content'),
    importance,
    tokens: countProperty(row, 'token_count'),
    marked: marked === true,
    factors: parseFactors(factors),
    sources: stringsIn(sources),
  }
}

const isCategory = (value: unknown): value is Category => (itemCategories as readonly unknown[]).includes(value)

function parseFactors(value: unknown): Factors {
  const factor = (name: keyof Factors): number => (isObject(value) && isFiniteNumber(value[name]) ? value[name] : 0)
  const factors = {
    recency: factor('recency'),
    frequency: factor('frequency'),
    specificity: factor('specificity'),
    type: factor('type'),
    marking: factor('marking'),
  }
  return isObject(value) && isFiniteNumber(value.similarity) ? { ...factors, similarity: value.similarity } : factors
}

/** Decodes a file reference; undefined without a path. */
export function fileFromRow(row: Row): FileReference | undefined {
  const path = textProperty(row, 'path')
  if (path === '') return undefined
  return {
    path,
    hash: textProperty(row, 'hash'),
    last_modified: textProperty(row, 'last_modified'),
    size: countProperty(row, 'size'),
    lines: textProperty(row, 'lines'),
  }
}

export function workspaceStateFromRow(row: Row): WorkspaceState {
  const { active_project: activeProject, enabled_mcps: enabledMcps, settings } = row.properties
  return {
    ...(typeof activeProject === 'string' ? { activeProject } : {}),
    ...(Array.isArray(enabledMcps) ? { enabledMcps: stringsIn(enabledMcps) } : {}),
    ...(settings === undefined ? {} : { settings }),
  }
}

/** Decodes the restoration that created a session; undefined if the session was not created by a restore. */
export function restorationFromRow({ properties: { restored } }: Row): Restoration | undefined {
  if (!isObject(restored)) return undefined
  const { from, budget, tokens, items, left, record } = restored
  const preservation = parsePreservationReport(restored.preservation)
  if (typeof from !== 'string' || !isCount(budget) || !isCount(tokens) || preservation === undefined) return undefined
  return {
    from,
    budget,
    tokens,
    items: stringsIn(items),
    left: stringsIn(left),
    preservation,
    ...(typeof record === 'string' ? { record } : {}),
  }
}

function parsePreservationReport(value: unknown): PreservationReport | undefined {
  const total = parsePreservation(value)
  if (total === undefined || !isObject(value) || !isCount(value.budget) || typeof value.at !== 'string')
    return undefined
  const { budget, at, categories: byCategory } = value
  const entries = itemCategories.flatMap((category) => {
    const preservation = isObject(byCategory) ? parsePreservation(byCategory[category]) : undefined
    return preservation === undefined ? [] : [[category, preservation]]
  })
  return { ...total, budget, at, categories: Object.fromEntries(entries) }
}

const parsePreservation = (value: unknown): Preservation | undefined =>
  isObject(value) && isFiniteNumber(value.similarity) && isFiniteNumber(value.facts)
    ? { similarity: value.similarity, facts: value.facts }
    : undefined
