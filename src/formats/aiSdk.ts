import { continuationNotice, parseArguments } from '../context/anthropic.ts'
import type { SourcedChatMessage } from '../context/entryText.ts'
import type { ContentPart, MessageInput, ToolCallInput } from '../domain/chat.ts'
import { isBlank } from '../domain/entry.ts'
import { isObject } from '../domain/error.ts'
import type { AiSdkInstruction, AiSdkMessage, ChatMessage } from '../domain/sdkMessages.ts'
import { getArray, getPath, getString } from '../text/json.ts'
import { restorePayloads } from './originals.ts'

type Part = Readonly<Record<string, unknown>>

/** Name of the format in payloads. */
export const aiSdkProtocol = 'ai-sdk'

const readType = (part: unknown): string => getString(part, 'type')

const aiSdkTypePattern = /^(?:tool-call|tool-result|reasoning|reasoning-file|tool-approval-\w+)$/

/** True for a part that only the format of the AI SDK has. */
export function isAiSdkPart(part: unknown): boolean {
  const type = readType(part)
  if (aiSdkTypePattern.test(type) || getPath(part, 'providerOptions') !== undefined) return true
  if (type === 'custom') return getString(part, 'kind') !== ''
  return type === 'image' ? getPath(part, 'image') !== undefined : type === 'file' && isMediaType(part)
}

const isMediaType = (part: unknown): boolean => getString(part, 'mediaType') !== ''

/** Converts the parts of a message to chat messages: one per tool result, else one. */
export function fromAiSdk(role: MessageInput['role'], parts: readonly Part[]): readonly MessageInput[] {
  if (role === 'assistant') return [toAssistantMessage(parts)]
  const results = parts.filter((part) => readType(part) === 'tool-result')
  if (role !== 'tool' || results.length === 0)
    return [{ role: role === 'tool' ? 'user' : role, content: parts.map(toContentPart) }]
  return results.map((part) => ({
    role: 'tool',
    tool_call_id: getString(part, 'toolCallId'),
    content: formatOutput(part.output),
  }))
}

/** Joins texts directly, as the AI SDK does. Reasoning is not part of the text. */
function toAssistantMessage(parts: readonly Part[]): MessageInput {
  const lines = ['']
  for (const part of parts) {
    const type = readType(part)
    if (type === 'text') lines.push(`${lines.pop()}${getString(part, 'text')}`)
    else if (isServerCall(part)) lines.push(`[${getString(part, 'toolName')}]`, '')
    else if (type === 'file' || type === 'custom') lines.push(`[${type}]`, '')
  }
  const content = lines.filter((line) => line !== '').join('\n')
  const calls = parts.filter((part) => readType(part) === 'tool-call' && !isServerCall(part))
  return { role: 'assistant', content, ...(calls.length > 0 && { tool_calls: calls.map(toToolCall) }) }
}

/** True for a call that the provider has answered itself. */
const isServerCall = (part: Part): boolean => readType(part) === 'tool-call' && part.providerExecuted === true

const toToolCall = (part: Part): ToolCallInput => ({
  id: getString(part, 'toolCallId'),
  type: 'function',
  function: { name: getString(part, 'toolName'), arguments: JSON.stringify(part.input) ?? '{}' },
})

const toContentPart = (part: Part): ContentPart =>
  (readType(part) === 'text' ? part : { type: readType(part) }) as ContentPart

/** Formats the output of a tool as text. */
function formatOutput(output: unknown): string {
  const type = readType(output)
  const value = getPath(output, 'value')
  if (type === 'execution-denied') return `[execution denied] ${getString(output, 'reason')}`.trim()
  if (type === 'content')
    return getArray(output, 'value')
      .map((part) => (readType(part) === 'text' ? getString(part, 'text') : `[${readType(part)}]`))
      .join('\n')
  const text = typeof value === 'string' && type.endsWith('text') ? value : (JSON.stringify(value) ?? '')
  return type.startsWith('error') ? `[error]\n${text}` : text
}

