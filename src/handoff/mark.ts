import { MemoryError } from '../domain/error.ts'
import type { Pending } from './pending.ts'
import { saved } from './save.ts'
import { kept, keyOf, notFound } from './sessions.ts'
import type { HandoffParts } from './settings.ts'

/** What is important: messages by their ids, items by theirs, or whatever says a text. */
export type Marking = { readonly messageIds?: readonly string[]; readonly itemIds?: readonly string[]; readonly text?: string }
/** Ids of the messages that are marked by now, and how many of them are new. */
export type Marked = { readonly sessionId: string; readonly marked: readonly string[]; readonly added: number }

/** Marks what was said as important, and weighs the items of the session anew. */
export async function marked(parts: HandoffParts, pending: Pending, workspace: string, session: string, marking: Marking): Promise<Marked> {
  const { memory, graph } = parts
  await pending.retry()
  pending.refuseWaiting(workspace, session)
  const messages = await memory.transcript(keyOf(workspace, session))
  const before = await kept(parts, workspace, session)
  if (before === undefined && messages.length === 0) throw notFound(session)
  const { messageIds = [], itemIds = [], text = '' } = marking
  const sources = (before?.items ?? []).filter(({ id }) => itemIds.includes(id)).flatMap((item) => item.sources)
  const wanted = new Set([...messageIds, ...sources])
  const found = messages.filter(({ id, content }) => wanted.has(id) || (text !== '' && content.includes(text))).map(({ id }) => id)
  if (found.length === 0)
    throw new MemoryError(
      'bad-option',
      'Nothing in the session is what should be marked. Give ids of its messages or items, or a text that one of them holds.',
      {
        param: 'messageIds',
      },
    )
  const { written } = await graph.write(workspace, {
    // A row for each: two that mark at once do not take back what the other marked.
    entities: found.map((message) => ({ type: 'mark', id: `mark_${session}_${message}`, session, sources: [message], properties: { message } })),
  })
  await saved(parts, pending, workspace, { sessionId: session }, {})
  return { sessionId: session, marked: [...new Set([...(before?.marked ?? []), ...found])], added: written }
}
