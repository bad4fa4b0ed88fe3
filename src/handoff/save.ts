import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { weighed } from '../context/render.ts'
import { parseMessage } from '../domain/chat.ts'
import { type Message, messageId, type Tokens } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { internalsOf } from '../memory.ts'
import { stopIf } from '../portable/stop.ts'
import { many } from '../text/many.ts'
import { noteBegun } from './draftSessions.ts'
import { eraseRows } from './erase.ts'
import type { Pending } from './pending.ts'
import type { Restoration } from './records.ts'
import { type Accepted, accepted, isGiven, type SaveRequest } from './save/accept.ts'
import { type Basis, drafted } from './save/draft.ts'
import { fingerprint, freshIn } from './save/fresh.ts'
import { begunId, type Draft, fileId, rowsOf, workspaceRowId } from './save/rows.ts'
import { isThere, type Kept, kept, keyOf, notFound, refuseTaken } from './sessions.ts'
import type { Attending, HandoffParts } from './settings.ts'

export type { GivenFile, GivenItem, SaveRequest } from './save/accept.ts'

export type SaveResult = {
  readonly sessionId: string
  readonly workspaceId: string
  readonly savedAt: string
  readonly title: string
  readonly summary: string
  readonly tokenCount: Tokens
  /** How many messages the session has, and how many of them are new. */
  readonly messages: number
  readonly added: number
  readonly items: number
  readonly files: number
  readonly continues?: string
  /** Other sessions that it speaks of. */
  readonly references: readonly string[]
  /** The store failed: this is kept in memory and written as soon as it can be. It is not saved yet. */
  readonly degraded?: 'not durable'
  readonly warnings: readonly string[]
}

/** So many messages are stored at a time. */
const most = 500

/**
 * Saves a conversation: what was said is durable first, then everything that is made of it. If the store fails, all of
 * it is kept in memory and tried again.
 */
export async function saved(
  parts: HandoffParts,
  pending: Pending,
  workspace: string,
  request: SaveRequest,
  attending: Attending,
): Promise<SaveResult> {
  // What waits comes first: a session must not be overtaken by its own future.
  await pending.retry()
  const asked = await accepted(parts, workspace, request)
  const { client = '' } = attending
  const waits = [asked.id, asked.continues].some((id) => id !== undefined && pending.isWaiting(workspace, id))
  if (!waits) {
    try {
      return await written(parts, asked, attending)
    } catch (error) {
      if (!pending.takes(error)) throw error
    }
  }
  const { draft, added, preview } = await previewed(parts, asked, pending.kept(workspace, asked.id))
  pending.keep({
    workspace,
    session: asked.id,
    bytes: JSON.stringify(asked).length,
    kept: preview,
    write: async () => written(parts, await unbound(parts, asked), { client }),
  })
  return { ...resultOf(draft, added, []), degraded: 'not durable' }
}

async function written(parts: HandoffParts, asked: Accepted, attending: Attending): Promise<SaveResult> {
  const { memory } = parts
  const { sessions } = internalsOf(memory)
  const { workspace, id } = asked
  const key = keyOf(workspace, id)
  // Read first: whoever deletes it from here on has the last word.
  const { epoch } = await sessions.head(key, 0)
  for (const one of [asked.isNew ? undefined : id, asked.continues])
    if (one !== undefined && !(await isThere(parts, workspace, one))) throw notFound(one)
  await refuseTaken(parts, workspace, id)
  if (asked.said.length > 0) await noteBegun(parts, workspace, id)
  const added = await appended(parts, asked, epoch, attending)
  attending.progress?.(1, 5, `stored ${many(added, 'message')}`)
  for (;;) {
    const head = await sessions.head(key, 0)
    if (head.epoch !== epoch) await takenBack(parts, workspace, id)
    const before = await kept(parts, workspace, id)
    const messages = await memory.transcript(key)
    const { draft, warnings } = await drafted(
      parts,
      { accepted: asked, before, messages, startedAt: head.startedAt },
      attending,
    )
    // Whoever has named or marked something meanwhile is not overruled by what was read before: the rows are made again.
    if (!isDeepStrictEqual(toldOf(before), toldOf(await kept(parts, workspace, id)))) continue
    await writtenRows(parts, draft, before)
    const now = await sessions.head(key, 0)
    // Whoever has added to the session meanwhile may have written before this: then the rows are made again of everything.
    if (now.epoch !== epoch || now.last > head.last) continue
    attending.progress?.(5, 5, 'saved')
    return resultOf(draft, added, warnings)
  }
}

/** What clients have said of a session, besides what was said in it. */
const toldOf = (session: Kept | undefined): unknown =>
  session && [
    session.metadata.title,
    session.metadata.continuedFrom,
    session.state,
    session.marked,
    session.items.filter((item) => isGiven(session.metadata.sessionId, item)),
  ]

/** A session that was deleted while it was saved stays deleted. */
async function takenBack({ graph }: HandoffParts, workspace: string, id: string): Promise<never> {
  await eraseRows(graph, workspace, id)
  throw new MemoryError(
    'erased',
    `Session ${id} was deleted while it was being saved. Save it without a sessionId to begin a new one.`,
  )
}

