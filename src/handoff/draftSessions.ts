import type { Entity } from '../graph/graph.ts'
import { internalsOf } from '../memory.ts'
import { every } from './every.ts'
import { metadataOf, type SessionMetadata, textIn } from './records.ts'
import { fingerprint, isTelling } from './save/fresh.ts'
import { begunId } from './save/rows.ts'
import { isBegun, isoOf, keyOf, type Listing, listed, metadataOfMessages, pageOf, sessionRow } from './sessions.ts'
import type { HandoffParts } from './settings.ts'

/**
 * Notes that something is about to be said in a session, so that it is known before anything is made of it. A graph that
 * fails is no reason not to store what was said.
 */
export async function noteBegun(parts: HandoffParts, workspace: string, session: string): Promise<void> {
  const { graph, clock } = parts
  if ((await isSaved(parts, workspace, session)) || (await graph.entity(workspace, begunId(session))) !== undefined)
    return
  const row = {
    type: 'session_begun',
    id: begunId(session),
    session,
    properties: { session, created_at: isoOf(clock()) },
  }
  await graph.write(workspace, { entities: [row] }).catch(() => undefined)
}

/** Sessions in which something was said and that were not saved yet, the newest first. */
export async function begunIn(parts: HandoffParts, workspace: string): Promise<readonly SessionMetadata[]> {
  const found = await Promise.all((await notesIn(parts, workspace)).map((session) => begun(parts, workspace, session)))
  return found.filter((one) => one !== undefined).sort(newestFirst)
}

async function notesIn({ graph }: HandoffParts, workspace: string): Promise<readonly string[]> {
  const notes = await every(
    async (page) =>
      (await graph.entities(workspace, { types: ['session_begun'], sort: [{ by: 'id' }], ...page })).entities,
  )
  // Clients write to the graph too: a note is believed if it names what it belongs to.
  return notes
    .filter((note) => note.id === begunId(textIn(note, 'session')))
    .map((note) => textIn(note, 'session'))
    .filter((session) => isId(workspace, session))
}

function isId(workspace: string, session: string): boolean {
  try {
    return keyOf(workspace, session).id !== ''
  } catch {
    return false
  }
}

async function begun(parts: HandoffParts, workspace: string, session: string): Promise<SessionMetadata | undefined> {
  const row = await sessionRow(parts, workspace, session)
  if (hasMessages(row) || !(await isBegun(parts, workspace, session))) return undefined
  const first = await parts.memory.transcript(keyOf(workspace, session), { limit: 20 })
  const head = await internalsOf(parts.memory).sessions.head(keyOf(workspace, session), 1)
  const [newest] = head.recent
  const tokenCount = newest === undefined ? 0 : newest.offset + newest.weight
  const before = row === undefined ? undefined : metadataOf(row).continuedFrom
  return {
    ...metadataOfMessages(workspace, session, head, first),
    tokenCount,
    ...(before === undefined ? {} : { continuedFrom: before }),
  }
}

const hasMessages = (row: Entity | undefined): boolean => row !== undefined && metadataOf(row).messageCount > 0

/** Whether something was made of what was said in a session. */
export const isSaved = async (parts: HandoffParts, workspace: string, session: string): Promise<boolean> =>
  hasMessages(await sessionRow(parts, workspace, session))

const newestFirst = (left: SessionMetadata, right: SessionMetadata): number =>
  left.savedAt === right.savedAt ? (left.sessionId < right.sessionId ? 1 : -1) : left.savedAt < right.savedAt ? 1 : -1

/** So many are put in order together; further on the list only saved ones are told. */
const mostOrdered = 1_000

/** The sessions of a workspace, saved or only begun, the newest first. */
export async function listedWithBegun(
  parts: HandoffParts,
  workspace: string,
  page: { readonly limit?: number; readonly offset?: number },
): Promise<Listing> {
  const { limit, offset } = pageOf(page)
  const open = await begunIn(parts, workspace)
  if (open.length === 0 || offset + limit > mostOrdered) return listed(parts, workspace, { limit, offset })
  const { sessions, total } = await listed(parts, workspace, { limit: offset + limit })
  return {
    sessions: [...sessions, ...open].sort(newestFirst).slice(offset, offset + limit),
    total: total + open.length,
  }
}

/**
 * A session that was begun with the same messages and never saved: whoever began it did not hear of it, and tells it again.
 * Few words prove nothing; then they are stored once more.
 */
export async function begunWith(
  parts: HandoffParts,
  workspace: string,
  told: readonly Told[],
): Promise<string | undefined> {
  const prints = told.map(fingerprint)
  for (const { sessionId, messageCount } of await begunIn(parts, workspace)) {
    if (messageCount > told.length) continue
    const stored = await parts.memory.transcript(keyOf(workspace, sessionId))
    const isSame = stored.every((message, at) => fingerprint(message) === prints[at])
    if (isSame && (stored.length > 1 || stored.some(isTelling))) return sessionId
  }
  return undefined
}

type Told = Parameters<typeof fingerprint>[0]
