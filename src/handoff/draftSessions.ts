import type { Message } from '../domain/entry.ts'
import { allRows } from '../graph/query.ts'
import type { Entity } from '../graph/types.ts'
import { internalsOf } from '../memory.ts'
import { draftMarkerId, metadataFromRow, type SavedSessionMetadata, textProperty } from './rows.ts'
import { fingerprintAll, isDistinctive } from './save/newMessages.ts'
import {
  findSessionRow,
  hasMessages,
  isValidSessionId,
  listSavedSessions,
  type Page,
  parsePage,
  type SessionList,
  sessionKey,
  toIsoTime,
  unsavedMetadata,
} from './sessions.ts'
import type { HandoffDeps } from './settings.ts'

// Draft sessions have messages but were never saved. A marker row in the graph makes them listable.

/**
 * Marks a session as a draft before its first message is stored. A failing graph does not prevent storing the message.
 */
export async function markDraftSession(deps: HandoffDeps, workspace: string, session: string): Promise<void> {
  const { graph, clock } = deps
  const markerId = draftMarkerId(session)
  if ((await isSessionSaved(deps, workspace, session)) || (await graph.getEntity(workspace, markerId)) !== undefined)
    return
  const marker = {
    type: 'session_begun',
    id: markerId,
    session,
    properties: { session, created_at: toIsoTime(clock()) },
  }
  await graph.write(workspace, { entities: [marker] }).catch(() => undefined)
}

/** Lists the draft sessions of a workspace, newest first. */
export async function listDraftSessions(
  deps: HandoffDeps,
  workspace: string,
): Promise<readonly SavedSessionMetadata[]> {
  const ids = await readMarkedIds(deps, workspace)
  const drafts = await Promise.all(ids.map((session) => readDraftMetadata(deps, workspace, session)))
  return drafts.filter((draft) => draft !== undefined).sort(compareNewestFirst)
}

async function readMarkedIds({ graph }: HandoffDeps, workspace: string): Promise<readonly string[]> {
  const query = { types: ['session_begun'], sort: [{ by: 'id' }], limit: allRows }
  return parseMarkers(workspace, (await graph.queryEntities(workspace, query)).entities)
}

/** Clients write to the graph too: a marker is valid only if its id matches the session it names. */
const parseMarkers = (workspace: string, markers: readonly Entity[]): readonly string[] =>
  markers
    .filter((marker) => marker.id === draftMarkerId(textProperty(marker, 'session')))
    .map((marker) => textProperty(marker, 'session'))
    .filter((session) => isValidSessionId(workspace, session))

async function readDraftMetadata(
  deps: HandoffDeps,
  workspace: string,
  session: string,
): Promise<SavedSessionMetadata | undefined> {
  const row = await findSessionRow(deps, workspace, session)
  if (isSavedRow(row) || !(await hasMessages(deps, workspace, session))) return undefined
  const firstMessages = await deps.memory.transcript(sessionKey(workspace, session), { limit: 20 })
  const head = await internalsOf(deps.memory).sessions.readHead(sessionKey(workspace, session), 1)
  const [newest] = head.recent
  const tokenCount = newest === undefined ? 0 : newest.offset + newest.weight
  const continuedFrom = row === undefined ? undefined : metadataFromRow(row).continuedFrom
  return {
    ...unsavedMetadata(workspace, session, head, firstMessages),
    tokenCount,
    ...(continuedFrom === undefined ? {} : { continuedFrom }),
  }
}

const isSavedRow = (row: Entity | undefined): boolean => row !== undefined && metadataFromRow(row).messageCount > 0

/** Checks whether a session was saved with at least one message. */
export const isSessionSaved = async (deps: HandoffDeps, workspace: string, session: string): Promise<boolean> =>
  isSavedRow(await findSessionRow(deps, workspace, session))

const compareNewestFirst = (left: SavedSessionMetadata, right: SavedSessionMetadata): number =>
  left.savedAt === right.savedAt ? (left.sessionId < right.sessionId ? 1 : -1) : left.savedAt < right.savedAt ? 1 : -1

/** Pages that end beyond this position contain saved sessions only. */
const maxMergedSessions = 1_000

/** Lists the saved and draft sessions of a workspace, newest first. */
export async function listSessions(deps: HandoffDeps, workspace: string, page: Page): Promise<SessionList> {
  const { limit, offset } = parsePage(page)
  const drafts = await listDraftSessions(deps, workspace)
  if (drafts.length === 0 || offset + limit > maxMergedSessions)
    return listSavedSessions(deps, workspace, { limit, offset })
  const { sessions, total } = await listSavedSessions(deps, workspace, { limit: offset + limit })
  return {
    sessions: [...sessions, ...drafts].sort(compareNewestFirst).slice(offset, offset + limit),
    total: total + drafts.length,
  }
}

/** Drafts compared with the messages of a save: a client that received no id sends them again soon. */
const maxComparedDrafts = 20

/**
 * Finds the draft session that starts with the same messages: the client never received its id and sends them again. A
 * single short message is not enough evidence, so it is stored again in a new session. Compares the newest drafts, and
 * reads more than the first message only of one that begins alike.
 */
export async function findDraftByMessages(
  deps: HandoffDeps,
  workspace: string,
  messages: Parameters<typeof fingerprintAll>[0],
): Promise<string | undefined> {
  const sort = [{ by: 'created_at', order: 'desc' }, { by: 'id' }] as const
  const query = { types: ['session_begun'], sort, limit: maxComparedDrafts }
  const ids = parseMarkers(workspace, (await deps.graph.queryEntities(workspace, query)).entities)
  if (ids.length === 0) return undefined
  const fingerprints = await fingerprintAll(messages)
  const isPrefix = async (stored: readonly Message[]): Promise<boolean> =>
    (await fingerprintAll(stored)).every((fingerprint, index) => fingerprint === fingerprints[index])
  for (const session of ids) {
    const key = sessionKey(workspace, session)
    const first = await deps.memory.transcript(key, { limit: 1 })
    if (first.length === 0 || !(await isPrefix(first))) continue
    if (!(await hasMessages(deps, workspace, session)) || (await isSessionSaved(deps, workspace, session))) continue
    const stored = await deps.memory.transcript(key, { limit: messages.length + 1 })
    const isDraft = stored.length <= messages.length && (await isPrefix(stored))
    if (isDraft && (stored.length > 1 || stored.some(isDistinctive))) return session
  }
  return undefined
}
