import { isBlank, type Message } from '../domain/entry.ts'
import type { Entity } from '../graph/types.ts'
import {
  metadataFromRow,
  originId,
  type PreservationReport,
  restorationFromRow,
  type SavedSessionMetadata,
  type SessionReference,
} from './rows.ts'
import { findSessionRow, isValidSessionId, listSavedSessions, type SavedSession, sessionNotFound } from './sessions.ts'
import type { HandoffDeps } from './settings.ts'

/** Session in a chain of continuations. */
export type ChainLink = {
  readonly sessionId: string
  readonly title: string
  readonly summary: string
  readonly createdAt: string
  readonly messageCount: number
  readonly continuedFrom?: string
  /** Preservation of the previous session when this one was created from it. */
  readonly preservation?: PreservationReport
}

/** Session that a new chat may continue. */
export type Suggestion = Pick<SavedSessionMetadata, 'sessionId' | 'title' | 'summary' | 'savedAt'> & {
  readonly why: 'most recent' | 'about the same'
}

const maxChainLength = 100
/** Earlier sessions summarised in a restored text. */
const maxEarlierSessions = 8

/**
 * Reads the chain of a session: its predecessors, itself and its successors, oldest first. Empty if it does not exist.
 *
 * @example
 * (await readChain(deps, 'default', 'session_3')).map(({ sessionId }) => sessionId) // ['session_1', 'session_2', 'session_3']
 */
export async function readChain(deps: HandoffDeps, workspace: string, session: string): Promise<readonly ChainLink[]> {
  return (await findChainRows(deps, workspace, session)).map(toChainLink)
}

/** Reads the rows of a chain, oldest first. Throws if the session does not exist. */
export async function readChainRows(deps: HandoffDeps, workspace: string, session: string): Promise<readonly Entity[]> {
  const rows = await findChainRows(deps, workspace, session)
  if (rows.length === 0) throw sessionNotFound(session)
  return rows
}

async function findChainRows(deps: HandoffDeps, workspace: string, session: string): Promise<readonly Entity[]> {
  const row = await findSessionRow(deps, workspace, session)
  if (row === undefined) return []
  const predecessors = await findPredecessors(deps, workspace, row, maxChainLength)
  const chain = new Map([...predecessors, row].map((link) => [link.id, link]))
  await addSuccessors(deps, workspace, row, chain)
  // Sessions created by a restore and never written to are not part of the chain.
  return [...chain.values()].filter((link) => link.id === session || metadataFromRow(link).messageCount > 0)
}

/** Reads the summaries of the sessions before a saved one, oldest first. */
export async function readEarlierSummaries(
  deps: HandoffDeps,
  workspace: string,
  { metadata }: SavedSession,
): Promise<readonly { session: string; summary: string }[]> {
  if (metadata.continuedFrom === undefined) return []
  const previous = await findSessionRow(deps, workspace, metadata.continuedFrom)
  if (previous === undefined) return []
  const rows = [...(await findPredecessors(deps, workspace, previous, maxEarlierSessions - 1)), previous]
  return rows
    .map((row) => ({ session: row.id, summary: metadataFromRow(row).summary }))
    .filter(({ summary }) => summary !== '')
}

/** Reads the newest preservation report of a session, from whichever session continued it last. */
export async function readLatestPreservation(
  deps: HandoffDeps,
  workspace: string,
  session: string,
): Promise<PreservationReport | undefined> {
  const successors = await findSuccessors(deps, workspace, session)
  return successors
    .map((row) => restorationFromRow(row)?.preservation)
    .filter((preservation) => preservation !== undefined)
    .sort((left, right) => (left.at < right.at ? 1 : -1))[0]
}

async function findPredecessors(
  deps: HandoffDeps,
  workspace: string,
  row: Entity,
  maxCount: number,
): Promise<readonly Entity[]> {
  const predecessors: Entity[] = []
  const visited = new Set([row.id])
  let id = metadataFromRow(row).continuedFrom
  while (id !== undefined && !visited.has(id) && predecessors.length < maxCount) {
    visited.add(id)
    const predecessor = await findSessionRow(deps, workspace, id)
    if (predecessor === undefined) break
    predecessors.unshift(predecessor)
    id = metadataFromRow(predecessor).continuedFrom
  }
  return predecessors
}

async function findSuccessors(deps: HandoffDeps, workspace: string, session: string): Promise<readonly Entity[]> {
  const filters = [{ property: 'continued_from', op: 'eq', value: session }] as const
  const sort = [{ by: 'created_at', order: 'desc' }] as const
  const query = { types: ['session'], filters, sort, limit: maxChainLength }
  const { entities } = await deps.graph.queryEntities(workspace, query)
  const rows = await Promise.all(entities.map(({ id }) => findSessionRow(deps, workspace, id)))
  return rows
    .filter((row) => row !== undefined)
    .sort((left, right) => (metadataFromRow(left).createdAt < metadataFromRow(right).createdAt ? -1 : 1))
}

/** Adds all direct and indirect successors to a chain, breadth first. A chain may branch. */
async function addSuccessors(
  deps: HandoffDeps,
  workspace: string,
  row: Entity,
  chain: Map<string, Entity>,
): Promise<void> {
  const queue = [row]
  for (let next = queue.shift(); next !== undefined && chain.size < maxChainLength; next = queue.shift()) {
    for (const successor of await findSuccessors(deps, workspace, next.id)) {
      if (chain.has(successor.id)) continue
      chain.set(successor.id, successor)
      queue.push(successor)
    }
  }
}

/**
 * Formats a chain as text; branches are separated by semicolons.
 *
 * @example
 * formatChain(await handoff.chain('default', 'a')) // 'a → b → c; a → d'
 */
