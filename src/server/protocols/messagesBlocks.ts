import type { ContentPart, MessageInput } from '../../domain/chat.ts'
import { isBlank } from '../../domain/entry.ts'
import { describeValue, isObject } from '../../domain/error.ts'
import {
  type Block,
  convertBlock,
  isToolResult,
  isToolUse,
  toAssistantMessage,
  toBlocks,
  toChatMessages as toConversation,
} from '../../formats/anthropic.ts'
import { getPath, getString } from '../../text/json.ts'
import type { FilePart } from './protocol.ts'
import {
  addFilePart,
  addMediaUrl,
  invalidField,
  readType,
  requireObject,
  requireParts,
  requireText,
} from './request.ts'

/** Message as Anthropic clients send it, with validated role and content. */
export type RawMessage = { readonly role: string; readonly content: unknown }

const roles = ['user', 'assistant', 'system']

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
 * thinking yields none. Files in tool results get a placeholder only: the user did not upload them.
 */
export function toChatMessages({ role, content }: RawMessage, files: FilePart[]): readonly MessageInput[] {
  if (typeof content === 'string')
    return role === 'assistant' && isBlank(content) ? [] : [{ role: role as MessageInput['role'], content }]
  const blocks = toBlocks(content)
  if (role !== 'assistant')
    return toConversation(role as 'user' | 'system', blocks, (block, isInResult) =>
      toParts(block, isInResult ? [] : files),
    )
  const reply = toAssistantMessage(blocks)
  return isBlank(reply.content as string) && reply.tool_calls === undefined ? [] : [reply]
}

function toParts(block: Block, files: FilePart[]): readonly ContentPart[] {
  const type = readType(block)
  if (type === 'image') return [addMediaUrl('image', readAddress(block), files)]
  if (type === 'document') return [addFilePart({ name: getString(block, 'title'), ...readDocument(block) }, files)]
  if (type === 'container_upload')
    return [addFilePart({ name: '', data: '', address: getString(block, 'file_id') }, files)]
  return convertBlock(block, false)
}

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
          .map((one) => getString(one, 'text'))
          .join('\n')
  return { data: `data:text/plain;base64,${Buffer.from(text).toString('base64')}`, address: '' }
}
