import { type ContentPart, type MessageInput, parseMessage } from '../../domain/chat.ts'
import { isBlank, type ToolCall } from '../../domain/entry.ts'
import { describeValue } from '../../domain/error.ts'
import { getPath, getString } from '../../text/json.ts'
import type { FilePart } from './protocol.ts'
import {
  addFilePart,
  addMediaUrl,
  formatPlaceholder,
  invalidField,
  readRole,
  readType,
  requireObject,
  requireParts,
  requireText,
  toTextPart,
} from './request.ts'

/** Item of a request's `input` or a response's `output`. */
export type Item = Readonly<Record<string, unknown>>

/** Message and the index of its first item. */
type IndexedMessage = { readonly message: MessageInput; readonly index: number }

/** Assistant message under assembly from consecutive items. */
type PartialReply = { readonly index: number; readonly parts: ContentPart[]; readonly calls: ToolCall[] }

/** Types of the calls that a client executes, and the fields that hold their arguments. */
const callFields: Readonly<Record<string, readonly string[]>> = {
  function_call: ['arguments'],
  custom_tool_call: ['input'],
  local_shell_call: ['action'],
  shell_call: ['action'],
  apply_patch_call: ['operation'],
  computer_call: ['action', 'actions'],
}
const namedCallTypes = ['function_call', 'custom_tool_call']
const textTypes = ['input_text', 'output_text', 'text']
const roles = ['user', 'assistant', 'system', 'developer']
const instructionRoles = ['system', 'developer']

const isMessage = (item: unknown): boolean =>
  readType(item) === 'message' || (readType(item) === '' && readRole(item) !== '')
const isCall = (item: unknown): boolean => Object.hasOwn(callFields, readType(item))
const isCallOutput = (item: unknown): boolean =>
  readType(item).endsWith('_output') && Object.hasOwn(callFields, readType(item).slice(0, -7))

/** True for an item that refers to a stored item by id. */
export const isReference = (item: unknown): boolean =>
  readType(item) === 'item_reference' || (readType(item) === '' && !isMessage(item) && getString(item, 'id') !== '')

/** True for an item that applies to the whole conversation, such as instructions. */
export const isInstruction = (item: unknown): boolean =>
  instructionRoles.includes(readRole(item)) || readType(item) === 'configuration_update'

/** True for an item of which memory reads nothing, such as encrypted reasoning or one of a type it does not know. */
export const isUnread = (item: unknown): boolean =>
  !isMessage(item) &&
  !isCall(item) &&
  !isReference(item) &&
  !isInstruction(item) &&
  (!isCallOutput(item) || readCallId(item) === '') &&
  !Array.isArray(getPath(item, 'tools'))

/** Validates the fields of items that memory reads; `list` is the name of the client's field. */
export const validateItems = (values: readonly unknown[], list: 'input' | 'items'): readonly Item[] =>
  values.map((value, index) => validateItem(value, `${list}[${index}]`))

function validateItem(value: unknown, param: string): Item {
  const item = requireObject(value, param, '{ "role": "user", "content": "Hello" }')
  if (isMessage(item)) {
    if (!roles.includes(readRole(item)))
      throw invalidField(`${param}.role`, `is ${describeValue(item.role, 40)}; it must be one of ${roles.join(', ')}`)
    requireParts(item.content ?? '', `${param}.content`, (type) => textTypes.includes(type))
  } else if (!isReference(item)) {
    requireText(item.type, `${param}.type`, 'says what the item is')
    if (isCall(item)) requireText(item.call_id, `${param}.call_id`, 'names the call')
    if (namedCallTypes.includes(readType(item))) requireText(item.name, `${param}.name`, 'names the tool')
  }
  return item
}

/**
 * Converts items to messages. Consecutive assistant messages and calls form one message. Items that are neither, such
 * as reasoning, belong to the assistant message after them, else to the message before them.
 */
export function itemsToMessages(items: readonly Item[], files: FilePart[]): IndexedMessage[] {
  const messages: IndexedMessage[] = []
  let reply: PartialReply | undefined
  let firstSkipped: number | undefined
  const closeReply = (): void => {
    if (reply !== undefined && !isEmptyReply(reply))
      messages.push({ message: toAssistantMessage(reply), index: reply.index })
    reply = undefined
    firstSkipped = undefined
  }
  for (const [index, item] of items.entries()) {
    const isReply = isAssistantItem(item)
    const message = isReply ? undefined : toMessage(item, files)
    if (isReply) {
      reply ??= { index: firstSkipped ?? index, parts: [], calls: [] }
      appendItem(reply, item, files)
    } else if (message === undefined) firstSkipped ??= index
    else {
      closeReply()
      messages.push({ message, index })
    }
  }
  closeReply()
  return messages
}