export function formatChain(chain: readonly ChainLink[]): string {
  const branches: string[][] = []
  for (const { sessionId, continuedFrom } of chain) {
    const branch = branches.find((ids) => continuedFrom !== undefined && ids.at(-1) === continuedFrom)
    if (branch !== undefined) branch.push(sessionId)
    else
      branches.push(
        continuedFrom !== undefined && branches.flat().includes(continuedFrom)
          ? [continuedFrom, sessionId]
          : [sessionId],
      )
  }
  return branches.map((ids) => ids.join(' → ')).join('; ')
}

/** Links the successors of a session that is about to be deleted to its predecessor. */
export async function relinkSuccessors(deps: HandoffDeps, workspace: string, row: Entity): Promise<void> {
  const { continuedFrom } = metadataFromRow(row)
  const predecessor =
    continuedFrom === undefined ? undefined : (await findSessionRow(deps, workspace, continuedFrom))?.id
  for (const successor of await findSuccessors(deps, workspace, row.id))
    await relinkSession(deps, workspace, successor, successor.id === predecessor ? undefined : predecessor)
}

async function relinkSession(
  { graph }: HandoffDeps,
  workspace: string,
  { id }: Entity,
  predecessor: string | undefined,
): Promise<void> {
  const rows = await Promise.all([id, originId(id)].map((rowId) => graph.getEntity(workspace, rowId)))
  const entities = rows.flatMap((row) => {
    if (row === undefined) return []
    const { continued_from: _, ...rest } = row.properties
    const properties = predecessor === undefined ? rest : { ...rest, continued_from: predecessor }
    // A draft without `session` and `sources` leaves those of the stored row unchanged.
    return [{ type: row.type, id: row.id, properties }]
  })
  const relationships =
    predecessor === undefined ? [] : [{ from: id, type: 'SESSION_CONTINUES', to: predecessor, session: id }]
  await graph.write(workspace, { entities, relationships })
}

function toChainLink(row: Entity): ChainLink {
  const { sessionId, title, summary, createdAt, messageCount, continuedFrom } = metadataFromRow(row)
  const preservation = restorationFromRow(row)?.preservation
  return {
    sessionId,
    title,
    summary,
    createdAt,
    messageCount,
    ...(continuedFrom === undefined ? {} : { continuedFrom }),
    ...(preservation === undefined ? {} : { preservation }),
  }
}

const maxSearchHits = 50
const maxNamedSessions = 20
const maxSessionIdChars = 128
/** Sessions scoring below this fraction of the best score do not match. */
const minRelativeScore = 0.5

/**
 * Suggests the most recent session that matches the start of a new chat; without text, the most recent session.
 *
 * @example
 * (await suggestSession(deps, 'default', 'Back to the login page: the tests still fail.'))?.sessionId // 'session_1763236000000_1f0c'
 */
export async function suggestSession(
  deps: HandoffDeps,
  workspace: string,
  text: string,
  except: ReadonlySet<string> = new Set(),
): Promise<Suggestion | undefined> {
  if (isBlank(text)) {
    const { sessions } = await listSavedSessions(deps, workspace, { limit: 1 + except.size })
    const newest = sessions.find(({ sessionId }) => !except.has(sessionId))
    return newest === undefined ? undefined : toSuggestion(newest, 'most recent')
  }
  const matches = await searchSessions(deps, workspace, text, except)
  const newest = [...matches].sort((left, right) => (left.savedAt < right.savedAt ? 1 : -1))[0]
  return newest === undefined ? undefined : toSuggestion(newest, 'about the same')
}

const toSuggestion = (
  { sessionId, title, summary, savedAt }: SavedSessionMetadata,
  why: Suggestion['why'],
): Suggestion => ({
  sessionId,
  title,
  summary,
  savedAt,
  why,
})

/** Searches saved sessions by the content of their messages, best match first. */
export async function searchSessions(
  deps: HandoffDeps,
  workspace: string,
  text: string,
  except: ReadonlySet<string>,
): Promise<readonly SavedSessionMetadata[]> {
  const scores = new Map<string, number>()
  const hits = await deps.memory.search(workspace, text, { limit: maxSearchHits, kinds: ['message'] })
  for (const { key, score, repeats = [] } of hits)
    for (const hit of [key, ...repeats.map((repeat) => repeat.key)]) {
      const session = hit.slice(workspace.length + 1)
      // Passages of files and branches of sessions are found too.
      if (isValidSessionId(workspace, session) && !except.has(session))
        scores.set(session, (scores.get(session) ?? 0) + score)
    }
  const bestScore = Math.max(0, ...scores.values())
  const ranked = [...scores]
    .filter(([, score]) => score >= minRelativeScore * bestScore)
    .sort(([, left], [, right]) => right - left)
  const rows = await Promise.all(ranked.map(([session]) => findSessionRow(deps, workspace, session)))
  return rows.filter((row) => row !== undefined).map(metadataFromRow)
}

/** Finds other sessions of the workspace whose ids occur in the messages. */
export async function findNamedSessions(
  deps: HandoffDeps,
  workspace: string,
  self: string,
  messages: readonly Pick<Message, 'content'>[],
): Promise<readonly SessionReference[]> {
  const names = new Set<string>()
  for (const { content } of messages)
    for (const [name] of content.matchAll(/\bsession_[\w+\-.@]*\w/g))
      if (name !== self && name.length <= maxSessionIdChars) names.add(name)
  const candidates = [...names].slice(0, maxNamedSessions)
  const rows = await Promise.all(candidates.map((name) => findSessionRow(deps, workspace, name)))
  return candidates.filter((_, index) => rows[index] !== undefined).map((session) => ({ session, found: 'named' }))
}
