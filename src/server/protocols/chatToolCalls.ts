import { isObject } from '../../domain/checks.ts'
import type { ToolCall } from '../../domain/entry.ts'
import type { ChatMessage, ChatToolCall } from '../../domain/ledger.ts'
import { listAt, parseJson, textAt } from '../../providers/json.ts'
import type { Body } from './protocol.ts'

type Fields = Readonly<Record<string, unknown>>

/** Parses a tool call. The text input of a custom tool becomes `{"input": …}`, as in the Responses protocol. */
export function parseToolCall(call: unknown): ToolCall {
  const id = textAt(call, 'id')
  if (!isCustom(call))
    return { id, name: textAt(call, 'function', 'name'), arguments: textAt(call, 'function', 'arguments') }
  return { id, name: textAt(call, 'custom', 'name'), arguments: toArguments(textAt(call, 'custom', 'input')) }
}

/** Encodes the text input of a custom tool as function arguments. */
export const toArguments = (input: string): string => JSON.stringify({ input })

const isCustom = (call: unknown): call is Fields => isObject(call) && isObject(call.custom)

/** Converts the deprecated `function_call`. It has no id, so the function's name serves as the id. */
export const fromFunctionCall = (call: Fields): Fields => ({ id: call.name, type: 'function', function: call })

/** True if the message has `tool_calls` or the deprecated `function_call`. */
export const hasToolCalls = (message: Fields): boolean =>
  (message.tool_calls ?? message.function_call ?? undefined) !== undefined

/** Converts custom tool calls and deprecated function calls and results to function tool calls and tool messages. */
export function normalizeToolCalls(message: Fields): Fields {
  const { role } = message
  if (role === 'function' && textAt(message, 'name') !== '')
    return { role: 'tool', tool_call_id: message.name, content: message.content }
  // Fast path: most messages of a history have no calls.
  if (role !== 'assistant' || !hasToolCalls(message)) return message
  const { tool_calls: calls, function_call: functionCall, ...rest } = message
  if (Array.isArray(calls) && calls.some(isCustom))
    return { ...rest, tool_calls: calls.map((call) => (isCustom(call) ? toFunctionCall(parseToolCall(call)) : call)) }
  return isObject(functionCall) && listAt(message, 'tool_calls').length === 0
    ? { ...rest, tool_calls: [fromFunctionCall(functionCall)] }
    : message
}

export const toFunctionCall = ({ id, name, arguments: text }: ToolCall): ChatToolCall => ({
  id,
  type: 'function',
  function: { name, arguments: text },
})

/** Converts calls and results in memory messages back to the kinds of tools that the client declares. */
export function restoreToolCalls(memory: readonly ChatMessage[], body: Body): readonly Fields[] {
  if (!Array.isArray(body.tools)) return Array.isArray(body.functions) ? restoreFunctionCalls(memory) : memory
  const tools = body.tools.filter(isCustom)
  if (tools.length === 0) return memory
  const customNames = new Set(tools.map((tool) => textAt(tool, 'custom', 'name')))
  customNames.delete('')
  return memory.map((message) => restoreCustomCalls(message, customNames))
}

function restoreCustomCalls(message: ChatMessage, customNames: ReadonlySet<string>): Fields {
  if (message.role !== 'assistant' || message.tool_calls === undefined) return message
  return {
    ...message,
    tool_calls: message.tool_calls.map((call) => (customNames.has(call.function.name) ? toCustomCall(call) : call)),
  }
}

const toCustomCall = ({ id, function: { name, arguments: text } }: ChatToolCall): Fields => ({
  id,
  type: 'custom',
  custom: { name, input: textAt(parseJson(text), 'input') },
})

/** Restores deprecated function calls: a server asked with `functions` may not support `tools`. */
function restoreFunctionCalls(memory: readonly ChatMessage[]): readonly Fields[] {
  const restoredIds = new Set<string>()
  return memory.map((message): Fields => {
    if (message.role === 'tool' && restoredIds.has(message.tool_call_id))
      return { role: 'function', name: message.tool_call_id, content: message.content }
    if (message.role !== 'assistant' || message.tool_calls === undefined) return message
    const {
      tool_calls: [call, ...others],
      ...rest
    } = message
    if (call === undefined || others.length > 0 || call.id !== call.function.name) return message
    restoredIds.add(call.id)
    return { ...rest, function_call: call.function }
  })
}
