import { isBlank, type Message } from '../../domain/entry.ts'
import { Refusal } from '../http/httpError.ts'

/** Where an item stands: the message it is part of, and which part. What was said comes before what was called. */
export type Place = { readonly sequence: number; readonly part: number }

/** An item of a conversation, as OpenAI's API writes it. */
export type ConversationItem = { readonly id: string; readonly type: string; readonly [field: string]: unknown }

const shape = /^(?:msg_(\d{1,15})|fco_(\d{1,15})|fc_(\d{1,15})_(\d{1,6}))$/

/** Where an item stands, by its id; undefined for what is no id of an item. */
export function placeOf(id: string): Place | undefined {
  const [, message, result, call, part] = shape.exec(id) ?? []
  const sequence = message ?? result ?? call
  return sequence === undefined ? undefined : { sequence: Number(sequence), part: Number(part ?? 0) }
}

/** The place in a cursor; a cursor that is none is refused. */
export function cursorOf(id: string): Place {
  const place = placeOf(id)
  if (place !== undefined) return place
  throw new Refusal(
    400,
    'bad_option',
    `after is ${JSON.stringify(id.slice(0, 40))}; it must be the id of an item.`,
    'after',
  )
}

/** Whether an item stands behind a place. */
export function isBehind({ id }: ConversationItem, { sequence, part }: Place): boolean {
  const own = placeOf(id) as Place
  return own.sequence > sequence || (own.sequence === sequence && own.part > part)
}

/**
 * The items that a message is: never none. A reply that says something and asks for tools is several.
 *
 * @example
 * itemsOf(message).map(({ id }) => id) // ['msg_4', 'fc_4_1', 'fc_4_2']
 */
export function itemsOf(message: Message): readonly ConversationItem[] {
  const { sequence, content, calls = [], role } = message
  const status = 'completed'
  if (role === 'tool')
    return [{ id: `fco_${sequence}`, type: 'function_call_output', status, call_id: message.answers, output: content }]
  const asked = calls.map(({ id, name, arguments: text }, at) => ({
    id: `fc_${sequence}_${at + 1}`,
    type: 'function_call',
    status,
    call_id: id,
    name,
    arguments: text,
  }))
  if (asked.length > 0 && isBlank(content)) return asked
  const part =
    role === 'assistant'
      ? { type: 'output_text', text: content, annotations: [], logprobs: [] }
      : { type: 'input_text', text: content }
  return [{ id: `msg_${sequence}`, type: 'message', status, role, content: [part] }, ...asked]
}
