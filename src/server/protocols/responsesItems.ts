import { type Incoming, type Part, parseMessage } from '../../domain/chat.ts'
import { isBlank, type ToolCall } from '../../domain/entry.ts'
import { at, textAt } from '../../providers/json.ts'
import { bad, demandParts, demandText, objectIn, roleOf, typeOf } from './checks.ts'
import type { FilePart } from './dialect.ts'
import { filePart, placeholder, textPart, urlPart } from './media.ts'

/** An item of a request's `input` or a response's `output`. */
export type Item = Readonly<Record<string, unknown>>

/** A message of the conversation and the item it begins with. */
export type Spoken = { readonly message: Incoming; readonly place: number }

/** What the assistant says between two others: the parts of its messages and the calls it makes. */
type Speech = { readonly place: number; readonly parts: Part[]; readonly calls: ToolCall[] }

/** The calls a client has to answer, and which of their fields say what to do. */
const payloads: Readonly<Record<string, readonly string[]>> = {
  function_call: ['arguments'],
  custom_tool_call: ['input'],
  local_shell_call: ['action'],
  shell_call: ['action'],
  apply_patch_call: ['operation'],
  computer_call: ['action', 'actions'],
}
const named = ['function_call', 'custom_tool_call']
const texts = ['input_text', 'output_text', 'text']
const roles = ['user', 'assistant', 'system', 'developer']
const standing = ['system', 'developer']

const isMessage = (item: unknown): boolean => typeOf(item) === 'message' || (typeOf(item) === '' && roleOf(item) !== '')
const isCall = (item: unknown): boolean => Object.hasOwn(payloads, typeOf(item))
const isResult = (item: unknown): boolean =>
  typeOf(item).endsWith('_output') && Object.hasOwn(payloads, typeOf(item).slice(0, -7))

/** Whether an item names another one that a server is to look up. */
export const isReference = (item: unknown): boolean =>
  typeOf(item) === 'item_reference' || (typeOf(item) === '' && !isMessage(item) && textAt(item, 'id') !== '')

/** Whether an item holds for all that follows, as instructions do, rather than being said at its place. */
export const isStanding = (item: unknown): boolean =>
  standing.includes(roleOf(item)) || typeOf(item) === 'configuration_update'

/** Checks items as far as memory reads them; `list` is what the client calls them. */
export const checkItems = (values: readonly unknown[], list: 'input' | 'items'): readonly Item[] =>
  values.map((value, place) => checkItem(value, `${list}[${place}]`))

function checkItem(value: unknown, param: string): Item {
  const item = objectIn(value, param, '{ "role": "user", "content": "Hello" }')
  if (isMessage(item)) {
    const role = roleOf(item)
    if (!roles.includes(role))
      throw bad(`${param}.role`, `is ${JSON.stringify(item.role) ?? 'missing'}; it must be one of ${roles.join(', ')}`)
    demandParts(item.content ?? '', `${param}.content`, (type) => texts.includes(type))
  } else if (!isReference(item)) {
    demandText(item.type, `${param}.type`, 'says what the item is')
    if (isCall(item)) demandText(item.call_id, `${param}.call_id`, 'names the call')
    if (named.includes(typeOf(item))) demandText(item.name, `${param}.name`, 'names the tool')
  }
  return item
}

/**
 * The messages in a list of items. All that the assistant says and calls in a row is one message, as it is one reply.
 * What nobody said, such as reasoning, belongs to the assistant's message after it, or else to the message before it.
 */
export function spokenIn(items: readonly Item[], files: FilePart[]): Spoken[] {
  const spoken: Spoken[] = []
  let speech: Speech | undefined
  let aside: number | undefined
  const close = (): void => {
    if (speech !== undefined && !isSilent(speech)) spoken.push({ message: assistantOf(speech), place: speech.place })
    speech = undefined
    aside = undefined
  }
  for (const [place, item] of items.entries()) {
    const isReply = isAssistants(item)
    const message = isReply ? undefined : messageOf(item, files)
    if (isReply) {
      speech ??= { place: aside ?? place, parts: [], calls: [] }
      listen(speech, item, files)
    } else if (message === undefined) aside ??= place
    else {
      close()
      spoken.push({ message, place })
    }
  }
  close()
  return spoken
}

