import { type Incoming, parseMessage } from '../../domain/chat.ts'
import type { Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { type Names, withoutRecords } from '../record.ts'
import { metadataOf, restorationOf } from '../records.ts'
import { isBegun, sessionRow } from '../sessions.ts'
import type { HandoffParts } from '../settings.ts'
import { messagesIn, turnsOf } from './turns.ts'

/** What was said, each message with its time, and the records of other chats that were cut out of it. */
export type Told = { readonly said: readonly Incoming[]; readonly records: readonly Names[] }

/**
 * What clients tell, as it may be stored: checked, with times, so that the same is the same whenever it is written, and
 * without the records that a chat was begun with: those are no words of whoever pasted them.
 */
export async function toldIn(
  parts: HandoffParts,
  workspace: string,
  messages: readonly Incoming[],
  at: Millis,
): Promise<Told> {
  const said: Incoming[] = []
  const records: Names[] = []
  for (const [place, message] of messages.entries()) {
    refuseSilent(message, place)
    const { at: time, content } = parseMessage(message, place, at)
    const { text, found } = await withoutRecords(content, (names) => markOf(parts, workspace, names))
    records.push(...found)
    const [record] = found
    if (record === undefined) said.push({ ...message, at: time })
    // A call of a tool keeps its answer.
    else if (text !== '' || message.role === 'tool')
      said.push({ ...message, at: time, content: text || `[the record of ${record.from}]` })
  }
  return { said, records }
}

/** A conversation as text, in its turns. A record is cut out first: it quotes speakers, who have no turn in this one. */
export async function turnsIn(
  parts: HandoffParts,
  workspace: string,
  text: string,
): Promise<{ readonly turns: readonly Incoming[]; readonly records: readonly Names[] }> {
  const given = messagesIn(text)
  if (given !== undefined) return { turns: given, records: [] }
  const { text: rest, found } = await withoutRecords(text, (names) => markOf(parts, workspace, names))
  return { turns: turnsOf(rest), records: found }
}

/** Refuses a message without words: somebody has put them into another field, and they would be lost. */
function refuseSilent(message: Incoming, place: number): void {
  const isSilent = message?.content === undefined && (message?.tool_calls ?? []).length === 0
  if (!isSilent || typeof message !== 'object' || message === null) return
  const param = `messages[${place}].content`
  throw new MemoryError('bad-message', `${param} is missing; it holds what was said, as text or as a list of parts.`, {
    param,
  })
}

/** The mark of the record that a session was begun with. Whoever cannot find it leaves what was said as it is. */
async function markOf(parts: HandoffParts, workspace: string, { session, from }: Names): Promise<string | undefined> {
  const row = await sessionRow(parts, workspace, session).catch(() => undefined)
  const restored = row === undefined ? undefined : restorationOf(row)
  return restored?.from === from ? restored.record : undefined
}

/** The session that a record was made for, if nobody has said anything in it yet: then this is its chat. */
export async function chatOf(
  parts: HandoffParts,
  workspace: string,
  [record]: readonly Names[],
): Promise<string | undefined> {
  if (record === undefined) return undefined
  const row = await sessionRow(parts, workspace, record.session)
  const isEmpty =
    row !== undefined && metadataOf(row).messageCount === 0 && !(await isBegun(parts, workspace, record.session))
  return isEmpty ? record.session : undefined
}
