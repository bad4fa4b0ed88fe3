import type { ChatMessage } from '../domain/ledger.ts'

/**
 * The conversation with its tool calls and their results as plain words. Providers refuse calls of tools that the
 * request does not define, and an ask defines none.
 */
export function flatten(messages: readonly ChatMessage[]): ChatMessage[] {
  const names = new Map<string, string>()
  return messages.map((message) => {
    if (message.role === 'tool')
      return { role: 'user', content: `(result of ${names.get(message.tool_call_id) ?? 'a tool'}) ${message.content}` }
    if (message.role !== 'assistant' || message.tool_calls === undefined) return message
    for (const call of message.tool_calls) names.set(call.id, call.function.name)
    const calls = message.tool_calls.map((call) => `(called ${call.function.name} with ${call.function.arguments})`)
    return { role: 'assistant', content: [message.content ?? '', ...calls].filter((part) => part !== '').join('\n') }
  })
}
