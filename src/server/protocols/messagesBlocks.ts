import type { ContentPart, MessageInput } from '../../domain/chat.ts'
import { isBlank } from '../../domain/entry.ts'
import { describeValue, isObject } from '../../domain/error.ts'
import { getArray, getPath, getString } from '../../text/json.ts'
import type { FilePart } from './protocol.ts'
import {
  addFilePart,
  addMediaUrl,
  invalidField,
  readType,
  requireObject,
  requireParts,
  requireText,
  toTextPart,
} from './request.ts'

/** Message as Anthropic clients send it, with validated role and content. */
export type RawMessage = { readonly role: string; readonly content: unknown }
/** Content block of a message. */
export type Block = Readonly<Record<string, unknown>>

const roles = ['user', 'assistant', 'system']
/** Block types that are internal to the model and never stored. */
const internalTypes = ['thinking', 'redacted_thinking', 'compaction']

/** Converts content, which may be plain text, to blocks. */
export const toBlocks = (content: unknown): readonly Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : Array.isArray(content) ? content : []

const isToolUse = (block: unknown): boolean => readType(block) === 'tool_use'
export const isToolResult = (block: Block): boolean => readType(block) === 'tool_result'

/** Validates the fields of a message that memory reads. */
export function requireRawMessage(value: unknown, index: number): RawMessage {
  if (isTextMessage(value)) return value
  const param = `messages[${index}]`
  const { role, content } = requireObject(value, param, '{ "role": "user", "content": "Hello" }')
  if (typeof role !== 'string' || !roles.includes(role)) {
    throw invalidField(`${param}.role`, `is ${describeValue(role, 40)}; it must be one of ${roles.join(', ')}`)
  }
  validateContent(content, `${param}.content`)
  return { role, content }
}

/** Fast path: most messages of a history have plain text as content. */
const isTextMessage = (value: unknown): value is RawMessage =>
  isObject(value) && typeof value.content === 'string' && typeof value.role === 'string' && roles.includes(value.role)

function validateContent(content: unknown, param: string): void {
  requireParts(content, param, (type) => type === 'text')
  for (const [index, block] of toBlocks(content).entries()) {
    if (isToolUse(block)) {
      requireText(block.id, `${param}[${index}].id`, 'names the call')
      requireText(block.name, `${param}[${index}].name`, 'names the tool')
    }
    if (!isToolResult(block)) continue
    requireText(block.tool_use_id, `${param}[${index}].tool_use_id`, 'names the call a result answers')
    requireParts(block.content ?? '', `${param}[${index}].content`, (type) => type === 'text')
  }
}

/**
 * Converts a message to chat messages: one per tool result, then one for the text. An assistant message that holds only
 * thinking yields none.
 */
export function toChatMessages({ role, content }: RawMessage, files: FilePart[]): MessageInput[] {
  if (typeof content === 'string')
    return role === 'assistant' && isBlank(content) ? [] : [{ role: role as MessageInput['role'], content }]
  const blocks = toBlocks(content)
  if (role === 'assistant') {
    const reply = toAssistantMessage(blocks)
    return isBlank(reply.content as string) && reply.tool_calls === undefined ? [] : [reply]
  }
  const others = blocks.filter((block) => !isToolResult(block))
  const results = blocks.filter(isToolResult).map(
    (block): MessageInput => ({
      role: 'tool',
      tool_call_id: getString(block, 'tool_use_id'),
      content: toResultParts(block),
    }),
  )
  if (others.length === 0 && results.length > 0) return results
  return [...results, { role: role as 'user' | 'system', content: others.flatMap((block) => toParts(block, files)) }]
}

/** Converts the blocks of a reply to an assistant message. */
export function toAssistantMessage(blocks: readonly unknown[]): MessageInput {
  // Calls without an id or a name are dropped: no tool result can refer to them.
  const calls = blocks.filter(
    (block) => isToolUse(block) && getString(block, 'id') !== '' && getString(block, 'name') !== '',
  )
  const message: MessageInput = { role: 'assistant', content: joinText(blocks) }
  return calls.length === 0 ? message : { ...message, tool_calls: calls.map(toToolCall) }
}

/**
 * Joins adjacent text blocks directly, because citations split text mid-sentence; any other block starts a new line.
 */
function joinText(blocks: readonly unknown[]): string {
  const lines: string[] = []
  let followsText = false
  for (const block of blocks.filter((one) => !internalTypes.includes(readType(one)))) {
    const isText = readType(block) === 'text'
    if (isText && followsText) lines.push(`${lines.pop()}${getString(block, 'text')}`)
    else if (!isToolUse(block)) lines.push(isText ? getString(block, 'text') : formatMarker(block))
    followsText = isText
  }
  return lines.filter((line) => line !== '').join('\n')
}

/** Converts a tool call. Input that was cut off and is not valid JSON stays text. */
function toToolCall(block: unknown): NonNullable<MessageInput['tool_calls']>[number] {
  const input = getPath(block, 'input')
  const text = typeof input === 'string' ? input : (JSON.stringify(input) ?? '{}')
  return { id: getString(block, 'id'), type: 'function', function: { name: getString(block, 'name'), arguments: text } }
}

/** Formats the marker for a server-side tool call or its result. */
const formatMarker = (block: unknown): string => `[${getString(block, 'name') || readType(block)}]`

/** Converts a tool result. Files in it get a placeholder only: the user did not upload them. */
function toResultParts(block: Block): readonly ContentPart[] {
  const parts = toBlocks(block.content).flatMap((one) => toParts(one, []))
  return block.is_error === true ? [toTextPart('[error]'), ...parts] : parts
}

function toParts(block: Block, files: FilePart[]): ContentPart[] {
  const type = readType(block)
  if (type === 'text') return [toTextPart(readText(block))]
  if (type === 'image') return [addMediaUrl('image', readAddress(block), files)]
  if (type === 'document') return [addFilePart({ name: getString(block, 'title'), ...readDocument(block) }, files)]
  if (type === 'container_upload')
    return [addFilePart({ name: '', data: '', address: getString(block, 'file_id') }, files)]
  if (type === 'search_result')
    return [
      toTextPart(`[search result ${getString(block, 'source')}]`),
      ...getArray(block, 'content').map(readText).map(toTextPart),
    ]
  return internalTypes.includes(type) ? [] : [toTextPart(formatMarker(block))]
}

const readText = (block: unknown): string => getString(block, 'text')

/** Reads the source of an image or document: a `data:` URL for embedded bytes, else its URL or file id. */
function readAddress(block: Block): string {
  const { source } = block
  if (getString(source, 'type') === 'base64')
    return `data:${getString(source, 'media_type')};base64,${getString(source, 'data')}`
  return getString(source, 'url') || getString(source, 'file_id')
}

/** Reads a document, whose source is bytes, text, text blocks or a reference. */
function readDocument(block: Block): { data: string; address: string } {
  const type = getString(block, 'source', 'type')
  const address = readAddress(block)
  if (type !== 'text' && type !== 'content')
    return address.startsWith('data:') ? { data: address, address: '' } : { data: '', address }
  const text =
    type === 'text'
      ? getString(block, 'source', 'data')
      : toBlocks(getPath(block, 'source', 'content'))
          .map(readText)
          .join('\n')
  return { data: `data:text/plain;base64,${Buffer.from(text).toString('base64')}`, address: '' }
}