/** Fields of each type of part that chat messages express; others need the original. */
const expressedFields: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  'tool-call': ['toolCallId', 'toolName', 'input'],
  'tool-result': ['toolCallId', 'toolName', 'output'],
}

/** True for a part that a chat message expresses completely. */
export function isExpressed(part: unknown): boolean {
  if (!isObject(part)) return false
  const fields = expressedFields[readType(part)]
  if (fields === undefined) return false
  if (Object.keys(part).some((name) => name !== 'type' && !fields.includes(name) && part[name] !== undefined))
    return false
  return readType(part) !== 'tool-result' || ['text', 'json'].includes(readType(part.output))
}

/** Returns a part with a placeholder for bytes. */
export function toStoredPart(part: Part): Part {
  const type = readType(part)
  if (isInline(part.image ?? part.data)) return { type: 'text', text: `[${type}]` }
  if (type !== 'tool-result' || !getArray(part, 'output', 'value').some((one) => isInline(getPath(one, 'data'))))
    return part
  return { ...part, output: { type: 'text', value: formatOutput(part.output) } }
}

/** True for the bytes of a file, also encoded as text. */
function isInline(data: unknown): boolean {
  if (typeof data === 'string') return !/^https?:/i.test(data)
  if (data instanceof URL) return data.protocol === 'data:'
  if (data instanceof ArrayBuffer || ArrayBuffer.isView(data)) return true
  return ['data', 'text'].includes(readType(data))
}

/** Converts a history for the AI SDK, with the original form of messages that have one. */
export function toAiSdkContext(history: readonly SourcedChatMessage[]): {
  readonly instructions: AiSdkInstruction[]
  readonly messages: AiSdkMessage[]
} {
  const first = history.findIndex(({ role }) => role !== 'system')
  const start = first < 0 ? history.length : first
  const instructions = history
    .slice(0, start)
    .map(({ content }): AiSdkInstruction => ({ role: 'system', content: content ?? '' }))
  const messages: AiSdkMessage[] = []
  const toolNames = new Map<string, string>()
  for (const part of restorePayloads(history.slice(start), aiSdkProtocol)) {
    const converted =
      'items' in part ? (part.items as readonly AiSdkMessage[]) : [toAiSdkMessage(part.message, toolNames)]
    for (const message of converted) appendMessage(messages, message, toolNames)
  }
  if (messages[0]?.role === 'assistant') messages.unshift({ role: 'user', content: continuationNotice })
  return { instructions, messages }
}

/** Appends a message; results of one reply become one message. */
function appendMessage(messages: AiSdkMessage[], message: AiSdkMessage, toolNames: Map<string, string>): void {
  if (message.role === 'assistant' && typeof message.content !== 'string')
    for (const part of message.content) if (part.type === 'tool-call') toolNames.set(part.toolCallId, part.toolName)
  const last = messages.at(-1)
  if (last?.role === 'tool' && message.role === 'tool')
    messages[messages.length - 1] = { ...last, content: [...last.content, ...message.content] }
  else messages.push(message)
}

/** Converts a message. The AI SDK refuses system messages among the others, so they become user messages. */
function toAiSdkMessage(message: ChatMessage, toolNames: ReadonlyMap<string, string>): AiSdkMessage {
  if (message.role === 'tool') {
    const { tool_call_id: toolCallId, content: value } = message
    const toolName = toolNames.get(toolCallId) ?? 'tool'
    return { role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, output: { type: 'text', value } }] }
  }
  if (message.role !== 'assistant') return { role: 'user', content: message.content }
  const { content, tool_calls: calls = [] } = message
  if (calls.length === 0) return { role: 'assistant', content: content ?? '' }
  return {
    role: 'assistant',
    content: [
      ...(content === null || isBlank(content) ? [] : [{ type: 'text' as const, text: content }]),
      ...calls.map(({ id, function: { name, arguments: json } }) => ({
        type: 'tool-call' as const,
        toolCallId: id,
        toolName: name,
        input: parseArguments(json),
      })),
    ],
  }
}
