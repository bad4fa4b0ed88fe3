import { isBlank } from '../../domain/entry.ts'
import type { ChatMessage, ChatToolCall } from '../../domain/ledger.ts'
import { parseJson, textAt } from '../../providers/json.ts'
import { answersOf, type Item } from './responsesItems.ts'

/**
 * What memory shows, as items. `following` are the client's own items after it: a result among them says of which kind
 * the call is that it answers, for the API takes no result without a call of its kind. `resent` are those of the client's
 * items that say more than the words memory has for them.
 */
export function itemsOf(
  memory: readonly ChatMessage[],
  following: readonly Item[],
  resent: ReadonlyMap<string, Item>,
): Item[] {
  const kinds = new Map(following.map((item) => [answersOf(item), textAt(item, 'type').replace(/_output$/, '')]))
  return memory.flatMap((message): Item[] => {
    if (message.role === 'tool')
      return [{ type: 'function_call_output', call_id: message.tool_call_id, output: message.content }]
    const own = message.role === 'user' ? resent.get(message.content) : undefined
    if (own !== undefined) return [own]
    const said =
      message.content === null || isBlank(message.content) ? [] : [{ role: message.role, content: message.content }]
    const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : []
    return [...said, ...calls.map((call) => callItem(call, kinds.get(call.id)))]
  })
}

function callItem({ id, function: { name, arguments: text } }: ChatToolCall, kind = 'function_call'): Item {
  if (kind === 'function_call') return { type: kind, call_id: id, name, arguments: text }
  const fields = parseJson(text) as Item | undefined
  return { type: kind, call_id: id, ...(kind === 'custom_tool_call' ? { name } : { status: 'completed' }), ...fields }
}