/** The one message that the items of a reply are. Calls that the provider has answered itself are nobody's any more. */
export function replyIn(output: readonly unknown[]): Incoming {
  const answered = new Set(output.filter(isResult).map(answersOf))
  const speech: Speech = { place: 0, parts: [], calls: [] }
  for (const item of output.filter(isAssistants)) listen(speech, item, [])
  const message = assistantOf({ ...speech, calls: speech.calls.filter((call) => !answered.has(call.id)) })
  return { ...message, content: parseMessage(message, 0, 0).content }
}

/** Nothing that could be shown to anybody: a reply that broke off while the model was still thinking. */
const isSilent = ({ parts, calls }: Speech): boolean =>
  calls.length === 0 && parts.every(({ text }) => text !== undefined && isBlank(text))

/** Whether an item is a part of what the assistant says. */
export const isAssistants = (item: unknown): boolean =>
  isCall(item) || (isMessage(item) && roleOf(item) === 'assistant')

function listen(speech: Speech, item: unknown, files: FilePart[]): void {
  if (isMessage(item)) return void speech.parts.push(...partsOf(at(item, 'content'), files))
  const call = callOf(item)
  // A call nobody can answer, because it has no id or names no tool, is not kept.
  if (call.id !== '' && call.name !== '') speech.calls.push(call)
}

function assistantOf({ parts, calls }: Speech): Incoming {
  const message: Incoming = { role: 'assistant', content: parts }
  if (calls.length === 0) return message
  return {
    ...message,
    tool_calls: calls.map(({ id, name, arguments: text }) => ({
      id,
      type: 'function',
      function: { name, arguments: text },
    })),
  }
}

/** A call in neutral words; what is no function's call keeps its own fields as the arguments. */
function callOf(item: unknown): ToolCall {
  const [type, id, name] = [typeOf(item), textAt(item, 'call_id'), textAt(item, 'name')]
  if (type === 'function_call') return { id, name, arguments: textAt(item, 'arguments') }
  const fields = (payloads[type] ?? []).map((field) => [field, at(item, field)] as const)
  return {
    id,
    name: named.includes(type) ? name : type.slice(0, -5),
    arguments: JSON.stringify(Object.fromEntries(fields)),
  }
}

/** What somebody other than the assistant says in an item, if anything. */
function messageOf(item: Item, files: FilePart[]): Incoming | undefined {
  const { content } = item
  if (isMessage(item))
    return {
      role: roleOf(item) as Incoming['role'],
      content: typeof content === 'string' ? content : partsOf(content, files),
    }
  const answers = isResult(item) ? answersOf(item) : ''
  return answers === ''
    ? undefined
    : { role: 'tool', tool_call_id: answers, content: resultOf(item.output ?? item.status) }
}

/** The call that a result answers. */
export const answersOf = (item: unknown): string =>
  textAt(item, 'call_id') || (typeOf(item) === 'local_shell_call_output' ? textAt(item, 'id') : '')

/** What a tool brings along was not sent by anybody: a file in it is told of, and no upload. */
function resultOf(output: unknown): string | readonly Part[] {
  if (output === undefined || output === null || typeof output === 'string') return output ?? ''
  return (Array.isArray(output) ? output : [output]).map((part) =>
    typeOf(part) === '' ? textPart(JSON.stringify(part)) : partOf(part, []),
  )
}

const partsOf = (content: unknown, files: FilePart[]): readonly Part[] =>
  Array.isArray(content)
    ? content.map((part) => partOf(part, files))
    : [textPart(typeof content === 'string' ? content : '')]

function partOf(part: unknown, files: FilePart[]): Part {
  const type = typeOf(part)
  if (texts.includes(type)) return textPart(textAt(part, 'text'))
  if (type === 'refusal') return textPart(textAt(part, 'refusal'))
  if (type === 'input_image' || type === 'computer_screenshot')
    return urlPart('image', textAt(part, 'image_url') || textAt(part, 'file_id'), files)
  if (type === 'input_audio')
    return textPart(placeholder('audio', Buffer.from(textAt(part, 'input_audio', 'data'), 'base64')))
  if (type !== 'input_file') return { type }
  const where = textAt(part, 'file_url') || textAt(part, 'file_id')
  return filePart({ name: textAt(part, 'filename'), data: textAt(part, 'file_data'), where }, files)
}
