import { isBlank, type Message, type Millis } from '../domain/entry.ts'
import { checkOption, MemoryError } from '../domain/error.ts'
import { type Key, parseKey } from '../domain/key.ts'
import { isExpired, type SessionHead } from '../domain/session.ts'
import { allRows } from '../graph/query.ts'
import type { Entity, Filter } from '../graph/types.ts'
import { internalsOf } from '../memory.ts'
import type { FileReference } from './fileReferences.ts'
import type { ContextItem } from './item.ts'
import { expiryCutoff } from './retention.ts'
import {
  fileFromRow,
  hashesId,
  itemFromRow,
  metadataFromRow,
  originId,
  type ProvidedContext,
  type Restoration,
  restorationFromRow,
  type SavedSessionMetadata,
  stringsIn,
  summariesFromRow,
  textProperty,
  type WorkspaceState,
  workspaceStateFromRow,
} from './rows.ts'
import type { HandoffDeps } from './settings.ts'

/** Session with everything derived from it; the messages are read on demand. */
export type SavedSession = {
  readonly metadata: SavedSessionMetadata
  /** Ids of messages marked by the user. */
  readonly markedMessages: readonly string[]
  readonly restoration?: Restoration
  /** Summaries, shortest first. */
  readonly summaries: readonly string[]
  readonly items: readonly ContextItem[]
  readonly files: readonly FileReference[]
  readonly workspaceState?: WorkspaceState
  readonly provided: readonly ProvidedContext[]
  readMessages(): Promise<readonly Message[]>
}

export type SessionList = { readonly sessions: readonly SavedSessionMetadata[]; readonly total: number }

/** Returns the memory key of a session. Throws `bad-key` on an invalid name. */
export const sessionKey = (workspace: string, session: string): Key => parseKey(`${workspace}:${session}`)

/** Checks that a workspace and a session id form a valid key. */
export function isValidSessionId(workspace: string, session: string): boolean {
  try {
    return sessionKey(workspace, session).id !== ''
  } catch {
    return false
  }
}

/**
 * Parses a session id given with or without its workspace: commands print both together. Throws `bad-option` if it
 * names another workspace.
 *
 * @example
 * parseSessionId('default', 'default:session_1') // 'session_1'
 */
export function parseSessionId(workspace: string, session: string): string {
  const id = session.startsWith(`${workspace}:`) ? session.slice(workspace.length + 1) : session
  if (id.includes(':')) throw sessionNotFound(session)
  return id
}

/**
 * Error for an unknown id. Ids of other workspaces give the same message, so that it does not reveal their existence.
 */
export const sessionNotFound = (session: string): MemoryError =>
  new MemoryError(
    'bad-option',
    `There is no session ${JSON.stringify(session)} in this workspace. list_sessions tells which there are.`,
    { param: 'sessionId' },
  )

export type Page = { readonly limit?: number; readonly offset?: number }

/** Validates a page and fills in the defaults: 20 sessions from the start. */
export function parsePage({ limit = 20, offset = 0 }: Page): Required<Page> {
  checkOption(
    'limit',
    limit,
    Number.isSafeInteger(limit) && limit >= 1 && limit <= 1_000,
    'a whole number from 1 to 1000',
  )
  checkOption('offset', offset, Number.isSafeInteger(offset) && offset >= 0, 'a whole number, 0 or more')
  return { limit, offset }
}

/** Lists the saved sessions of a workspace, most recently saved first. */
export async function listSavedSessions(deps: HandoffDeps, workspace: string, page: Page = {}): Promise<SessionList> {
  const { limit, offset } = parsePage(page)
  const { entities, total } = await deps.graph.queryEntities(workspace, {
    types: ['session'],
    // Sessions created by a restore and never written to have no messages.
    filters: [{ property: 'message_count', op: 'gt', value: 0 }, ...notExpired(deps)],
    sort: [
      { by: 'saved_at', order: 'desc' },
      { by: 'id', order: 'desc' },
    ],
    limit,
    offset,
  })
  return { sessions: entities.map(metadataFromRow), total }
}

