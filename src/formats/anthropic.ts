import type { ContentPart, MessageInput, ToolCallInput } from '../domain/chat.ts'
import { isBlank } from '../domain/entry.ts'
import { isObject } from '../domain/error.ts'
import { getArray, getPath, getString } from '../text/json.ts'

/** Content block of an Anthropic message. */
export type Block = Readonly<Record<string, unknown>>
/** Converts a block that is no tool call and no result; `isInResult` tells that it is part of a tool result. */
export type ConvertBlock = (block: Block, isInResult: boolean) => readonly ContentPart[]

/** Block types that are internal to the model and never part of the text. */
const internalTypes = ['thinking', 'redacted_thinking', 'compaction']

const readType = (block: unknown): string => getString(block, 'type')
const toTextPart = (text: string): ContentPart => ({ type: 'text', text })

/** Converts content, which may be plain text, to blocks. */
export const toBlocks = (content: unknown): readonly Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : Array.isArray(content) ? content : []

export const isToolUse = (block: unknown): boolean => readType(block) === 'tool_use'
export const isToolResult = (block: unknown): boolean => readType(block) === 'tool_result'

/** Converts a message of a user or the system: one chat message per tool result, then one for the rest. */
export function toChatMessages(
  role: 'user' | 'system',
  blocks: readonly Block[],
  convert: ConvertBlock,
): readonly MessageInput[] {
  const others = blocks.filter((block) => !isToolResult(block))
  const results = blocks.filter(isToolResult).map(
    (block): MessageInput => ({
      role: 'tool',
      tool_call_id: getString(block, 'tool_use_id'),
      content: toResultParts(block, convert),
    }),
  )
  if (others.length === 0 && results.length > 0) return results
  return [...results, { role, content: others.flatMap((block) => convert(block, false)) }]
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
function toToolCall(block: unknown): ToolCallInput {
  const input = getPath(block, 'input')
  const text = typeof input === 'string' ? input : (JSON.stringify(input) ?? '{}')
  return { id: getString(block, 'id'), type: 'function', function: { name: getString(block, 'name'), arguments: text } }
}

/** Formats the marker for a server-side tool call or its result. */
const formatMarker = (block: unknown): string => `[${getString(block, 'name') || readType(block)}]`

function toResultParts(block: Block, convert: ConvertBlock): readonly ContentPart[] {
  const parts = toBlocks(block.content).flatMap((one) => convert(one, true))
  return block.is_error === true ? [toTextPart('[error]'), ...parts] : parts
}

/** Converts a block to text; media become a placeholder such as `[image]`. */
export const convertBlock: ConvertBlock = (block) => {
  const type = readType(block)
  if (type === 'text') return [toTextPart(getString(block, 'text'))]
  if (type === 'search_result')
    return [
      toTextPart(`[search result ${getString(block, 'source')}]`),
      ...getArray(block, 'content').map((one) => toTextPart(getString(one, 'text'))),
    ]
  return internalTypes.includes(type) ? [] : [toTextPart(formatMarker(block))]
}

/** True for a block that the API sends but rejects in a request: blank text, or a call that no result can refer to. */
export function isRejected(block: unknown): boolean {
  const type = readType(block)
  if (type === 'text') return isBlank(getString(block, 'text'))
  return isToolUse(block) && (getString(block, 'id') === '' || getString(block, 'name') === '')
}

/** Block types of Anthropic's format that the others do not have. */
const anthropicTypePattern =
  /^(?:tool_use|tool_result|thinking|redacted_thinking|server_tool_use|document|\w+_tool_result)$/

/** True for a part that only Anthropic's format has. */
export const isAnthropicBlock = (part: unknown): boolean =>
  anthropicTypePattern.test(readType(part)) ||
  getPath(part, 'citations') !== undefined ||
  (readType(part) === 'image' && isObject(getPath(part, 'source')))

/** Fields of each type of block that chat messages express; others need the original. */
const expressedFields: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  tool_use: ['id', 'name', 'input'],
  tool_result: ['tool_use_id', 'content'],
}

/** True for a block that a chat message expresses completely. */
export function isExpressed(block: unknown): boolean {
  if (!isObject(block)) return false
  const fields = expressedFields[readType(block)]
  if (fields === undefined) return false
  const { content } = block
  if (Array.isArray(content) && !content.every((one) => readType(one) === 'text' && isExpressed(one))) return false
  return Object.entries(block).every(
    ([name, value]) =>
      name === 'type' ||
      fields.includes(name) ||
      value === null ||
      value === undefined ||
      (name === 'is_error' && value === false) ||
      (name === 'caller' && readType(value) === 'direct'),
  )
}
