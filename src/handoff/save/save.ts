import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { parseMessage } from '../../domain/chat.ts'
import type { Message, Tokens } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { runInSlices } from '../../domain/work.ts'
import type { EntityDraft } from '../../graph/types.ts'
import { internalsOf } from '../../memory.ts'
import { throwIfAborted } from '../../portable/abort.ts'
import { yieldToEventLoop, yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import { formatCount } from '../../text/formatCount.ts'
import { markDraftSession } from '../draftSessions.ts'
import type { PendingWrites } from '../pendingWrites.ts'
import { deleteSessionRows } from '../retention.ts'
import {
  draftMarkerId,
  fileId,
  markEntity,
  metadataFromRow,
  type Restoration,
  type SessionDraft,
  toGraphRows,
  workspaceEntity,
  workspaceRowId,
} from '../rows.ts'
import {
  assertIdAvailable,
  findSessionRow,
  readMessageHashes,
  readSavedSession,
  type SavedSession,
  sessionExists,
  sessionKey,
  sessionNotFound,
} from '../sessions.ts'
import type { HandoffDeps, OperationContext } from '../settings.ts'
import { buildDraft, type DraftInput } from './draft.ts'
import { type LeftOut, shortenedOperationId, shortenMessages, toMessages, toNeededDraft } from './keepNeeded.ts'
import { fingerprintAll, hashMessages, indexOfFirstNewMessage } from './newMessages.ts'
import { isClientItem, type ParsedSave, parseSaveRequest, type SaveRequest } from './request.ts'

export type SaveResult = {
  readonly sessionId: string
  readonly workspaceId: string
  readonly savedAt: string
  readonly title: string
  readonly summary: string
  readonly tokenCount: Tokens
  /** Total number of messages in the session. */
  readonly messages: number
  /** Number of messages stored by this save. */
  readonly added: number
  readonly items: number
  readonly files: number
  readonly continues?: string
  /** Present if only the needed lines of the messages are kept: what this save left out. */
  readonly leftOut?: LeftOut
  /** Ids of other sessions named in the conversation. */
  readonly references: readonly string[]
  /** The store failed: the session is held in memory and retried. It is not saved yet. */
  readonly degraded?: 'not durable'
  readonly warnings: readonly string[]
}

const messagesPerAppend = 500

/**
 * Saves a conversation: first its messages, then everything derived from them. If the store fails, the save is queued.
 */
export async function saveSession(
  deps: HandoffDeps,
  pending: PendingWrites,
  workspace: string,
  request: SaveRequest,
  context: OperationContext,
): Promise<SaveResult> {
  // Pending writes go first, so that a session's writes stay in order.
  await pending.retry()
  const parsed = await parseSaveRequest(deps, workspace, request)
  const { client = '' } = context
  const mustWait = [parsed.id, parsed.continues].some((id) => id !== undefined && pending.has(workspace, id))
  if (!mustWait) {
    try {
      return await writeSession(deps, parsed, context)
    } catch (error) {
      if (!pending.isRetryable(error)) throw error
    }
  }
  const { draft, added, preview } = await previewSave(deps, parsed, pending.preview(workspace, parsed.id))
  pending.enqueue({
    workspace,
    session: parsed.id,
    bytes: JSON.stringify(parsed).length,
    preview,
    write: async () => writeSession(deps, await dropMissingPredecessor(deps, parsed), { client }),
  })
  return { ...toResult(draft, added, []), degraded: 'not durable' }
}

async function writeSession(deps: HandoffDeps, parsed: ParsedSave, context: OperationContext): Promise<SaveResult> {
  const { memory } = deps
  const { sessions } = internalsOf(memory)
  const { workspace, id } = parsed
  const key = sessionKey(workspace, id)
  // The epoch is read first: a deletion from here on takes precedence over this save.
  const { epoch } = await sessions.readHead(key, 0)
  for (const required of [parsed.isNew ? undefined : id, parsed.continues])
    if (required !== undefined && !(await sessionExists(deps, workspace, required))) throw sessionNotFound(required)
  await assertIdAvailable(deps, workspace, id)
  if (parsed.messages.length > 0) await markDraftSession(deps, workspace, id)
  const row = parsed.isNew ? undefined : await findSessionRow(deps, workspace, id)
  const keep = parsed.keep ?? (row === undefined ? undefined : metadataFromRow(row).keep)
  if (keep === 'needed') return writeNeeded(deps, parsed, epoch, context)
  const added = await appendNewMessages(deps, parsed, epoch, context)
  context.progress?.(1, 5, `stored ${formatCount(added, 'message')}`)
  for (;;) {
    const head = await sessions.readHead(key, 0)
    if (head.epoch !== epoch) await rollBackDeleted(deps, workspace, id)
    const before = await readSavedSession(deps, workspace, id)
    await yieldToEventLoop()
    const messages = await memory.transcript(key)
    await yieldToEventLoop()
    const { draft, warnings } = await buildDraft(deps, { parsed, before, messages, startedAt: head.startedAt }, context)
    // Optimistic concurrency: if a client changed its own fields or marks meanwhile, build the rows again.
    if (!isDeepStrictEqual(clientFields(before), clientFields(await readSavedSession(deps, workspace, id)))) continue
    await writeRows(deps, draft, before)
    const after = await sessions.readHead(key, 0)
    // Messages appended meanwhile are missing from the rows: build them again.
    if (after.epoch !== epoch || after.lastSequence > head.lastSequence) continue
    context.progress?.(5, 5, 'saved')
    return toResult(draft, added, warnings)
  }
}

/**
 * Saves a session without its full transcript: derives everything from the full messages, stores the needed lines, and
 * forgets messages that were stored in full. They are forgotten last, so that an interruption loses nothing.
 */
async function writeNeeded(
  deps: HandoffDeps,
  parsed: ParsedSave,
  epoch: number,
  context: OperationContext,
): Promise<SaveResult> {
  const { memory } = deps
  const { workspace, id } = parsed
  const key = sessionKey(workspace, id)
  const before = await readSavedSession(deps, workspace, id)
  const { startedAt, lastSequence } = await internalsOf(memory).sessions.readHead(key, 0)
  const stored = await memory.transcript(key)
  const knownHashes = await readMessageHashes(deps, workspace, id)
  const sent = parsed.messages.map((message, index) => parseMessage(message, index, parsed.at))
  const added = sent.slice(await indexOfFirstNewMessage(stored, sent, knownHashes))
  const messages = [...stored, ...(await toMessages(memory, key, stored, added))]
  const input = { parsed, before, messages, startedAt: startedAt || parsed.at }
  const { draft, warnings } = await buildDraft(deps, input, context)
  const shortening = shortenMessages(deps, messages.slice(knownHashes.length))
  const { shortened, leftOut } = await runInSlices(shortening, yieldWhenLong)
  const ids = stored.slice(0, knownHashes.length).map((message) => message.id)
  for (let index = 0; index < shortened.length; index += messagesPerAppend) {
    throwIfAborted(context.signal, 'Saving was stopped by the caller. Save the same conversation again to finish.')
    const batch = shortened.slice(index, index + messagesPerAppend)
    const operationId = shortenedOperationId(batch, lastSequence + index)
    ids.push(...(await memory.append(key, batch, { operationId, epoch })).map((message) => message.id))
  }
  const replaced = stored.slice(knownHashes.length).map((message) => message.id)
  if (replaced.length > 0) await memory.forget({ key: `${workspace}:${id}`, messageIds: replaced }, { deferWipe: true })
  const needed = toNeededDraft(deps, draft, messages, { ids, hashes: await hashMessages(messages, knownHashes) })
  const newIds = new Map(messages.map((message, index) => [message.id, ids[index] ?? message.id]))
  const marks = (before?.markedMessages ?? []).flatMap((message) => newIds.get(message) ?? [])
  await writeRows(
    deps,
    needed,
    before,
    marks.map((message) => markEntity(id, message)),
  )
  if ((await internalsOf(memory).sessions.readHead(key, 0)).messages === 0) await rollBackDeleted(deps, workspace, id)
  context.progress?.(5, 5, 'saved')
  return { ...toResult(needed, added.length, warnings), leftOut }
}

/** Fields of a session that clients set and that are not derived from its messages. */
const clientFields = (session: SavedSession | undefined): unknown =>
  session && [
    session.metadata.title,
    session.metadata.continuedFrom,
    session.workspaceState,
    session.markedMessages,
    session.items.filter((item) => isClientItem(session.metadata.sessionId, item)),
  ]

/** A session deleted while it is being saved stays deleted. */
async function rollBackDeleted({ graph }: HandoffDeps, workspace: string, id: string): Promise<never> {
  await deleteSessionRows(graph, workspace, id)
  throw new MemoryError(
    'erased',
    `Session ${id} was deleted while it was being saved. Save it without a sessionId to begin a new one.`,
  )
}

/** Writes the rows of a session and deletes rows of items and files it no longer has. */
async function writeRows(
  deps: HandoffDeps,
  draft: SessionDraft,
  before: SavedSession | undefined,
  marks: readonly EntityDraft[] = [],
): Promise<void> {
  const { workspace, id } = draft
  const rows = toGraphRows(draft)
  const currentIds = new Set(rows.entities.map((entity) => entity.id))
  const previousIds = [
    ...(before?.items ?? []).map((item) => item.id),
    ...(before?.files ?? []).map(({ path }) => fileId(id, path)),
  ]
  await deps.graph.write(workspace, {
    ...rows,
    entities: [...rows.entities, ...marks, ...(await missingWorkspaceRow(deps, workspace))],
    deleteEntities: [draftMarkerId(id), ...previousIds.filter((rowId) => !currentIds.has(rowId))],
  })
}

/** Returns the workspace row if it was not written yet. */
export const missingWorkspaceRow = async ({ graph }: HandoffDeps, workspace: string) =>
  (await graph.getEntity(workspace, workspaceRowId(workspace))) === undefined ? [workspaceEntity(workspace)] : []

/** Removes the link to a predecessor that was deleted while the save was pending, so that the messages are not lost. */
async function dropMissingPredecessor(deps: HandoffDeps, parsed: ParsedSave): Promise<ParsedSave> {
  const { workspace, continues } = parsed
  return continues === undefined || (await sessionExists(deps, workspace, continues))
    ? parsed
    : { ...parsed, continues: undefined }
}

/**
 * Appends the messages that are not stored yet. The operation id depends on content and position, so concurrent saves
 * of the same messages store them once.
 */
async function appendNewMessages(
  deps: HandoffDeps,
  { workspace, id, messages, at }: ParsedSave,
  epoch: number,
  { signal }: OperationContext,
): Promise<number> {
  const { memory } = deps
  const key = sessionKey(workspace, id)
  // `last` is read before the transcript: messages stored in between then appear in the transcript. It counts forgotten
  // messages, so that a forgotten message can be stored again.
  const { lastSequence } = await internalsOf(memory).sessions.readHead(key, 0)
  const stored = await memory.transcript(key)
  const parsedMessages = messages.map((message, index) => parseMessage(message, index, at))
  const fingerprints = await fingerprintAll(parsedMessages)
  const from = await indexOfFirstNewMessage(stored, parsedMessages, await readMessageHashes(deps, workspace, id))
  for (let index = from; index < messages.length; index += messagesPerAppend) {
    throwIfAborted(
      signal,
      'Saving was stopped by the caller. Stored messages stay; save the same conversation again to continue.',
    )
    const end = index + messagesPerAppend
    const operationId = `save ${lastSequence + index - from} ${hash('sha256', fingerprints.slice(index, end).join('\n'))}`
    await memory.append(key, messages.slice(index, end), { operationId, epoch })
  }
  return messages.length - from
}

type SavePreview = { readonly draft: SessionDraft; readonly added: number; readonly preview: SavedSession }

/** Builds the result of a save in memory, so that the session can be restored before the store works again. */
async function previewSave(
  deps: HandoffDeps,
  parsed: ParsedSave,
  pendingPreview: SavedSession | undefined,
): Promise<SavePreview> {
  const { memory } = deps
  const { workspace, id, at } = parsed
  const key = sessionKey(workspace, id)
  const before =
    pendingPreview ?? (parsed.isNew ? undefined : await readSavedSession(deps, workspace, id).catch(() => undefined))
  const stored =
    pendingPreview === undefined
      ? await (parsed.isNew ? [] : memory.transcript(key).catch(() => []))
      : await pendingPreview.readMessages()
  const parsedMessages = parsed.messages.map((message, index) => parseMessage(message, index, at))
  const knownHashes = await readMessageHashes(deps, workspace, id).catch(() => [])
  const from = await indexOfFirstNewMessage(stored, parsedMessages, knownHashes)
  const messages = [...stored, ...(await toMessages(memory, key, stored, parsedMessages.slice(from)))]
  const input: DraftInput = { parsed, before, messages, startedAt: at }
  // Uses no graph, providers or files: the store may be completely unavailable.
  const offlineDeps = { ...deps, graph: emptyGraph, providers: undefined, files: undefined }
  const { draft } = await buildDraft(offlineDeps, input, {})
  return {
    draft,
    added: parsedMessages.length - from,
    preview: toSavedSession(draft, messages, before?.markedMessages ?? []),
  }
}

const emptyGraph: HandoffDeps['graph'] = {
  write: async () => ({ written: 0, unchanged: 0, dropped: 0 }),
  getEntity: async () => undefined,
  queryEntities: async () => ({ entities: [], total: 0 }),
  queryRelationships: async () => ({ relationships: [], total: 0 }),
  erase: async () => 0,
  close: async () => undefined,
}

const toSavedSession = (
  draft: SessionDraft,
  messages: readonly Message[],
  markedMessages: readonly string[],
): SavedSession => ({
  metadata: {
    sessionId: draft.id,
    workspaceId: draft.workspace,
    title: draft.title,
    createdAt: draft.createdAt,
    savedAt: draft.savedAt,
    tokenCount: draft.tokens,
    messageCount: draft.messages,
    summary: draft.summaries[0]?.text ?? '',
    ...(draft.continues === undefined ? {} : { continuedFrom: draft.continues }),
    degraded: 'not durable',
  },
  markedMessages,
  ...(draft.restored === undefined ? {} : { restoration: draft.restored as unknown as Restoration }),
  summaries: draft.summaries.map(({ text }) => text),
  items: draft.items,
  files: draft.files,
  ...(draft.workspaceState === undefined ? {} : { workspaceState: draft.workspaceState }),
  provided: draft.provided,
  readMessages: () => Promise.resolve(messages),
})

const toResult = (draft: SessionDraft, added: number, warnings: readonly string[]): SaveResult => ({
  sessionId: draft.id,
  workspaceId: draft.workspace,
  savedAt: draft.savedAt,
  title: draft.title,
  summary: draft.summaries[0]?.text ?? '',
  tokenCount: draft.tokens,
  messages: draft.messages,
  added,
  items: draft.items.length,
  files: draft.files.length,
  ...(draft.continues === undefined ? {} : { continues: draft.continues }),
  references: draft.references.map(({ session }) => session),
  warnings,
})
