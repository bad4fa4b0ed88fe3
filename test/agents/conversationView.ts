import { isMemory } from './difference.ts'
import type { Fields, RecordedRequest } from './recorder.ts'

/** A message of any protocol as plain text. Tool calls have no text; tool results have the role `tool`. */
export type ViewedMessage = { readonly role: string; readonly text: string }

/** Reads the conversation of a request of any protocol, without instructions and memory. */
export function viewConversation({ body }: Pick<RecordedRequest, 'body'>): readonly ViewedMessage[] {
  const items = (body.messages ?? body.input ?? []) as string | readonly Fields[]
  if (typeof items === 'string') return [{ role: 'user', text: items }]
  return items
    .filter((item) => !isMemory(item))
    .flatMap(viewItem)
    .filter(({ role }) => role !== 'system' && role !== 'developer')
}

function viewItem(item: Fields): readonly ViewedMessage[] {
  if (item.type === 'function_call_output' || item.role === 'tool') return [{ role: 'tool', text: '' }]
  if (item.role === undefined) return [{ role: 'assistant', text: '' }]
  const role = String(item.role)
  const blocks = (
    typeof item.content === 'string' ? [{ text: item.content }] : (item.content ?? [])
  ) as readonly Fields[]
  const results = blocks.filter(({ type }) => type === 'tool_result').map(() => ({ role: 'tool', text: '' }))
  const text = blocks.map((block) => (typeof block.text === 'string' ? block.text : '')).join('\n')
  return results.length > 0 && stripContext(text) === '' ? results : [...results, { role, text }]
}

/** Removes the tagged context that clients add to the words of their users. */
export const stripContext = (text: string): string =>
  text
    .replace(
      /<(system-reminder|environment_context|environment_details|local-command-\w+|command-\w+)>[\s\S]*?<\/\1>/g,
      '',
    )
    .replace(/<\/?user_input[^>]*>/g, '')
    // opencode sends a file that a tool has read as a message of the user.
    .replace(/^Attached (?:media|image\(s\)) from tool result:[\s\S]*/, '')
    .trim()

/** Lines with the words of user and model, such as `user: Hello`. White space does not count. */
export const listWords = (messages: readonly ViewedMessage[]): readonly string[] =>
  messages
    .filter(({ role }) => role === 'user' || role === 'assistant')
    .map(({ role, text }) => ({ role, text: stripContext(text).replace(/\s+/g, ' ') }))
    .filter(({ text }) => text !== '')
    .map(({ role, text }) => `${role}: ${unquote(text)}`)

/** opencode puts quotation marks around a prompt from its command line. */
const unquote = (text: string): string => (/^"[^"]*"$/.test(text) ? text.slice(1, -1) : text)

export const listTools = ({ body }: Pick<RecordedRequest, 'body'>): readonly unknown[] =>
  (body.tools as readonly unknown[] | undefined) ?? []