/** Converts the output items of a response to one message, without calls that the provider has answered itself. */
export function toReplyMessage(output: readonly unknown[]): MessageInput {
  const answeredIds = new Set(output.filter(isCallOutput).map(readCallId))
  const reply: PartialReply = { index: 0, parts: [], calls: [] }
  for (const item of output.filter(isAssistantItem)) appendItem(reply, item, [])
  const message = toAssistantMessage({ ...reply, calls: reply.calls.filter((call) => !answeredIds.has(call.id)) })
  return { ...message, content: parseMessage(message, 0, 0).content }
}

/** True for a reply without text and calls, for example one that broke off during reasoning. */
const isEmptyReply = ({ parts, calls }: PartialReply): boolean =>
  calls.length === 0 && parts.every(({ text }) => typeof text === 'string' && isBlank(text))

/** True for an assistant message or a call. */
export const isAssistantItem = (item: unknown): boolean =>
  isCall(item) || (isMessage(item) && readRole(item) === 'assistant')

function appendItem(reply: PartialReply, item: unknown, files: FilePart[]): void {
  if (isMessage(item)) return void reply.parts.push(...toParts(getPath(item, 'content'), files))
  if (!isUnanswerableCall(item)) reply.calls.push(toToolCall(item))
}

/** True for a call without an id or a name: no output can refer to it. */
export function isUnanswerableCall(item: unknown): boolean {
  if (!isCall(item)) return false
  const { id, name } = toToolCall(item)
  return id === '' || name === ''
}

function toAssistantMessage({ parts, calls }: PartialReply): MessageInput {
  const message: MessageInput = { role: 'assistant', content: parts }
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

/** Converts a call. For types other than `function_call` the type's own fields become the arguments. */
function toToolCall(item: unknown): ToolCall {
  const [type, id, name] = [readType(item), getString(item, 'call_id'), getString(item, 'name')]
  if (type === 'function_call') return { id, name, arguments: getString(item, 'arguments') }
  const fields = (callFields[type] ?? []).map((field) => [field, getPath(item, field)] as const)
  return {
    id,
    name: namedCallTypes.includes(type) ? name : type.slice(0, -5),
    arguments: JSON.stringify(Object.fromEntries(fields)),
  }
}

/** Converts a message or call output that is not the assistant's; undefined for any other item. */
function toMessage(item: Item, files: FilePart[]): MessageInput | undefined {
  const { content } = item
  if (isMessage(item))
    return {
      role: readRole(item) as MessageInput['role'],
      content: typeof content === 'string' ? content : toParts(content, files),
    }
  const callId = isCallOutput(item) ? readCallId(item) : ''
  return callId === ''
    ? undefined
    : { role: 'tool', tool_call_id: callId, content: toOutputContent(item.output ?? item.status) }
}

/** Reads the id of the call that an output answers. */
export const readCallId = (item: unknown): string =>
  getString(item, 'call_id') || (readType(item) === 'local_shell_call_output' ? getString(item, 'id') : '')

/** Converts a call output. Files in it get a placeholder only: the user did not upload them. */
function toOutputContent(output: unknown): string | readonly ContentPart[] {
  if (output === undefined || output === null || typeof output === 'string') return output ?? ''
  return (Array.isArray(output) ? output : [output]).map((part) =>
    readType(part) === '' ? toTextPart(JSON.stringify(part)) : toPart(part, []),
  )
}

const toParts = (content: unknown, files: FilePart[]): readonly ContentPart[] =>
  Array.isArray(content)
    ? content.map((part) => toPart(part, files))
    : [toTextPart(typeof content === 'string' ? content : '')]

function toPart(part: unknown, files: FilePart[]): ContentPart {
  const type = readType(part)
  if (textTypes.includes(type)) return toTextPart(getString(part, 'text'))
  if (type === 'refusal') return toTextPart(getString(part, 'refusal'))
  if (type === 'input_image' || type === 'computer_screenshot')
    return addMediaUrl('image', getString(part, 'image_url') || getString(part, 'file_id'), files)
  if (type === 'input_audio')
    return toTextPart(formatPlaceholder('audio', Buffer.from(getString(part, 'input_audio', 'data'), 'base64')))
  if (type !== 'input_file') return { type }
  const address = getString(part, 'file_url') || getString(part, 'file_id')
  return addFilePart({ name: getString(part, 'filename'), data: getString(part, 'file_data'), address }, files)
}
