import type { Json } from '../../domain/entry.ts'
import type { GraphChange } from '../../graph/graph.ts'
import type { CategoryWeights } from '../item.ts'
import type { PendingWrites } from '../pendingWrites.ts'
import type { RenderedHandoff } from '../render/render.ts'
import { originId, type PreservationReport, type Restoration, workspaceEntity, workspaceRowId } from '../rows.ts'
import { type SavedSession, toIsoTime } from '../sessions.ts'
import type { HandoffDeps } from '../settings.ts'
import type { RelatedSession } from './material.ts'
import { learnWeights } from './preservation.ts'
import { hashRecord } from './record.ts'

/** New session that continues a restored one. */
export type Continuation = {
  readonly session: string
  readonly source: SavedSession
  readonly rendered: RenderedHandoff
  readonly preservation: PreservationReport
  readonly related: readonly RelatedSession[]
}

/** Estimated bytes of a pending continuation besides its list of omitted items. */
const baseBytes = 1_000

/** Writes the rows of a new session; resolves to true if the store failed and the write is pending. */
export async function createContinuation(
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

/** Builds the rows of a new session. They quote no message, so forgetting messages of the source does not affect them. */
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
