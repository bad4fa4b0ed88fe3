import { isBlank } from '../domain/entry.ts'
import type { AnthropicBlock, AnthropicMessage, ChatMessage } from '../domain/ledger.ts'

/** User turn inserted before a conversation that starts with the assistant: the API requires a user turn first. */
export const continuationNotice = '(The conversation continues.)'

type Turn = { role: 'user' | 'assistant'; blocks: AnthropicBlock[] }

/**
 * Converts a conversation to Anthropic's format: leading system messages become `system`, the first turn is a user
 * turn, roles alternate, tool results are in the turn after their calls, and call ids are unique.
 */
export function toAnthropic(messages: readonly ChatMessage[]): { system: string; messages: AnthropicMessage[] } {
  const first = messages.findIndex((message) => message.role !== 'system')
  const start = first < 0 ? messages.length : first
  const system = messages.slice(0, start).map((message) => message.content)
  const turns = toAnthropicTurns(messages.slice(start), new CallIds())
  const notice: readonly AnthropicMessage[] =
    turns[0]?.role === 'assistant' ? [{ role: 'user', content: continuationNotice }] : []
  return { system: system.join('\n\n'), messages: [...notice, ...turns] }
}

/** Converts the messages after the leading system messages; roles alternate. */
export function toAnthropicTurns(messages: readonly ChatMessage[], ids: CallIds): readonly AnthropicMessage[] {
  const turns: Turn[] = []
  for (const message of messages) appendToTurns(turns, message, ids)
  return turns.map(toMessage)
}

function appendToTurns(turns: Turn[], message: ChatMessage, ids: CallIds): void {
  const role = message.role === 'assistant' ? 'assistant' : 'user'
  const blocks = toBlocks(message, ids)
  const last = turns.at(-1)
  if (last?.role === role) for (const block of blocks) last.blocks.push(block)
  else turns.push({ role, blocks })
}

function toBlocks(message: ChatMessage, ids: CallIds): AnthropicBlock[] {
  if (message.role === 'tool')
    return [{ type: 'tool_result', tool_use_id: ids.get(message.tool_call_id), content: message.content }]
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
        id: ids.create(call.id),
        name: toToolName(call.function.name),
        input: parseArguments(call.function.arguments),
      }),
    ),
  ]
}

/** Writes a single text block as a plain string. */
function toMessage({ role, blocks }: Turn): AnthropicMessage {
  const [first] = blocks
  return { role, content: blocks.length === 1 && first?.type === 'text' ? first.text : blocks }
}

const toToolName = (name: string): string => name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 128) || 'tool'

/**
 * Parses the arguments of a tool call. Wraps values that are not objects as `{ value }` and invalid JSON as `{
 * arguments }`.
 */
export function parseArguments(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : { value }
  } catch {
    return { arguments: json }
  }
}

/** Maps call ids to ids that are unique in the conversation and contain only characters the API accepts. */
export class CallIds {
  private readonly used = new Set<string>()
  private readonly current = new Map<string, string>()
  private replacements = 0

  create(id: string): string {
    const base = id.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 56) || 'call'
    let unique = base
    // Replacement ids are short, so that they never cost more tokens than were counted.
    while (this.used.has(unique)) unique = `c${++this.replacements}`
    this.used.add(unique)
    this.current.set(id, unique)
    return unique
  }

  /** Returns the latest id created for a call. */
  get(id: string): string {
    return this.current.get(id) ?? id
  }
}
