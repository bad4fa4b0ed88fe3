import type { Graph } from '../graph/graph.ts'
import { conversationId, originId, stateId } from './save/rows.ts'

/** Forgets everything that was made of a session. Rows that a client has written over do not tell any more whose they are, and go by their ids. */
export async function eraseRows(graph: Graph, workspace: string, session: string): Promise<void> {
  const own = (await graph.entity(workspace, session))?.type === 'session' ? [session] : []
  await graph.write(workspace, { drop: [...own, originId(session), conversationId(session), stateId(session)] })
  await graph.erase(workspace, session)
}
