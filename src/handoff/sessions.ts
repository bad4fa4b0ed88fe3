import { isBlank, type Message, type Millis } from '../domain/entry.ts'
import { check, MemoryError } from '../domain/error.ts'
import { type Key, parseKey } from '../domain/key.ts'
import { type Head, isExpired } from '../domain/session.ts'
import type { Entity, Filter } from '../graph/graph.ts'
import { internalsOf } from '../memory.ts'
import { every } from './every.ts'
import type { ContextItem } from './item.ts'
import {
  fileOf,
  itemOf,
  levelsOf,
  metadataOf,
  type Provided,
  type Restoration,
  restorationOf,
  type SessionMetadata,
  stateOf,
  textIn,
  type WorkspaceState,
} from './records.ts'
import type { FileReference } from './references.ts'
import { startsAfter } from './retention.ts'
import { originId } from './save/rows.ts'
import type { HandoffParts } from './settings.ts'

/** Everything that is kept of a saved session; what was said is read when it is asked for. */
export type Kept = {
  readonly metadata: SessionMetadata
  /** Ids of messages that the user marked. */
  readonly marked: readonly string[]
  readonly restored?: Restoration
  /** Summaries, the shortest first. */
  readonly levels: readonly string[]
  readonly items: readonly ContextItem[]
  readonly files: readonly FileReference[]
  readonly state?: WorkspaceState
  readonly provided: readonly Provided[]
  messages(): Promise<readonly Message[]>
}

export type Listing = { readonly sessions: readonly SessionMetadata[]; readonly total: number }

/** The key under which what was said in a session is stored. */
export const keyOf = (workspace: string, session: string): Key => parseKey(`${workspace}:${session}`)

/**
 * An id as it is kept, with or without its workspace before it: commands print both together.
 *
 * @example
 * idIn('default', 'default:session_1') // 'session_1'
 */
export function idIn(workspace: string, session: string): string {
  const bare = session.startsWith(`${workspace}:`) ? session.slice(workspace.length + 1) : session
  if (bare.includes(':')) throw notFound(session)
  return bare
}

/** The same words for an id that is nowhere and for one of another workspace. */
export const notFound = (session: string): MemoryError =>
  new MemoryError(
    'bad-option',
    `There is no session ${JSON.stringify(session)} in this workspace. list_sessions tells which there are.`,
    {
      param: 'sessionId',
    },
  )

/** Which page of a list is asked for; the first when nobody says. */
export function pageOf({ limit = 20, offset = 0 }: { readonly limit?: number; readonly offset?: number }): {
  readonly limit: number
  readonly offset: number
} {
  check('limit', limit, Number.isSafeInteger(limit) && limit >= 1 && limit <= 1_000, 'a whole number from 1 to 1000')
  check('offset', offset, Number.isSafeInteger(offset) && offset >= 0, 'a whole number, 0 or more')
  return { limit, offset }
}

/** The saved sessions of a workspace, the one saved last first. */
export async function listed(
  parts: HandoffParts,
  workspace: string,
  page: { readonly limit?: number; readonly offset?: number } = {},
): Promise<Listing> {
  const { limit, offset } = pageOf(page)
  const { entities, total } = await parts.graph.entities(workspace, {
    types: ['session'],
    // A session that was begun by a restore and never saved has nothing to go on with.
    filters: [{ property: 'message_count', op: 'gt', value: 0 }, ...alive(parts)],
    sort: [
      { by: 'saved_at', order: 'desc' },
      { by: 'id', order: 'desc' },
    ],
    limit,
    offset,
  })
  return { sessions: entities.map(metadataOf), total }
}

/** Only what the retention has not ended yet: it may not have been swept. */
function alive({ memory, clock }: HandoffParts): Filter[] {
  const since = startsAfter(memory.profile.lifetime, clock())
  return since === undefined ? [] : [{ property: 'created_at', op: 'gt', value: isoOf(since) }]
}

/** A session of this workspace with all that was made of it, if it is there. */
export async function kept(parts: HandoffParts, workspace: string, session: string): Promise<Kept | undefined> {
  const row = await sessionRow(parts, workspace, session)
  if (row === undefined) return undefined
  const types = ['conversation', 'context_item', 'file_reference', 'workspace_state', 'provided', 'mark']
  const sort = [{ by: 'importance', order: 'desc' }, { by: 'id' }] as const
  const entities = await every(
    async (page) => (await parts.graph.entities(workspace, { types, session, sort, ...page })).entities,
  )
  const of = (type: string): readonly Entity[] => entities.filter((entity) => entity.type === type)
  const state = of('workspace_state')[0]
  const restored = restorationOf(row)
  return {
    metadata: metadataOf(row),
    marked: of('mark').map((entity) => textIn(entity, 'message')),
    ...(restored === undefined ? {} : { restored }),
    levels: levelsOf(of('conversation')[0]),
    items: of('context_item').flatMap((one) => itemOf(one) ?? []),
    files: of('file_reference').flatMap((one) => fileOf(one) ?? []),
    ...(state === undefined ? {} : { state: stateOf(state) }),
    provided: of('provided').map((entity) => ({ from: textIn(entity, 'from'), text: textIn(entity, 'text') })),
    messages: () => parts.memory.transcript(keyOf(workspace, session)),
  }
}

