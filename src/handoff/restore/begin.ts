import type { Json } from '../../domain/entry.ts'
import type { GraphChange } from '../../graph/graph.ts'
import type { Weights } from '../item.ts'
import type { Pending } from '../pending.ts'
import { recordMark } from '../record.ts'
import type { Measured, Restoration } from '../records.ts'
import type { Woven } from '../render.ts'
import { originId, workspaceRowId } from '../save/rows.ts'
import { isoOf, type Kept } from '../sessions.ts'
import type { HandoffParts } from '../settings.ts'
import { learned } from '../weights.ts'
import type { Related } from './material.ts'

/** A session that begins with what was restored of another one. */
export type Beginning = {
  readonly session: string
  readonly from: Kept
  readonly woven: Woven
  readonly measured: Measured
  readonly related: readonly Related[]
}

/** Begins the new session and links it; true if the store did not take it yet. */
export async function begun(
  parts: HandoffParts,
  pending: Pending,
  workspace: string,
  beginning: Beginning,
): Promise<boolean> {
  const at = isoOf(parts.clock())
  const write = async (): Promise<void> => {
    const weights = await learned(parts, workspace, beginning.measured)
    await parts.graph.write(workspace, rowsOf(workspace, beginning, at, weights))
  }
  // What it goes on from must be there first.
  if (!pending.isWaiting(workspace, beginning.from.metadata.sessionId)) {
    try {
      await write()
      return false
    } catch (error) {
      if (!pending.takes(error)) throw error
    }
  }
  pending.keep({
    workspace,
    session: beginning.session,
    bytes: JSON.stringify(beginning.woven.left).length + 1_000,
    write,
  })
  return true
}

/** It quotes nobody: what is forgotten of the session before it is not found here. */
function rowsOf(
  workspace: string,
  { session, from, woven, measured, related }: Beginning,
  at: string,
  weights: Weights,
): GraphChange {
  const { sessionId } = from.metadata
  const record = recordMark(woven.text, { session, from: sessionId })
  const restoration: Restoration = {
    from: sessionId,
    budget: measured.budget,
    tokens: woven.tokens,
    items: woven.items,
    left: woven.left,
    preservation: measured,
    ...(record === undefined ? {} : { record }),
  }
  const origin = { created_at: at, continued_from: sessionId, restored: restoration as unknown as Json }
  const link = (type: string, to: string, properties: Readonly<Record<string, Json>> = {}) => ({
    from: session,
    type,
    to,
    session,
    properties,
  })
  return {
    entities: [
      {
        type: 'workspace',
        id: workspaceRowId(workspace),
        properties: { workspace_id: workspace, weights: { ...weights } },
      },
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
      link('SESSION_CONTINUES', sessionId),
      link('SESSION_IN_WORKSPACE', workspaceRowId(workspace)),
      ...related.map((one) => link('SESSION_REFERENCES', one.session, { found: one.found })),
    ],
  }
}