/** Filter that hides expired sessions that have not been swept yet. */
function notExpired({ memory, clock }: HandoffDeps): Filter[] {
  const cutoff = expiryCutoff(memory.profile.lifetime, clock())
  return cutoff === undefined ? [] : [{ property: 'created_at', op: 'gt', value: toIsoTime(cutoff) }]
}

/** Reads a session with everything derived from it; undefined if it does not exist. */
export async function readSavedSession(
  deps: HandoffDeps,
  workspace: string,
  session: string,
): Promise<SavedSession | undefined> {
  const row = await findSessionRow(deps, workspace, session)
  if (row === undefined) return undefined
  const types = ['conversation', 'context_item', 'file_reference', 'workspace_state', 'provided', 'mark']
  const sort = [{ by: 'importance', order: 'desc' }, { by: 'id' }] as const
  const { entities } = await deps.graph.queryEntities(workspace, { types, session, sort, limit: allRows })
  const ofType = (type: string): readonly Entity[] => entities.filter((entity) => entity.type === type)
  const state = ofType('workspace_state')[0]
  const restoration = restorationFromRow(row)
  return {
    metadata: metadataFromRow(row),
    markedMessages: ofType('mark').map((entity) => textProperty(entity, 'message')),
    ...(restoration === undefined ? {} : { restoration }),
    summaries: summariesFromRow(ofType('conversation')[0]),
    items: ofType('context_item').flatMap((entity) => itemFromRow(entity) ?? []),
    files: ofType('file_reference').flatMap((entity) => fileFromRow(entity) ?? []),
    ...(state === undefined ? {} : { workspaceState: workspaceStateFromRow(state) }),
    provided: ofType('provided').map((entity) => ({
      from: textProperty(entity, 'from'),
      text: textProperty(entity, 'text'),
    })),
    readMessages: () => deps.memory.transcript(sessionKey(workspace, session)),
  }
}

/** Reads the hashes of the full texts of a session's first messages; empty if they are stored in full. */
export const readMessageHashes = async ({ graph }: HandoffDeps, workspace: string, session: string) =>
  stringsIn((await graph.getEntity(workspace, hashesId(session)))?.properties.hashes)

/** Finds the row of a session that has not expired. Throws `bad-key` on an invalid id. */
export async function findSessionRow(
  { graph, memory, clock }: HandoffDeps,
  workspace: string,
  session: string,
): Promise<Entity | undefined> {
  sessionKey(workspace, session)
  const row =
    (await graph.getEntity(workspace, session)) ??
    rowFromOrigin(session, workspace, await graph.getEntity(workspace, originId(session)))
  const cutoff = expiryCutoff(memory.profile.lifetime, clock())
  const isOver = cutoff !== undefined && row !== undefined && textProperty(row, 'created_at') <= toIsoTime(cutoff)
  return row?.type !== 'session' || isOver ? undefined : row
}

/** Rebuilds the row of a session that was deleted because it quoted a forgotten message; valid until the next save. */
function rowFromOrigin(session: string, workspace: string, origin: Entity | undefined): Entity | undefined {
  if (origin?.type !== 'session_origin') return undefined
  return {
    ...origin,
    type: 'session',
    id: session,
    properties: { ...origin.properties, workspace_id: workspace, saved_at: origin.properties.created_at ?? '' },
  }
}

/** Finds sessions whose rows were deleted because they quoted forgotten messages. */
export async function findSessionsWithoutRow(deps: HandoffDeps, workspace: string): Promise<readonly string[]> {
  const { graph } = deps
  const count = async (type: string): Promise<number> =>
    (await graph.queryEntities(workspace, { types: [type], limit: 1 })).total
  if ((await count('session_origin')) === (await count('session'))) return []
  const query = { types: ['session_origin'], sort: [{ by: 'id' }], limit: allRows }
  const { entities } = await graph.queryEntities(workspace, query)
  const ids = entities.map(({ id }) => id.slice(originId('').length))
  const isWithoutRow = await Promise.all(
    ids.map(
      async (id) =>
        (await graph.getEntity(workspace, id)) === undefined &&
        (await findSessionRow(deps, workspace, id)) !== undefined,
    ),
  )
  return ids.filter((_, index) => isWithoutRow[index])
}

