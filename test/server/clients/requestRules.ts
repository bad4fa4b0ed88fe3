import type { AnthropicMessage, ChatMessage } from '../../../src/domain/ledger.ts'
import { findAnthropicFaults, findOpenaiFaults } from '../../context/providerRules.ts'

type Fields = Readonly<Record<string, unknown>>
type Request = {
  readonly path: string
  readonly body: { readonly messages: readonly Fields[]; readonly input: string | readonly Fields[] } & Fields
}

/** Finds the errors for which the real service would reject a request. */
export function findRequestErrors({ path, body }: Request): readonly string[] {
  if (typeof body.model !== 'string') return ['model is missing']
  const unknownField = Object.keys(body).find((field) => field.startsWith('threadkeep'))
  if (unknownField !== undefined) return [`Unrecognized request argument: ${unknownField}`]
  if (path === '/v1/chat/completions') return findOpenaiFaults(body.messages.map(toPlainMessage))
  if (path === '/v1/messages') return findMessagesErrors(body)
  return findResponsesErrors(body)
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
  const conversation = messages.filter(
    ({ role }) => role !== 'system',
  ) as readonly unknown[] as readonly AnthropicMessage[]
  return findAnthropicFaults({
    system: typeof system === 'string' ? system : JSON.stringify(system ?? ''),
    messages: conversation,
  })
}

/** Rejects all references, because nothing is stored here. Each call needs its output, and each output its call. */
function findResponsesErrors({
  input,
  previous_response_id: previous,
  conversation,
}: Request['body']): readonly string[] {
  if (previous !== undefined && previous !== null) return [`Previous response with id '${previous}' not found.`]
  if (conversation !== undefined && conversation !== null) return ['Conversation not found.']
  const items = typeof input === 'string' ? [] : input
  const reference = items.find(({ type }) => type === 'item_reference')
  if (reference !== undefined) return [`Item with id '${reference.id}' not found.`]
  const readIds = (wanted: string) => items.filter(({ type }) => type === wanted).map(({ call_id: id }) => String(id))
  const [called, answered] = [readIds('function_call'), readIds('function_call_output')]
  return [
    ...called.filter((id) => !answered.includes(id)).map((id) => `No tool output found for function call ${id}.`),
    ...answered
      .filter((id) => !called.includes(id))
      .map((id) => `No tool call found for function call output with call_id ${id}.`),
  ]
}
