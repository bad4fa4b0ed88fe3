import type { AnthropicMessage, ChatMessage } from '../../../src/domain/ledger.ts'
import { anthropicFaults, openaiFaults } from '../../context/validity.ts'

type Fields = Readonly<Record<string, unknown>>
type Request = {
  readonly path: string
  readonly body: { readonly messages: readonly Fields[]; readonly input: string | readonly Fields[] } & Fields
}

/** What the service itself would refuse in a request. */
export function faultsIn({ path, body }: Request): readonly string[] {
  if (typeof body.model !== 'string') return ['model is missing']
  const foreign = Object.keys(body).find((field) => field.startsWith('threadkeep'))
  if (foreign !== undefined) return [`Unrecognized request argument: ${foreign}`]
  if (path === '/v1/chat/completions') return openaiFaults(body.messages.map(plainChat))
  if (path === '/v1/messages') return messagesFaults(body)
  return responsesFaults(body)
}

/** The rules are written for text: a list of parts counts as one. Beside calls the service takes any text, even a blank one. */
function plainChat({ role, content, tool_calls, tool_call_id }: Fields): ChatMessage {
  const text = Array.isArray(content) ? JSON.stringify(content) : content
  return {
    role: role === 'developer' ? 'system' : role,
    content: tool_calls === undefined ? text : String(text ?? '').trim() || null,
    ...(tool_calls === undefined ? {} : { tool_calls }),
    ...(tool_call_id === undefined ? {} : { tool_call_id }),
  } as ChatMessage
}

function messagesFaults({ system, messages, max_tokens: most }: Request['body']): readonly string[] {
  if (typeof most !== 'number') return ['max_tokens: Field required']
  const talk = messages.filter(({ role }) => role !== 'system') as readonly unknown[] as readonly AnthropicMessage[]
  return anthropicFaults({ system: typeof system === 'string' ? system : JSON.stringify(system ?? ''), messages: talk })
}

/** Nothing is kept here, so nothing can be referred to; each call must have its result, and each result its call. */
function responsesFaults({ input, previous_response_id: previous, conversation }: Request['body']): readonly string[] {
  if (previous !== undefined && previous !== null) return [`Previous response with id '${previous}' not found.`]
  if (conversation !== undefined && conversation !== null) return ['Conversation not found.']
  const items = typeof input === 'string' ? [] : input
  const reference = items.find(({ type }) => type === 'item_reference')
  if (reference !== undefined) return [`Item with id '${reference.id}' not found.`]
  const ids = (wanted: string) => items.filter(({ type }) => type === wanted).map(({ call_id: id }) => String(id))
  const [made, answered] = [ids('function_call'), ids('function_call_output')]
  return [
    ...made.filter((id) => !answered.includes(id)).map((id) => `No tool output found for function call ${id}.`),
    ...answered
      .filter((id) => !made.includes(id))
      .map((id) => `No tool call found for function call output with call_id ${id}.`),
  ]
}
