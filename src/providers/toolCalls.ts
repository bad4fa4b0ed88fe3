import type { ChatMessage } from '../domain/ledger.ts'

/**
 * Rewrites tool calls and their results as plain text. Providers reject calls of tools that the request does not define,
 * and requests to a `Model` define none.
 */
export function flattenToolCalls(messages: readonly ChatMessage[]): ChatMessage[] {
  const toolNames = new Map<string, string>()
  return messages.map((message) => {
    if (message.role === 'tool') {
      const toolName = toolNames.get(message.tool_call_id) ?? 'a tool'
      return { role: 'user', content: `(result of ${toolName}) ${message.content}` }
    }
    if (message.role !== 'assistant' || message.tool_calls === undefined) return message
    for (const call of message.tool_calls) toolNames.set(call.id, call.function.name)
    const calls = message.tool_calls.map((call) => `(called ${call.function.name} with ${call.function.arguments})`)
    return { role: 'assistant', content: [message.content ?? '', ...calls].filter((part) => part !== '').join('\n') }
  })
}
