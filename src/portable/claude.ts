import type { Incoming } from '../domain/chat.ts'
import { isObject } from '../domain/checks.ts'
import { branchOf, type Foreign, parseList, Sieve, textIn, timeIn } from './foreign.ts'

/**
 * Reads `conversations.json` of a Claude data export: the newest branch where messages name their parents, otherwise
 * all of them in order. Text is kept with the text of attachments, files leave a mark; what tools were asked and
 * answered and what the model thought is left out.
 */
export function parseClaude(text: string): Foreign {
  const sieve = new Sieve()
  for (const [place, { uuid, name, chat_messages: messages }] of parseList(
    text,
    'the conversations.json of Claude',
  ).entries()) {
    if (typeof uuid !== 'string' || !Array.isArray(messages))
      sieve.skip(`conversation ${place + 1}`, 'has no id or no messages')
    else sieve.keep({ id: uuid, title: name }, current(messages.filter(isObject)).map(messageOf))
  }
  return sieve.result()
}

function current(messages: readonly Record<string, unknown>[]): readonly Record<string, unknown>[] {
  const byId = new Map(messages.map((message) => [message.uuid, message]))
  const parentOf = (message: Record<string, unknown>) => byId.get(message.parent_message_uuid ?? '')
  return messages.some((message) => parentOf(message) !== undefined) ? branchOf(messages.at(-1), parentOf) : messages
}

function messageOf(message: Record<string, unknown>): Incoming | string {
  const { sender, text, content, attachments, files, created_at: created } = message
  const role = sender === 'human' ? 'user' : sender === 'assistant' ? 'assistant' : undefined
  if (role === undefined) return `has the unknown sender ${JSON.stringify(sender)}`
  const blocks = objects(content)
  // `text` also names blocks that could not be shown: it counts only where there are no blocks
  const said =
    blocks.length === 0
      ? [textIn(text) ?? '']
      : blocks.filter((block) => block.type === 'text').map((block) => textIn(block.text) ?? '')
  const attached = objects(attachments).map((one) =>
    [`[attachment: ${nameOf(one)}]`, textIn(one.extracted_content) ?? ''].filter(Boolean).join('\n'),
  )
  const marks = objects(files).map((file) => `[file: ${nameOf(file)}]`)
  const at = typeof created === 'string' ? timeIn(Date.parse(created)) : undefined
  const whole = [...said, ...attached, ...marks].filter((piece) => piece !== '').join('\n\n')
  return { role, content: whole, ...(at === undefined ? {} : { at }) }
}

const objects = (value: unknown): readonly Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter(isObject) : []
const nameOf = (file: Record<string, unknown>): string => textIn(file.file_name) || 'without a name'
