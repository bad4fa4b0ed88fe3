import type { Json, Message, Tokens } from '../../domain/entry.ts'
import { checkOption, MemoryError } from '../../domain/error.ts'
import { runInSlices } from '../../domain/work.ts'
import type { GraphChange } from '../../graph/types.ts'
import { internalsOf } from '../../memory.ts'
import { throwIfAborted } from '../../portable/abort.ts'
import { yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import { formatCount } from '../../text/formatCount.ts'
import { listSessions } from '../draftSessions.ts'
import type { FileState } from '../fileReferences.ts'
import type { CategoryWeights, ContextItem } from '../item.ts'
import type { PendingWrites } from '../pendingWrites.ts'
import { type RenderedHandoff, renderHandoffInSteps } from '../render/render.ts'
import {
  originId,
  type PreservationReport,
  type Restoration,
  type WorkspaceState,
  workspaceEntity,
  workspaceRowId,
} from '../rows.ts'
import { saveSession } from '../save/save.ts'
import {
  hasMessages,
  parseSessionId,
  readSavedSession,
  type SavedSession,
  sessionKey,
  sessionNotFound,
  toIsoTime,
} from '../sessions.ts'
import type { HandoffDeps, OperationContext } from '../settings.ts'
import { toTextMessages } from '../textMessage.ts'
import { collectMaterial, findRelatedSessions, type RelatedSession } from './material.ts'
import { learnWeights, measureCategoriesInSteps, measurePreservationInSteps } from './preservation.ts'
import { formatClosing, hashRecord, type SaveMethod } from './record.ts'

export type RestoreRequest = {
  /** Default: the most recent session of the workspace. */
  readonly sessionId?: string
  /** Maximum tokens of the text. Default: the `budget` setting. */
  readonly budget?: Tokens
  /** Topic of the new chat: matching content is preferred, and other sessions about it are mentioned. */
  readonly query?: string
  /**
   * Save instruction at the end of the text: the `save_session` tool or the `threadkeep save` command. Default: `tool`.
   */
  readonly method?: SaveMethod
}

export type RestoreResult = {
  readonly context: string
  /** Items shown in the text, most important first. */
  readonly contextItems: readonly ContextItem[]
  /** Files referenced by the conversation and their current state. */
  readonly fileReferences: readonly FileState[]
  readonly workspaceState: WorkspaceState
  /** New session, to be used for saving the new chat. */
  readonly sessionId: string
  /** Session that the new one continues. */
  readonly continues: string
  readonly title: string
  readonly tokens: Tokens
  readonly budget: Tokens
  readonly compressed: RenderedHandoff['compression']
  readonly preservation: PreservationReport
  /** Earlier sessions of the chain and other sessions about the same topic. */
  readonly earlier: readonly { readonly session: string; readonly summary: string }[]
  readonly degraded?: 'not durable'
  readonly warnings: readonly string[]
}

/** Renders the text a new chat starts with and creates the session that continues the restored one. */
export async function restoreSession(
  deps: HandoffDeps,
  pending: PendingWrites,
  workspace: string,
  request: RestoreRequest,
  context: OperationContext,
): Promise<RestoreResult> {
  const { settings, memory, clock } = deps
  const { budget = settings.budget, query, sessionId, method = 'tool' } = request
  checkOption('budget', budget, Number.isSafeInteger(budget) && budget >= 1, 'a whole number of tokens, 1 or more')
  // The store may work again.
  await pending.retry()
  const source = await findSource(deps, pending, workspace, sessionId, context)
  const { metadata, items } = source
  context.progress?.(1, 3, `found ${metadata.sessionId}`)
  const messages = await source.readMessages()
  const related = await findRelatedSessions(deps, workspace, source, query)
  const { material, warnings } = await collectMaterial(
    deps,
    { workspace, source, messages, related, budget, query },
    context,
  )
  throwIfAborted(context.signal, 'Restoring was stopped by the caller. Nothing was changed.')
  context.progress?.(2, 3, `checked ${formatCount(material.files.length, 'file')}`)
  const newSessionId = deps.generateSessionId(clock())
  const options = {
    budget,
    tokenizer: memory.tokenizer,
    closing: formatClosing({ session: newSessionId, from: metadata.sessionId }, method),
    minImportance: settings.importance,
    maxItems: settings.items,
    ...(query === undefined ? {} : { query }),
  }
  const rendered = await runInSlices(renderHandoffInSteps(material, options), yieldWhenLong)
  const preservation = await createReport(messages, items, rendered, budget, toIsoTime(clock()))
  const continuation = { session: newSessionId, source, rendered, preservation, related }
  const isDegraded = await createContinuation(deps, pending, workspace, continuation)
  context.progress?.(3, 3, 'restored')
  const shownIds = new Set(rendered.shownItems)
  return {
    context: rendered.text,
    contextItems: items.filter(({ id }) => shownIds.has(id)),
    fileReferences: material.files,
    workspaceState: source.workspaceState ?? {},
    continues: metadata.sessionId,
    title: metadata.title,
    tokens: rendered.tokens,
    compressed: rendered.compression,
    earlier: material.earlier.map(({ session, summary }) => ({ session, summary })),
    sessionId: newSessionId,
    budget,
    preservation,
    warnings,
    ...(isDegraded ? { degraded: 'not durable' } : {}),
  }
}

/** Predecessors followed from an empty session. */
const maxSteps = 100

/** Finds the session to restore. A session created by a restore and never written to is replaced by its predecessor. */
async function findSource(
  deps: HandoffDeps,
  pending: PendingWrites,
  workspace: string,
  requested: string | undefined,
  context: OperationContext,
): Promise<SavedSession> {
  const findNewest = async (): Promise<string | undefined> =>
    pending.newestPreview(workspace)?.metadata.sessionId ??
    (await listSessions(deps, workspace, { limit: 1 })).sessions[0]?.sessionId
  let id = requested === undefined ? await findNewest() : parseSessionId(workspace, requested)
  if (id === undefined)
    throw new MemoryError(
      'bad-option',
      'No session was saved in this workspace yet. Save one with save_session, or name another workspace.',
      { param: 'sessionId' },
    )
  for (let step = 0; step < maxSteps; step++) {
    const session: SavedSession | undefined =
      pending.preview(workspace, id) ?? (await readUpToDate(deps, pending, workspace, id, context))
    if (session === undefined) break
    const { messageCount, continuedFrom }: SavedSession['metadata'] = session.metadata
    if (messageCount > 0 || continuedFrom === undefined) return session
    id = continuedFrom
  }
  throw sessionNotFound(requested ?? id)
}

/** Reads a session; saves it first if messages were appended since its last save. */
async function readUpToDate(
  deps: HandoffDeps,
  pending: PendingWrites,
  workspace: string,
  id: string,
  context: OperationContext,
): Promise<SavedSession | undefined> {
  const saved = await readSavedSession(deps, workspace, id)
  if (!(await hasMessages(deps, workspace, id))) return saved
  const { messages } = await internalsOf(deps.memory).sessions.readHead(sessionKey(workspace, id), 0)
  if (saved?.metadata.messageCount === messages) return saved
  await saveSession(deps, pending, workspace, { sessionId: id }, context)
  return readSavedSession(deps, workspace, id)
}

/** Measures how much of what could be shown the restored text shows, in total and per category. */
async function createReport(
  messages: readonly Message[],
  items: readonly ContextItem[],
  { ownText }: RenderedHandoff,
  budget: Tokens,
  at: string,
): Promise<PreservationReport> {
  const texts = toTextMessages(messages).map(({ text }) => text)
  // Items sent by clients occur in no message.
  const clientItems = items.filter(({ sources }) => sources.length === 0).map(({ content }) => content)
  const byCategory = await runInSlices(measureCategoriesInSteps(items, ownText), yieldWhenLong)
  const original = [...texts, ...clientItems].join('\n')
  const total = await runInSlices(measurePreservationInSteps(original, ownText), yieldWhenLong)
  return { ...total, budget, at, categories: byCategory }
}

/** New session that continues a restored one. */
type Continuation = {
  readonly session: string
  readonly source: SavedSession
  readonly rendered: RenderedHandoff
  readonly preservation: PreservationReport
  readonly related: readonly RelatedSession[]
}

/** Estimated bytes of a pending continuation besides its list of omitted items. */
const baseBytes = 1_000

/** Writes the rows of a new session; resolves to true if the store failed and the write is pending. */
async function createContinuation(
  deps: HandoffDeps,
  pending: PendingWrites,
  workspace: string,
  continuation: Continuation,
): Promise<boolean> {
  const at = toIsoTime(deps.clock())
  const write = async (): Promise<void> => {
    const weights = await learnWeights(deps, workspace, continuation.preservation)
    await deps.graph.write(workspace, toRows(workspace, continuation, at, weights))
  }
  // The restored session must be written first.
  if (!pending.has(workspace, continuation.source.metadata.sessionId)) {
    try {
      await write()
      return false
    } catch (error) {
      if (!pending.isRetryable(error)) throw error
    }
  }
  const bytes = JSON.stringify(continuation.rendered.omittedItems).length + baseBytes
  pending.enqueue({ workspace, session: continuation.session, bytes, write })
  return true
}

/**
 * Builds the rows of a new session. They quote no message, so forgetting messages of the source does not affect them.
 */
function toRows(
  workspace: string,
  { session, source, rendered, preservation, related }: Continuation,
  at: string,
  weights: CategoryWeights,
): GraphChange {
  const { sessionId: from } = source.metadata
  const record = hashRecord(rendered.text, { session, from })
  const restoration: Restoration = {
    from,
    budget: preservation.budget,
    tokens: rendered.tokens,
    items: rendered.shownItems,
    left: rendered.omittedItems,
    preservation,
    ...(record === undefined ? {} : { record }),
  }
  const origin = { created_at: at, continued_from: from, restored: restoration as unknown as Json }
  const link = (type: string, to: string, properties: Readonly<Record<string, Json>> = {}) => ({
    from: session,
    type,
    to,
    session,
    properties,
  })
  return {
    entities: [
      workspaceEntity(workspace, { weights: { ...weights } }),
      { type: 'session_origin', id: originId(session), session, properties: origin },
      {
        type: 'session',
        id: session,
        session,
        properties: {
          ...origin,
          saved_at: at,
          workspace_id: workspace,
          title: '',
          summary: '',
          token_count: 0,
          message_count: 0,
        },
      },
    ],
    relationships: [
      link('SESSION_CONTINUES', from),
      link('SESSION_IN_WORKSPACE', workspaceRowId(workspace)),
      ...related.map((reference) => link('SESSION_REFERENCES', reference.session, { found: reference.found })),
    ],
  }
}
