import { type Parsed, wellFormed } from '../domain/chat.ts'
import { isBlank, type Message } from '../domain/entry.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import { disarmed } from '../text/memoryTag.ts'

/** A message as it may be sent. */
export function mend(message: Message, content: string): Message {
  const { name, calls, answers } = message
  return {
    ...message,
    content: wellFormed(content),
    ...(name === undefined ? {} : { name: wellFormed(name) }),
    ...(calls === undefined
      ? {}
      : {
          calls: calls.map((call) => ({
            id: wellFormed(call.id),
            name: wellFormed(call.name),
            arguments: wellFormed(call.arguments),
          })),
        }),
    ...(answers === undefined ? {} : { answers: wellFormed(answers) }),
  }
}

/** A message as a line of a text. */
export function lineOf(message: Parsed, withCalls = true): string {
  const { role, content, calls } = message
  const said = isBlank(content) ? (role === 'tool' ? nothing : '') : content
  const asked = (withCalls && calls?.map((call) => `[calls ${call.name} ${call.arguments}]`).join(' ')) || ''
  return disarmed(`${speaker(message)}: ${said}${said && asked && ' '}${asked}`)
}

const nothing = '(no output)'
const titles = { system: 'System', user: 'User', assistant: 'Assistant', tool: 'Tool' }

/** Who said it. A name that could be taken for something else gives way to the role. */
export function speaker(message: Parsed): string {
  const name = message.name?.replace(/\s+/gu, ' ').trim()
  return name !== undefined && /^[\p{L}\p{N}]/u.test(name) ? name : titles[message.role]
}

/** A message as a provider's client sends it. */
export function chatOf(message: Parsed, withCalls = true): ChatMessage {
  const { role, calls } = message
  // what a tool brings in, or a model says, must not pass for memory; a user's words are the user's
  const content = role === 'user' ? message.content : disarmed(message.content)
  if (role === 'tool')
    return { role, content: isBlank(content) ? nothing : content, tool_call_id: message.answers ?? '' }
  // cut, then made whole again: the cut may fall into a surrogate pair
  const name = message.name && wellFormed(message.name.replace(/[\s<|\\/>]+/gu, '_').slice(0, 64))
  if (role !== 'assistant' || !withCalls || !calls?.length) return name ? { role, content, name } : { role, content }
  const tool_calls = calls.map((call) => ({
    id: call.id,
    type: 'function' as const,
    function: { name: call.name, arguments: call.arguments },
  }))
  return { role, content: isBlank(content) ? null : content, ...(name ? { name } : {}), tool_calls }
}