/** Throws if the graph has an entity of another type under this id, which saving would overwrite. */
export async function assertIdAvailable({ graph }: HandoffDeps, workspace: string, session: string): Promise<void> {
  const entity = await graph.getEntity(workspace, session)
  if (entity === undefined || entity.type === 'session') return
  throw new MemoryError(
    'bad-option',
    `${JSON.stringify(session)} is the id of another entity in this workspace. Choose another sessionId.`,
    { param: 'sessionId' },
  )
}

/** Checks whether a session, saved or not, has messages and has not expired. */
export async function hasMessages({ memory, clock }: HandoffDeps, workspace: string, id: string): Promise<boolean> {
  const head = await internalsOf(memory).sessions.readHead(sessionKey(workspace, id), 0)
  return head.messages > 0 && !isExpired(head, clock())
}

/** Checks whether a session was saved or has messages. */
export const sessionExists = async (deps: HandoffDeps, workspace: string, id: string): Promise<boolean> =>
  (await findSessionRow(deps, workspace, id)) !== undefined || hasMessages(deps, workspace, id)

/** Reads a session that has messages but was never saved; undefined if it has none. */
export async function readUnsavedSession(
  deps: HandoffDeps,
  workspace: string,
  session: string,
): Promise<SavedSession | undefined> {
  const { memory } = deps
  if (!(await hasMessages(deps, workspace, session))) return undefined
  const messages = await memory.transcript(sessionKey(workspace, session))
  const head = await internalsOf(memory).sessions.readHead(sessionKey(workspace, session), 0)
  return {
    metadata: {
      ...unsavedMetadata(workspace, session, head, messages),
      tokenCount: messages.reduce((sum, { tokens }) => sum + tokens, 0),
    },
    ...{ markedMessages: [], summaries: [], items: [], files: [], provided: [] },
    readMessages: () => Promise.resolve(messages),
  }
}

/** Metadata of a session that was never saved; the title comes from its first messages. */
export function unsavedMetadata(
  workspace: string,
  session: string,
  head: SessionHead,
  firstMessages: readonly Message[],
): Omit<SavedSessionMetadata, 'tokenCount'> {
  return {
    sessionId: session,
    workspaceId: workspace,
    title: deriveTitle(firstMessages)?.title ?? '',
    createdAt: toIsoTime(head.startedAt),
    savedAt: toIsoTime(head.touchedAt),
    messageCount: head.messages,
    summary: '',
    unsaved: true,
  }
}

const maxTitleChars = 80

/** Joins the first words of a text, with more than `characters` if it has so many. Reads no more than that. */
function startOfLine(text: string, characters: number): string {
  let line = ''
  for (const [word] of text.matchAll(/\S+/g)) {
    line += line === '' ? word : ` ${word}`
    if (line.length > characters) break
  }
  return line
}

/** Derives a title from the first user message; `source` is the id of that message. */
export function deriveTitle(
  messages: readonly Message[],
): { readonly title: string; readonly source: string } | undefined {
  const first = messages.find(({ role, content }) => role === 'user' && !isBlank(content))
  const line = startOfLine(first?.content ?? '', 2 * maxTitleChars)
  const title =
    line.length <= maxTitleChars
      ? line
      : `${[...line.slice(0, 2 * maxTitleChars)].slice(0, maxTitleChars - 1).join('')}…`
  return first === undefined || title === '' ? undefined : { title, source: first.id }
}

/** Formats a time as stored in rows: lexicographic order is chronological order. */
export const toIsoTime = (time: Millis): string => new Date(time).toISOString()
