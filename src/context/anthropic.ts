import { isBlank } from '../domain/entry.ts'
import type { AnthropicBlock, AnthropicMessage, ChatMessage } from '../domain/ledger.ts'

/** Stands first when the conversation shown begins with the assistant: the API wants a user's turn there. */
export const opener = '(The conversation continues.)'

type Turn = { role: 'user' | 'assistant'; blocks: AnthropicBlock[] }

/**
 * The same conversation by the rules of Anthropic's API: system text apart, a user's turn first, roles taking turns,
 * results in the turn after their calls, every call with an id of its own.
 */
export function toAnthropic(messages: readonly ChatMessage[]): { system: string; messages: AnthropicMessage[] } {
  const first = messages.findIndex((message) => message.role !== 'system')
  const start = first < 0 ? messages.length : first
  const system = messages.slice(0, start).map((message) => message.content)
  const turns: Turn[] = []
  const ids = new CallIds()
  for (const message of messages.slice(start)) add(turns, message, ids)
  if (turns[0]?.role === 'assistant') turns.unshift({ role: 'user', blocks: [{ type: 'text', text: opener }] })
  return { system: system.join('\n\n'), messages: turns.map(plain) }
}

function add(turns: Turn[], message: ChatMessage, ids: CallIds): void {
  const role = message.role === 'assistant' ? 'assistant' : 'user'
  const blocks = blocksOf(message, ids)
  const last = turns.at(-1)
  if (last?.role === role) last.blocks.push(...blocks)
  else turns.push({ role, blocks })
}

function blocksOf(message: ChatMessage, ids: CallIds): AnthropicBlock[] {
  if (message.role === 'tool')
    return [{ type: 'tool_result', tool_use_id: ids.answered(message.tool_call_id), content: message.content }]
  const text: AnthropicBlock[] =
    message.content === null || isBlank(message.content)
      ? []
      : [{ type: 'text', text: message.role === 'assistant' ? message.content.trimEnd() : message.content }]
  const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : []
  return [
    ...text,
    ...calls.map(
      (call): AnthropicBlock => ({
        type: 'tool_use',
        id: ids.called(call.id),
        name: toolName(call.function.name),
        input: inputOf(call.function.arguments),
      }),
    ),
  ]
}

/** One text block alone is written as plain text. */
function plain({ role, blocks }: Turn): AnthropicMessage {
  const [only] = blocks
  return { role, content: blocks.length === 1 && only?.type === 'text' ? only.text : blocks }
}

const toolName = (name: string): string => name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 128) || 'tool'

/** The arguments of a call as an object. */
export function inputOf(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : { value }
  } catch {
    return { arguments: json }
  }
}

/** Ids that are unique in the conversation and hold only the characters the API takes. */
class CallIds {
  private readonly used = new Set<string>()
  private readonly current = new Map<string, string>()
  private renamed = 0

  called(id: string): string {
    const base = id.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 56) || 'call'
    let unique = base
    // short, because what is sent must not cost more than what was counted
    while (this.used.has(unique)) unique = `c${++this.renamed}`
    this.used.add(unique)
    this.current.set(id, unique)
    return unique
  }

  answered(id: string): string {
    return this.current.get(id) ?? id
  }
}
