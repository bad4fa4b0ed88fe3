import { isBlank, type Message } from '../../domain/entry.ts'
import { invalidParameter } from './input.ts'

/** Position of an item: its message, and its part of that message; the text comes before the calls. */
export type ItemPosition = { readonly sequence: number; readonly part: number }

/** An item of a conversation in OpenAI's format. */
export type ConversationItem = { readonly id: string; readonly type: string; readonly [field: string]: unknown }

const idPattern = /^(?:msg_(\d{1,15})|fco_(\d{1,15})|fc_(\d{1,15})_(\d{1,6}))$/

/** Parses the id of an item; undefined when it is malformed. */
export function parseItemId(id: string): ItemPosition | undefined {
  const [, message, result, call, part] = idPattern.exec(id) ?? []
  const sequence = message ?? result ?? call
  return sequence === undefined ? undefined : { sequence: Number(sequence), part: Number(part ?? 0) }
}

/** Parses the cursor `after`; throws 400 when it is malformed. */
export function parseItemCursor(id: string): ItemPosition {
  const position = parseItemId(id)
  if (position !== undefined) return position
  throw invalidParameter('after', id, 'the id of an item')
}

/** True when an item comes after a position. */
export function isAfter({ id }: ConversationItem, { sequence, part }: ItemPosition): boolean {
  const own = parseItemId(id) as ItemPosition
  return own.sequence > sequence || (own.sequence === sequence && own.part > part)
}

/**
 * Converts a message to one or more items: text and each tool call are items of their own.
 *
 * @example
 * toItems(message).map(({ id }) => id) // ['msg_4', 'fc_4_1', 'fc_4_2']
 */
export function toItems(message: Message): readonly ConversationItem[] {
  const { sequence, content, toolCalls = [], role } = message
  const status = 'completed'
  if (role === 'tool')
    return [
      { id: `fco_${sequence}`, type: 'function_call_output', status, call_id: message.toolCallId, output: content },
    ]
  const callItems = toolCalls.map(({ id, name, arguments: text }, index) => ({
    id: `fc_${sequence}_${index + 1}`,
    type: 'function_call',
    status,
    call_id: id,
    name,
    arguments: text,
  }))
  if (callItems.length > 0 && isBlank(content)) return callItems
  const part =
    role === 'assistant'
      ? { type: 'output_text', text: content, annotations: [], logprobs: [] }
      : { type: 'input_text', text: content }
  return [{ id: `msg_${sequence}`, type: 'message', status, role, content: [part] }, ...callItems]
}
