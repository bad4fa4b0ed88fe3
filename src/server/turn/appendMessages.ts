import type { MessageInput, ParsedMessage } from '../../domain/chat.ts'
import type { Message } from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import type { SessionHead } from '../../domain/session.ts'
import type { AppendResult } from '../../memory/append.ts'
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
  messages: readonly ParsedMessage[],
  head: SessionHead | undefined,
): Promise<AppendResult> {
  const { append, sessions } = internalsOf(memory)
  const appendBatch = (batch: readonly ParsedMessage[], current?: SessionHead): Promise<AppendResult> =>
    append(key, batch.map(toIncoming), { replyFollows: true }, current)
  if (messages.length === 1) return appendBatch(messages, head)
  const stored: Message[] = []
  for (let from = 0, to = 0; from < messages.length; from = to) {
    if (from > 0) await new Promise((resolve) => setImmediate(resolve))
    for (let characters = 0; to < messages.length && (to === from || characters < batchCharacters); to++)
      characters += messages[to]?.content.length ?? 0
    stored.push(...(await appendBatch(messages.slice(from, to))).stored)
  }
  return { stored, epoch: (await sessions.readHead(key, 0)).epoch }
}

function toIncoming({ role, content, name, toolCalls: calls, toolCallId }: ParsedMessage): MessageInput {
  if (name === undefined && calls === undefined && toolCallId === undefined) return { role, content }
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
    ...(toolCallId !== undefined && { tool_call_id: toolCallId }),
  }
}
