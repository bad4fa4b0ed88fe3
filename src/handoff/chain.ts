import type { Entity } from '../graph/graph.ts'
import { type Measured, metadataOf, restorationOf } from './records.ts'
import { originId } from './save/rows.ts'
import { type Kept, notFound, sessionRow } from './sessions.ts'
import type { HandoffParts } from './settings.ts'

/** A session in its chain. */
export type Link = {
  readonly sessionId: string
  readonly title: string
  readonly summary: string
  readonly createdAt: string
  readonly messageCount: number
  readonly continuedFrom?: string
  /** How well the session before it came through when this one began. */
  readonly preservation?: Measured
}

/** A chain longer than this is told from here on. */
const longest = 100
/** So many sessions before the one restored are told of. */
const told = 8

/**
 * The sessions that a session goes on from, itself, and those that go on from it, the oldest first.
 *
 * @example
 * (await chainOf(parts, 'default', 'session_3')).map(({ sessionId }) => sessionId) // ['session_1', 'session_2', 'session_3']
 */
export async function chainOf(parts: HandoffParts, workspace: string, session: string): Promise<readonly Link[]> {
  return (await rowsOfChain(parts, workspace, session)).map(linkOf)
}

/** The rows of a chain, the oldest session first. */
async function rowsOfChain(parts: HandoffParts, workspace: string, session: string): Promise<readonly Entity[]> {
  const row = await sessionRow(parts, workspace, session)
  if (row === undefined) return []
  const before = await rowsBefore(parts, workspace, row, longest)
  const seen = new Map([...before, row].map((one) => [one.id, one]))
  await follow(parts, workspace, row, seen)
  // A session that was begun by a restore and never gone on with is no part of it.
  return [...seen.values()].filter((one) => one.id === session || metadataOf(one).messageCount > 0)
}

/** What the sessions before a kept one were about, the oldest first. */
export async function earlierOf(
  parts: HandoffParts,
  workspace: string,
  { metadata }: Kept,
): Promise<readonly { session: string; summary: string }[]> {
  if (metadata.continuedFrom === undefined) return []
  const last = await sessionRow(parts, workspace, metadata.continuedFrom)
  if (last === undefined) return []
  const rows = [...(await rowsBefore(parts, workspace, last, told - 1)), last]
  return rows
    .map((row) => ({ session: row.id, summary: metadataOf(row).summary }))
    .filter(({ summary }) => summary !== '')
}

/** The newest measure of how a session came through, whichever chat has gone on from it. */
export async function lastMeasured(
  parts: HandoffParts,
  workspace: string,
  session: string,
): Promise<Measured | undefined> {
  const after = await rowsAfter(parts, workspace, session)
  return after
    .map((row) => restorationOf(row)?.preservation)
    .filter((measured) => measured !== undefined)
    .sort((left, right) => (left.at < right.at ? 1 : -1))[0]
}

async function rowsBefore(
  parts: HandoffParts,
  workspace: string,
  row: Entity,
  most: number,
): Promise<readonly Entity[]> {
  const found: Entity[] = []
  const seen = new Set([row.id])
  let before = metadataOf(row).continuedFrom
  while (before !== undefined && !seen.has(before) && found.length < most) {
    seen.add(before)
    const next = await sessionRow(parts, workspace, before)
    if (next === undefined) break
    found.unshift(next)
    before = metadataOf(next).continuedFrom
  }
  return found
}

async function rowsAfter(parts: HandoffParts, workspace: string, session: string): Promise<readonly Entity[]> {
  const filters = [{ property: 'continued_from', op: 'eq', value: session }] as const
  const sort = [{ by: 'created_at', order: 'desc' }] as const
  const { entities } = await parts.graph.entities(workspace, { types: ['session'], filters, sort, limit: longest })
  const rows = await Promise.all(entities.map(({ id }) => sessionRow(parts, workspace, id)))
  return rows
    .filter((row) => row !== undefined)
    .sort((left, right) => (metadataOf(left).createdAt < metadataOf(right).createdAt ? -1 : 1))
}

/** Everything that goes on from a session, nearest first: a chain may branch. */
async function follow(parts: HandoffParts, workspace: string, row: Entity, seen: Map<string, Entity>): Promise<void> {
  const open = [row]
  for (let next = open.shift(); next !== undefined && seen.size < longest; next = open.shift()) {
    for (const after of await rowsAfter(parts, workspace, next.id)) {
      if (seen.has(after.id)) continue
      seen.set(after.id, after)
      open.push(after)
    }
  }
}

/** As `rowsOfChain`, of a session that must be there. */
export async function existingChain(
  parts: HandoffParts,
  workspace: string,
  session: string,
): Promise<readonly Entity[]> {
  const rows = await rowsOfChain(parts, workspace, session)
  if (rows.length === 0) throw notFound(session)
  return rows
}

/**
 * A chain in words, also one that branches.
 *
 * @example
 * chainText(await handoff.chain('default', 'a')) // 'a → b → c; a → d'
 */
export function chainText(chain: readonly Link[]): string {
  const runs: string[][] = []
  for (const { sessionId, continuedFrom } of chain) {
    const run = runs.find((one) => continuedFrom !== undefined && one.at(-1) === continuedFrom)
    if (run !== undefined) run.push(sessionId)
    else
      runs.push(
        continuedFrom !== undefined && runs.flat().includes(continuedFrom) ? [continuedFrom, sessionId] : [sessionId],
      )
  }
  return runs.map((run) => run.join(' → ')).join('; ')
}

/** Has those that go on from a session which is to be deleted go on from the one before it. */
export async function relinked(parts: HandoffParts, workspace: string, row: Entity): Promise<void> {
  const { continuedFrom } = metadataOf(row)
  const before = continuedFrom === undefined ? undefined : (await sessionRow(parts, workspace, continuedFrom))?.id
  for (const after of await rowsAfter(parts, workspace, row.id))
    await relink(parts, workspace, after, after.id === before ? undefined : before)
}

async function relink(
  { graph }: HandoffParts,
  workspace: string,
  { id }: Entity,
  before: string | undefined,
): Promise<void> {
  const rows = await Promise.all([id, originId(id)].map((one) => graph.entity(workspace, one)))
  const entities = rows.flatMap((row) => {
    if (row === undefined) return []
    const { continued_from: _, ...properties } = row.properties
    // Without a session it stays with what it was drawn from.
    return [
      {
        type: row.type,
        id: row.id,
        properties: before === undefined ? properties : { ...properties, continued_from: before },
      },
    ]
  })
  const relationships = before === undefined ? [] : [{ from: id, type: 'SESSION_CONTINUES', to: before, session: id }]
  await graph.write(workspace, { entities, relationships })
}

function linkOf(row: Entity): Link {
  const { sessionId, title, summary, createdAt, messageCount, continuedFrom } = metadataOf(row)
  const measured = restorationOf(row)?.preservation
  return {
    sessionId,
    title,
    summary,
    createdAt,
    messageCount,
    ...(continuedFrom === undefined ? {} : { continuedFrom }),
    ...(measured === undefined ? {} : { preservation: measured }),
  }
}