/** The row of a session that is not over, by an id that somebody gave. */
export async function sessionRow(
  { graph, memory, clock }: HandoffParts,
  workspace: string,
  session: string,
): Promise<Entity | undefined> {
  keyOf(workspace, session)
  const row =
    (await graph.entity(workspace, session)) ??
    bared(session, workspace, await graph.entity(workspace, originId(session)))
  const since = startsAfter(memory.profile.lifetime, clock())
  return row?.type !== 'session' || (since !== undefined && textIn(row, 'created_at') <= isoOf(since)) ? undefined : row
}

/** A session of which something was forgotten that its row had quoted, until it is saved again. */
function bared(session: string, workspace: string, origin: Entity | undefined): Entity | undefined {
  if (origin?.type !== 'session_origin') return undefined
  return {
    ...origin,
    type: 'session',
    id: session,
    properties: { ...origin.properties, workspace_id: workspace, saved_at: origin.properties.created_at ?? '' },
  }
}

/** Ids of sessions whose rows have gone with something that was forgotten. */
export async function bare(parts: HandoffParts, workspace: string): Promise<readonly string[]> {
  const { graph } = parts
  const total = async (type: string): Promise<number> =>
    (await graph.entities(workspace, { types: [type], limit: 1 })).total
  if ((await total('session_origin')) === (await total('session'))) return []
  const entities = await every(
    async (page) =>
      (await graph.entities(workspace, { types: ['session_origin'], sort: [{ by: 'id' }], ...page })).entities,
  )
  const ids = entities.map(({ id }) => id.slice(originId('').length))
  const isBare = await Promise.all(
    ids.map(
      async (id) =>
        (await graph.entity(workspace, id)) === undefined && (await sessionRow(parts, workspace, id)) !== undefined,
    ),
  )
  return ids.filter((_, at) => isBare[at])
}

/** Refuses an id by which the graph knows something else: a session would take its place. */
export async function refuseTaken({ graph }: HandoffParts, workspace: string, session: string): Promise<void> {
  const found = await graph.entity(workspace, session)
  if (found === undefined || found.type === 'session') return
  throw new MemoryError(
    'bad-option',
    `${JSON.stringify(session)} is the id of something else in this workspace. Choose another sessionId.`,
    {
      param: 'sessionId',
    },
  )
}

/** Whether something was said in a session, saved or not, that is not over. */
export async function isBegun({ memory, clock }: HandoffParts, workspace: string, session: string): Promise<boolean> {
  const head = await internalsOf(memory).sessions.head(keyOf(workspace, session), 0)
  return head.messages > 0 && !isExpired(head, clock())
}

/** Whether a session can be added to, saved again, or gone on from: it was saved before, or begun. */
export const isThere = async (parts: HandoffParts, workspace: string, id: string): Promise<boolean> =>
  (await sessionRow(parts, workspace, id)) !== undefined || isBegun(parts, workspace, id)

/** A session that was added to and not saved yet: nothing was made of it so far. */
export async function unsaved(parts: HandoffParts, workspace: string, session: string): Promise<Kept | undefined> {
  const { memory } = parts
  if (!(await isBegun(parts, workspace, session))) return undefined
  const messages = await memory.transcript(keyOf(workspace, session))
  const head = await internalsOf(memory).sessions.head(keyOf(workspace, session), 0)
  return {
    metadata: {
      ...metadataOfMessages(workspace, session, head, messages),
      tokenCount: messages.reduce((sum, { tokens }) => sum + tokens, 0),
    },
    ...{ marked: [], levels: [], items: [], files: [], provided: [] },
    messages: () => Promise.resolve(messages),
  }
}

/** What is known of a session of which nothing was made yet: how it begins is its title. */
export function metadataOfMessages(
  workspace: string,
  session: string,
  head: Head,
  first: readonly Message[],
): Omit<SessionMetadata, 'tokenCount'> {
  return {
    sessionId: session,
    workspaceId: workspace,
    title: titleIn(first)?.title ?? '',
    createdAt: isoOf(head.startedAt),
    savedAt: isoOf(head.touchedAt),
    messageCount: head.messages,
    summary: '',
    unsaved: true,
  }
}

/** The first thing a user said, on one line, and in which message. */
export function titleIn(messages: readonly Message[]): { readonly title: string; readonly source: string } | undefined {
  const first = messages.find(({ role, content }) => role === 'user' && !isBlank(content))
  const line = (first?.content ?? '').trim().replaceAll(/\s+/g, ' ')
  const title = line.length <= 80 ? line : `${[...line].slice(0, 79).join('')}…`
  return first === undefined || title === '' ? undefined : { title, source: first.id }
}

/** A time as rows hold it: their texts are in the order of the times. */
export const isoOf = (at: Millis): string => new Date(at).toISOString()