/** Writes what was made of a session, and takes away what is no longer found in it. */
async function writtenRows(parts: HandoffParts, draft: Draft, before: Kept | undefined): Promise<void> {
  const { workspace, id } = draft
  const rows = rowsOf(draft)
  const left = new Set(rows.entities.map((entity) => entity.id))
  const known = [
    ...(before?.items ?? []).map((item) => item.id),
    ...(before?.files ?? []).map(({ path }) => fileId(id, path)),
  ]
  const entities = [...rows.entities, ...(await workspaceRow(parts, workspace))]
  await parts.graph.write(workspace, {
    ...rows,
    entities,
    drop: [begunId(id), ...known.filter((one) => !left.has(one))],
  })
}

/** What it goes on from may have been deleted while it waited: that is no reason to lose what was said since. */
async function unbound(parts: HandoffParts, asked: Accepted): Promise<Accepted> {
  const { workspace, continues } = asked
  return continues === undefined || (await isThere(parts, workspace, continues))
    ? asked
    : { ...asked, continues: undefined }
}

/** The workspace's own row, which sessions hang on to; it is written once. */
async function workspaceRow({ graph }: HandoffParts, workspace: string) {
  const id = workspaceRowId(workspace)
  return (await graph.entity(workspace, id)) === undefined
    ? [{ type: 'workspace', id, properties: { workspace_id: workspace } }]
    : []
}

/** Stores what is not stored yet. The same messages after the same ones are the same operation, whoever stores them. */
async function appended(
  { memory }: HandoffParts,
  { workspace, id, said, at }: Accepted,
  epoch: number,
  { signal }: Attending,
): Promise<number> {
  const key = keyOf(workspace, id)
  // Read first: what somebody stores in between is then found among what is stored. What was forgotten still counts, so that it can be said again.
  const { last } = await internalsOf(memory).sessions.head(key, 0)
  const stored = await memory.transcript(key)
  const parsed = said.map((message, place) => parseMessage(message, place, at))
  const told = parsed.map(fingerprint)
  const from = freshIn(stored, parsed)
  for (let place = from; place < said.length; place += most) {
    stopIf(signal, 'Saving was stopped by the caller. What was stored stays; save the same again to continue.')
    const operationId = `save ${last + place - from} ${hash('sha256', told.slice(place, place + most).join('\n'))}`
    await memory.append(key, said.slice(place, place + most), { operationId, epoch })
  }
  return said.length - from
}

type Preview = { readonly draft: Draft; readonly added: number; readonly preview: Kept }

/** What would be saved, made in memory alone: the session can go on elsewhere before the store is back. */
async function previewed(parts: HandoffParts, asked: Accepted, waiting: Kept | undefined): Promise<Preview> {
  const { memory } = parts
  const { workspace, id, at } = asked
  const key = keyOf(workspace, id)
  const before = waiting ?? (asked.isNew ? undefined : await kept(parts, workspace, id).catch(() => undefined))
  const stored =
    waiting === undefined ? await (asked.isNew ? [] : memory.transcript(key).catch(() => [])) : await waiting.messages()
  const parsed = asked.said.map((message, place) => parseMessage(message, place, at))
  const from = freshIn(stored, parsed)
  const messages = [...stored]
  for (const said of parsed.slice(from)) {
    const sequence = (messages.at(-1)?.sequence ?? 0) + 1
    messages.push({
      kind: 'message',
      id: messageId(sequence),
      sequence,
      offset: 0,
      ...weighed(memory.tokenizer, await memory.asKept(key, said)),
    })
  }
  const basis: Basis = { accepted: asked, before, messages, startedAt: at }
  // Nobody else is asked, and what cannot be read is done without: the store may be gone altogether.
  const { draft } = await drafted({ ...parts, graph: unread, providers: undefined, files: undefined }, basis, {})
  return { draft, added: parsed.length - from, preview: keptOf(draft, messages, before?.marked ?? []) }
}

/** A graph that nothing can be read from. */
const unread: HandoffParts['graph'] = {
  write: async () => ({ written: 0, unchanged: 0, dropped: 0 }),
  entity: async () => undefined,
  entities: async () => ({ entities: [], total: 0 }),
  relationships: async () => ({ relationships: [], total: 0 }),
  erase: async () => 0,
  close: async () => undefined,
}

const keptOf = (draft: Draft, messages: readonly Message[], marked: readonly string[]): Kept => ({
  metadata: {
    sessionId: draft.id,
    workspaceId: draft.workspace,
    title: draft.title,
    createdAt: draft.createdAt,
    savedAt: draft.savedAt,
    tokenCount: draft.tokens,
    messageCount: draft.messages,
    summary: draft.levels[0]?.text ?? '',
    ...(draft.continues === undefined ? {} : { continuedFrom: draft.continues }),
    degraded: 'not durable',
  },
  marked,
  ...(draft.restored === undefined ? {} : { restored: draft.restored as unknown as Restoration }),
  levels: draft.levels.map(({ text }) => text),
  items: draft.items,
  files: draft.files,
  ...(draft.state === undefined ? {} : { state: draft.state }),
  provided: draft.provided,
  messages: () => Promise.resolve(messages),
})

const resultOf = (draft: Draft, added: number, warnings: readonly string[]): SaveResult => ({
  sessionId: draft.id,
  workspaceId: draft.workspace,
  savedAt: draft.savedAt,
  title: draft.title,
  summary: draft.levels[0]?.text ?? '',
  tokenCount: draft.tokens,
  messages: draft.messages,
  added,
  items: draft.items.length,
  files: draft.files.length,
  ...(draft.continues === undefined ? {} : { continues: draft.continues }),
  references: draft.references.map(({ session }) => session),
  warnings,
})
