import type { AnthropicBlock, AnthropicMessage, ChatMessage } from '../../../src/domain/ledger.ts'
import { findAnthropicFaults, findOpenaiFaults } from '../../context/providerRules.ts'

type Fields = Readonly<Record<string, unknown>>
type Request = {
  readonly path: string
  readonly body: { readonly messages: readonly Fields[]; readonly input: string | readonly Fields[] } & Fields
}

/**
 * Finds the errors for which the real service would reject a request. `stored` has the ids that an OpenAI service holds;
 * without it, references to items are accepted unchecked.
 */
export function findRequestErrors({ path, body }: Request, stored?: ReadonlySet<string>): readonly string[] {
  if (typeof body.model !== 'string') return ['model is missing']
  const unknownField = Object.keys(body).find((field) => field.startsWith('threadkeep'))
  if (unknownField !== undefined) return [`Unrecognized request argument: ${unknownField}`]
  if (path === '/v1/chat/completions') return findOpenaiFaults(body.messages.map(toPlainMessage))
  if (path === '/v1/messages') return findMessagesErrors(body)
  return findResponsesErrors(body, stored)
}

/** Joins parts to text, because the rules expect text. Beside calls the service accepts any text, even blank. */
function toPlainMessage({ role, content, tool_calls, tool_call_id }: Fields): ChatMessage {
  const text = Array.isArray(content) ? JSON.stringify(content) : content
  return {
    role: role === 'developer' ? 'system' : role,
    content: tool_calls === undefined ? text : String(text ?? '').trim() || null,
    ...(tool_calls === undefined ? {} : { tool_calls }),
    ...(tool_call_id === undefined ? {} : { tool_call_id }),
  } as ChatMessage
}

function findMessagesErrors({ system, messages, max_tokens: maxTokens }: Request['body']): readonly string[] {
  if (typeof maxTokens !== 'number') return ['max_tokens: Field required']
  const conversation = messages.filter(({ role }) => role !== 'system') as readonly unknown[]
  return findAnthropicFaults({
    system: typeof system === 'string' ? system : JSON.stringify(system ?? ''),
    messages: joinTurns(conversation as readonly AnthropicMessage[]),
  })
}

/** Joins consecutive messages of one role, which the service reads as one turn. */
function joinTurns(messages: readonly AnthropicMessage[]): readonly AnthropicMessage[] {
  const turns: AnthropicMessage[] = []
  for (const message of messages) {
    const last = turns.at(-1)
    if (last?.role !== message.role) turns.push(message)
    else turns[turns.length - 1] = { role: last.role, content: [last, message].flatMap(toBlocks) }
  }
  return turns
}

const toBlocks = ({ content }: AnthropicMessage): readonly AnthropicBlock[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content

/** References must name something stored. Each call needs its output, and each output its call, here or stored. */
function findResponsesErrors(
  { input, previous_response_id: previous, conversation }: Request['body'],
  stored: ReadonlySet<string> | undefined,
): readonly string[] {
  if (previous !== undefined && previous !== null && stored?.has(String(previous)) !== true)
    return [`Previous response with id '${previous}' not found.`]
  if (conversation !== undefined && conversation !== null) return ['Conversation not found.']
  const items = typeof input === 'string' ? [] : input
  const missing = stored && items.find((item) => isOnlyId(item) && !stored.has(String(item.id)))
  if (missing !== undefined) return [`Item with id '${missing.id}' not found.`]
  const readIds = (wanted: string) => items.filter(({ type }) => type === wanted).map(({ call_id: id }) => String(id))
  const [called, answered] = [readIds('function_call'), readIds('function_call_output')]
  return [
    ...called.filter((id) => !answered.includes(id)).map((id) => `No tool output found for function call ${id}.`),
    ...answered
      .filter((id) => !called.includes(id) && stored?.has(id) !== true)
      .map((id) => `No tool call found for function call output with call_id ${id}.`),
  ]
}

/** True for an item whose content only the service has. */
const isOnlyId = ({ type, encrypted_content: encrypted }: Fields): boolean =>
  type === 'item_reference' || (type === 'reasoning' && typeof encrypted !== 'string')
