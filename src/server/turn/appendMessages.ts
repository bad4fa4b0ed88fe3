import type { Incoming, Parsed } from '../../domain/chat.ts'
import type { Message } from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import type { Head } from '../../domain/session.ts'
import type { Appended } from '../../memory/append.ts'
import { internalsOf, type Memory } from '../../memory.ts'

/** Characters stored per batch; between batches other requests get their turn. */
const batchCharacters = 262_144

/**
 * Stores the new messages of a turn. A long history is stored in batches; after a crash the client resends what is
 * missing. `head` spares reading the session again; it must have been read just now.
 */
export async function appendMessages(
  memory: Memory,
  key: Key,
  messages: readonly Parsed[],
  head: Head | undefined,
): Promise<Appended> {
  const { append, sessions } = internalsOf(memory)
  const appendBatch = (batch: readonly Parsed[], current?: Head): Promise<Appended> =>
    append(key, batch.map(toIncoming), { replyFollows: true }, current)
  if (messages.length === 1) return appendBatch(messages, head)
  const stored: Message[] = []
  for (let from = 0, to = 0; from < messages.length; from = to) {
    if (from > 0) await new Promise((resolve) => setImmediate(resolve))
    for (let characters = 0; to < messages.length && (to === from || characters < batchCharacters); to++)
      characters += messages[to]?.content.length ?? 0
    stored.push(...(await appendBatch(messages.slice(from, to))).stored)
  }
  return { stored, epoch: (await sessions.head(key, 0)).epoch }
}

function toIncoming({ role, content, name, calls, answers }: Parsed): Incoming {
  if (name === undefined && calls === undefined && answers === undefined) return { role, content }
  const toolCalls = calls?.map((call) => ({
    id: call.id,
    type: 'function' as const,
    function: { name: call.name, arguments: call.arguments },
  }))
  return {
    role,
    content,
    ...(name !== undefined && { name }),
    ...(toolCalls && { tool_calls: toolCalls }),
    ...(answers !== undefined && { tool_call_id: answers }),
  }
}
