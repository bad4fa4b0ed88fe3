import type { ToolCall } from '../domain/entry.ts'
import { isObject } from '../domain/error.ts'
import type { ChatToolCall } from '../domain/sdkMessages.ts'
import { getArray, getString } from '../text/json.ts'

type Fields = Readonly<Record<string, unknown>>

/** Parses a tool call. The text input of a custom tool becomes `{"input": …}`, as in the Responses protocol. */
export function parseToolCall(call: unknown): ToolCall {
  const id = getString(call, 'id')
  if (!isCustom(call))
    return { id, name: getString(call, 'function', 'name'), arguments: getString(call, 'function', 'arguments') }
  return { id, name: getString(call, 'custom', 'name'), arguments: toArguments(getString(call, 'custom', 'input')) }
}

/** Encodes the text input of a custom tool as function arguments. */
export const toArguments = (input: string): string => JSON.stringify({ input })

/** True for a custom tool, and for a call of one. */
export const isCustom = (call: unknown): call is Fields => isObject(call) && isObject(call.custom)

/** Converts the deprecated `function_call`. It has no id, so the function's name serves as the id. */
export const fromFunctionCall = (call: Fields): Fields => ({ id: call.name, type: 'function', function: call })

/** True if the message has `tool_calls` or the deprecated `function_call`. */
export const hasToolCalls = (message: Fields): boolean =>
  (message.tool_calls ?? message.function_call ?? undefined) !== undefined

/** Converts custom tool calls and deprecated function calls and results to function tool calls and tool messages. */
export function normalizeToolCalls(message: Fields): Fields {
  const { role } = message
  if (role === 'function' && getString(message, 'name') !== '')
    return { role: 'tool', tool_call_id: message.name, content: message.content }
  // Fast path: most messages of a history have no calls.
  if (role !== 'assistant' || !hasToolCalls(message)) return message
  const { tool_calls: calls, function_call: functionCall, ...rest } = message
  if (Array.isArray(calls) && calls.some(isCustom))
    return { ...rest, tool_calls: calls.map((call) => (isCustom(call) ? toFunctionCall(parseToolCall(call)) : call)) }
  return isObject(functionCall) && getArray(message, 'tool_calls').length === 0
    ? { ...rest, tool_calls: [fromFunctionCall(functionCall)] }
    : message
}

export const toFunctionCall = ({ id, name, arguments: text }: ToolCall): ChatToolCall => ({
  id,
  type: 'function',
  function: { name, arguments: text },
})
