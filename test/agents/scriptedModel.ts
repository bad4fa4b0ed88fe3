import type { Call, ScriptedReply } from '../server/clients/responseFormats.ts'
import { listTools, stripContext, type ViewedMessage, viewConversation } from './conversationView.ts'
import type { RecordedRequest } from './recorder.ts'

/** A prompt, the tool calls that the model asks for one after the other, and its answer. */
export type Exchange = {
  readonly prompt: string
  readonly calls?: readonly Call[]
  readonly answer: string
  /** True for a prompt that the model, not the user, gives to a sub-agent. */
  readonly isSubagent?: boolean
}

/** Replies to a request that an agent makes for its own use, with the tags that a compaction prompt asks for. */
function replyToAuxiliary(request: RecordedRequest): ScriptedReply {
  const text = 'Reply to an auxiliary request.'
  const prompt = viewConversation(request).at(-1)?.text ?? ''
  const tag = /<(summary|state_snapshot)>/.exec(prompt)?.[1]
  return { text: tag === undefined ? text : `<analysis>Read all.</analysis>\n<${tag}>${text}</${tag}>` }
}

/** Position of a request in the scripted dialogue; undefined for an auxiliary request. */
export function locate(
  request: RecordedRequest,
  exchanges: readonly Exchange[],
): { readonly exchange: Exchange; readonly step: number } | undefined {
  if (listTools(request).length === 0) return undefined
  const messages = viewConversation(request)
  const index = messages.findLastIndex(({ role, text }) => role === 'user' && stripContext(text) !== '')
  const asked = messages[index]
  const exchange = exchanges.find((candidate) => asked !== undefined && asks(asked, candidate))
  return exchange === undefined ? undefined : { exchange, step: countReplies(messages.slice(index + 1)) }
}

/** A compaction prompt may follow an earlier prompt in one message, so a user's prompt must come last. */
function asks({ text }: ViewedMessage, { prompt, isSubagent }: Exchange): boolean {
  const index = text.lastIndexOf(prompt)
  return index >= 0 && (isSubagent === true || stripContext(text.slice(index + prompt.length)).length < 20)
}

/** Counts replies; text and calls of one reply may be separate items. */
const countReplies = (messages: readonly ViewedMessage[]): number =>
  messages.filter(({ role }, index) => role === 'assistant' && messages[index + 1]?.role !== 'assistant').length

/** Plays the model's part of a dialogue. */
export function playDialogue(request: RecordedRequest, exchanges: readonly Exchange[]): ScriptedReply {
  const position = locate(request, exchanges)
  if (position === undefined) return replyToAuxiliary(request)
  const call = position.exchange.calls?.[position.step]
  return call === undefined ? { text: position.exchange.answer } : { calls: [call] }
}
