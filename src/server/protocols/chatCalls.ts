import { isObject } from '../../domain/checks.ts'
import type { ToolCall } from '../../domain/entry.ts'
import type { ChatMessage, ChatToolCall } from '../../domain/ledger.ts'
import { listAt, parseJson, textAt } from '../../providers/json.ts'
import type { Body } from './dialect.ts'

type Fields = Readonly<Record<string, unknown>>

/** A call in neutral words. Other tools than functions take plain text, which is told as responses tell it. */
export function callIn(call: unknown): ToolCall {
  const id = textAt(call, 'id')
  if (!isCustom(call))
    return { id, name: textAt(call, 'function', 'name'), arguments: textAt(call, 'function', 'arguments') }
  return { id, name: textAt(call, 'custom', 'name'), arguments: argumentsOf(textAt(call, 'custom', 'input')) }
}

/** The text that a tool takes, as the arguments of a function. */
export const argumentsOf = (input: string): string => JSON.stringify({ input })

const isCustom = (call: unknown): call is Fields => isObject(call) && isObject(call.custom)

/** The call of a client that knows functions, but no tools: such calls have no ids and are known by the function's name. */
export const outdatedCall = (call: Fields): Fields => ({ id: call.name, type: 'function', function: call })

/** Whether a message may hold calls, of whichever kind. */
export const hasCalls = (message: Fields): boolean =>
  (message.tool_calls ?? message.function_call ?? undefined) !== undefined

/** A message whose calls and results are told as those of functions that are tools, whichever kind they are. */
export function withPlainCalls(message: Fields): Fields {
  const { role } = message
  if (role === 'function' && textAt(message, 'name') !== '')
    return { role: 'tool', tool_call_id: message.name, content: message.content }
  // Most messages have no calls, and all of a history comes through here: nothing is taken apart before there is need.
  if (role !== 'assistant' || !hasCalls(message)) return message
  const { tool_calls: calls, function_call: outdated, ...rest } = message
  if (Array.isArray(calls) && calls.some(isCustom))
    return { ...rest, tool_calls: calls.map((call) => (isCustom(call) ? asFunction(callIn(call)) : call)) }
  return isObject(outdated) && listAt(message, 'tool_calls').length === 0
    ? { ...rest, tool_calls: [outdatedCall(outdated)] }
    : message
}

export const asFunction = ({ id, name, arguments: text }: ToolCall): ChatToolCall => ({
  id,
  type: 'function',
  function: { name, arguments: text },
})

/** What memory shows, with calls and results of the kinds that the client's own tools are of. */
export function withOwnCalls(memory: readonly ChatMessage[], body: Body): readonly Fields[] {
  if (!Array.isArray(body.tools)) return Array.isArray(body.functions) ? asOutdated(memory) : memory
  const tools = body.tools.filter(isCustom)
  if (tools.length === 0) return memory
  const custom = new Set(tools.map((tool) => textAt(tool, 'custom', 'name')))
  custom.delete('')
  return memory.map((message) => asCustom(message, custom))
}

function asCustom(message: ChatMessage, custom: ReadonlySet<string>): Fields {
  if (message.role !== 'assistant' || message.tool_calls === undefined) return message
  return {
    ...message,
    tool_calls: message.tool_calls.map((call) => (custom.has(call.function.name) ? customCall(call) : call)),
  }
}

const customCall = ({ id, function: { name, arguments: text } }: ChatToolCall): Fields => ({
  id,
  type: 'custom',
  custom: { name, input: textAt(parseJson(text), 'input') },
})

/** A server that is asked by such clients may know no tools either. */
function asOutdated(memory: readonly ChatMessage[]): readonly Fields[] {
  const called = new Set<string>()
  return memory.map((message): Fields => {
    if (message.role === 'tool' && called.has(message.tool_call_id))
      return { role: 'function', name: message.tool_call_id, content: message.content }
    if (message.role !== 'assistant' || message.tool_calls === undefined) return message
    const {
      tool_calls: [call, ...others],
      ...rest
    } = message
    if (call === undefined || others.length > 0 || call.id !== call.function.name) return message
    called.add(call.id)
    return { ...rest, function_call: call.function }
  })
}
