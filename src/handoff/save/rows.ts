import { hash } from 'node:crypto'
import type { Json, Tokens } from '../../domain/entry.ts'
import type { EntityDraft, GraphChange, RelationshipDraft } from '../../graph/graph.ts'
import type { ContextItem } from '../item.ts'
import type { Provided, WorkspaceState } from '../records.ts'
import type { FileReference } from '../references.ts'
import type { Level } from './levels.ts'

/** What is known of a session besides what was made of its messages. */
export type SessionRow = {
  readonly id: string
  readonly createdAt: string
  readonly savedAt: string
  readonly title: string
  readonly tokens: Tokens
  readonly messages: number
  readonly continues?: string
  /** Kept as it is: what it was restored with. */
  readonly restored?: Json
}

/** Everything a save writes beside what was said. */
export type Draft = SessionRow & {
  readonly workspace: string
  readonly levels: readonly Level[]
  /** The messages that its title quotes. */
  readonly titleSources: readonly string[]
  readonly items: readonly ContextItem[]
  readonly files: readonly FileReference[]
  readonly state?: WorkspaceState
  /** What other servers said when it was saved. */
  readonly provided: readonly Provided[]
  /** Other sessions it speaks of, or that are about the same. */
  readonly references: readonly { readonly session: string; readonly found: 'named' | 'search' }[]
}

/** The ids of what belongs to a session. */
export const conversationId = (session: string): string => `conversation_${session}`
export const originId = (session: string): string => `origin_${session}`
/** Notes that a session was begun and not saved yet. */
export const begunId = (session: string): string => `begun_${session}`
export const stateId = (session: string): string => `workspace_state_${session}`
export const itemId = (session: string, item: string): string => `context_${session}_${item}`
/** One for each session: what one forgets, another may still speak of. */
export const fileId = (session: string, path: string): string =>
  `file_${hash('sha256', `${session}\n${path}`).slice(0, 32)}`
/** The row of the workspace itself, which its sessions hang on to. */
export const workspaceRowId = (workspace: string): string => `workspace_${workspace}`

/**
 * A saved session as entities and relationships; the same draft always gives the same rows.
 *
 * @example
 * rowsOf(draft).entities.map(({ type }) => type) // ['session', 'session_origin', 'conversation', 'context_item', 'workspace_state']
 */
export function rowsOf(draft: Draft): Required<Pick<GraphChange, 'entities' | 'relationships'>> {
  const { id: session } = draft
  const entities = [
    sessionEntity(draft),
    originEntity(draft),
    conversationEntity(draft),
    ...draft.items.map((item) => itemEntity(session, item)),
    ...draft.files.map((file) => fileEntity(session, file)),
    ...draft.provided.map((one) => providedEntity(session, one)),
  ]
  if (draft.state !== undefined) entities.push(stateEntity(draft.workspace, session, draft.state))
  return { entities, relationships: relationshipsOf(draft) }
}

/** The row of a session; `summary` is its shortest. */
function sessionEntity(draft: Draft): EntityDraft {
  const { id, continues, restored } = draft
  return {
    type: 'session',
    id,
    session: id,
    sources: [...new Set([...draft.titleSources, ...(draft.levels[0]?.sources ?? [])])],
    properties: {
      created_at: draft.createdAt,
      saved_at: draft.savedAt,
      workspace_id: draft.workspace,
      title: draft.title,
      summary: draft.levels[0]?.text ?? '',
      token_count: draft.tokens,
      message_count: draft.messages,
      ...(continues === undefined ? {} : { continued_from: continues }),
      ...(restored === undefined ? {} : { restored }),
    },
  }
}

/** What of a session quotes nobody: with what was forgotten its row may go, and this brings it back without that. */
const originEntity = ({ id, createdAt, continues, restored }: Draft): EntityDraft => ({
  type: 'session_origin',
  id: originId(id),
  session: id,
  properties: {
    created_at: createdAt,
    ...(continues === undefined ? {} : { continued_from: continues }),
    ...(restored === undefined ? {} : { restored }),
  },
})

const conversationEntity = ({ id, levels, tokens }: Draft): EntityDraft => ({
  type: 'conversation',
  id: conversationId(id),
  session: id,
  sources: [...new Set(levels.flatMap(({ sources }) => sources))],
  properties: { context: levels.map(({ text }) => text), token_count: tokens },
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

const providedEntity = (session: string, { from, text }: Provided): EntityDraft => ({
  type: 'provided',
  id: `provided_${session}_${hash('sha256', from).slice(0, 16)}`,
  session,
  properties: { from, text },
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

function relationshipsOf({ id, workspace, items, files, state, continues, references }: Draft): RelationshipDraft[] {
  const conversation = conversationId(id)
  const link = (
    from: string,
    type: string,
    to: string,
    properties: Readonly<Record<string, Json>> = {},
  ): RelationshipDraft => ({
    from,
    type,
    to,
    properties,
    session: id,
  })
  return [
    link(id, 'SESSION_IN_WORKSPACE', workspaceRowId(workspace)),
    link(id, 'SESSION_HAS_CONVERSATION', conversation),
    ...items.map((item) => link(conversation, 'CONVERSATION_REFERENCES_ITEM', item.id)),
    ...files.map(({ path }) => link(conversation, 'CONVERSATION_REFERENCES_FILE', fileId(id, path))),
    ...(state === undefined ? [] : [link(id, 'SESSION_HAS_WORKSPACE_STATE', stateId(id))]),
    ...(continues === undefined ? [] : [link(id, 'SESSION_CONTINUES', continues)]),
    ...references.map(({ session, found }) => link(id, 'SESSION_REFERENCES', session, { found })),
  ]
}
