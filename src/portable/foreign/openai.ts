import { hash } from 'node:crypto'
import type { MessageInput } from '../../domain/chat.ts'
import { isObject } from '../../domain/error.ts'
import { normalizeSecrets } from '../../text/secrets.ts'
import { ConversationCollector, type ForeignData, parseJsonLines } from './conversations.ts'

/**
 * Parses OpenAI-style JSON Lines. A line `{"messages":[…]}` is a session, named by the hash of the line without its
 * secrets. Lines that are messages form one session, named `name` or by the hash of the first line.
 *
 * @example
 * parseOpenai('{"role":"user","content":"Hello"}\n', 'support').sessions[0]?.id // 'support'
 */
export function parseOpenai(text: string, name?: string): ForeignData {
  const collector = new ConversationCollector()
  const singleMessages: (MessageInput | string)[] = []
  let firstId: string | undefined
  for (const { line, value } of parseJsonLines(text, collector)) {
    const id = `chat-${hash('sha256', normalizeSecrets(JSON.stringify(value))).slice(0, 32)}`
    if (Array.isArray(value.messages)) collector.addConversation({ id }, value.messages.map(toCandidate))
    else if (typeof value.role === 'string') {
      firstId ??= id
      singleMessages.push(toCandidate(value))
    } else collector.skip(`line ${line}`, 'is neither a message nor a list of messages')
  }
  if (firstId !== undefined) collector.addConversation({ id: name ?? firstId }, singleMessages)
  return collector.result()
}

/** The collector validates the fields. */
const toCandidate = (value: unknown): MessageInput | string =>
  isObject(value) ? (value as MessageInput) : 'is not a message'
