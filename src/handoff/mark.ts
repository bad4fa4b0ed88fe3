import { MemoryError } from '../domain/error.ts'
import { clip } from '../text/clip.ts'
import type { Pending } from './pending.ts'
import { saved } from './save.ts'
import { kept, keyOf, notFound } from './sessions.ts'
import type { HandoffParts } from './settings.ts'
import { stands } from './stands.ts'

/** What is important: messages by their ids, items by theirs, or whatever says a text, with whole words. */
export type Marking = {
  readonly messageIds?: readonly string[]
  readonly itemIds?: readonly string[]
  readonly text?: string
}
/** Ids of the messages that are marked by now, how many of them are new, and how those read that were meant. */
export type Marked = {
  readonly sessionId: string
  readonly marked: readonly string[]
  readonly added: number
  readonly quotes: readonly string[]
}

/** So much of a message is quoted. */
const quoted = 120

/** Marks what was said as important, and weighs the items of the session anew. */
export async function marked(
  parts: HandoffParts,
  pending: Pending,
  workspace: string,
  session: string,
  marking: Marking,
): Promise<Marked> {
  const { memory, graph } = parts
  await pending.retry()
  pending.refuseWaiting(workspace, session)
  const messages = await memory.transcript(keyOf(workspace, session))
  const before = await kept(parts, workspace, session)
  if (before === undefined && messages.length === 0) throw notFound(session)
  const { messageIds = [], itemIds = [], text = '' } = marking
  const sources = (before?.items ?? []).filter(({ id }) => itemIds.includes(id)).flatMap((item) => item.sources)
  const wanted = new Set([...messageIds, ...sources])
  const meant = messages.filter(({ id, content }) => wanted.has(id) || stands(text, content) >= 0)
  const found = meant.map(({ id }) => id)
  if (found.length === 0)
    throw new MemoryError(
      'bad-option',
      'Nothing in the session is what should be marked. Give ids of its messages or items, or whole words that one of them holds.',
      {
        param: 'messageIds',
      },
    )
  const { written } = await graph.write(workspace, {
    // A row for each: two that mark at once do not take back what the other marked.
    entities: found.map((message) => ({
      type: 'mark',
      id: `mark_${session}_${message}`,
      session,
      sources: [message],
      properties: { message },
    })),
  })
  await saved(parts, pending, workspace, { sessionId: session }, {})
  const quotes = meant.map(({ content }) => quoteOf(content, stands(text, content)))
  return { sessionId: session, marked: [...new Set([...(before?.marked ?? []), ...found])], added: written, quotes }
}

/** The line that was meant, else how the message begins. */
const quoteOf = (content: string, at: number): string =>
  clip(
    content
      .slice(content.lastIndexOf('\n', Math.max(0, at)) + 1)
      .replaceAll(/\s+/g, ' ')
      .trim(),
    quoted,
    '…',
  )
