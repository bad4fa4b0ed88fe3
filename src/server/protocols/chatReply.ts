import type { Incoming } from '../../domain/chat.ts'
import { isObject } from '../../domain/checks.ts'
import type { ToolCall } from '../../domain/entry.ts'
import { notAReply } from '../../providers/errors.ts'
import { at, listAt, textAt } from '../../providers/json.ts'
import {
  fromFunctionCall,
  hasToolCalls,
  normalizeToolCalls,
  parseToolCall,
  toArguments,
  toFunctionCall,
} from './chatToolCalls.ts'
import { JsonReplyParser, parseJsonReply } from './jsonReplyParser.ts'
import type { Heard, Listener, Usage } from './protocol.ts'
import { SseTemplateCache } from './sseTemplateCache.ts'

type Fields = Readonly<Record<string, unknown>>

/** Tool call under assembly; `input` is the text input of a custom tool. */
type PartialCall = { id: string; name: string; arguments: string; input: string | undefined }

/** Deltas are joined in batches of this size: an unjoined slice may keep the whole chunk it was cut from in memory. */
const deltaBatchSize = 32

/** Assembles the assistant message from a streamed chat completion. Reads only the choice with index 0. */
class ChatReplyParser extends JsonReplyParser {
  private text = ''
  /** Deltas that are not yet part of `text`. */
  private readonly pendingDeltas: string[] = []
  private readonly templates = new SseTemplateCache()
  /** Undefined until the first call: few replies have any. */
  private calls: Map<number, PartialCall> | undefined
  private hasFinishReason = false
  private done = false
  private id: string | undefined
  private usage: Usage | undefined

  get isComplete(): boolean {
    return !this.hasFailed && (this.hasFinishReason || this.done)
  }

  get isOver(): boolean {
    return this.done
  }

  heard(): Heard {
    const calls =
      this.calls === undefined ? [] : [...this.calls].sort(([a], [b]) => a - b).map(([, call]) => toToolCall(call))
    return {
      reply: createAssistantMessage(this.text + this.pendingDeltas.join(''), calls),
      id: this.id,
      usage: this.usage,
    }
  }

  protected override handleDone(): void {
    this.done = true
  }

  protected override handleTemplateEvent(text: string): boolean {
    const delta = this.templates.match(text)
    if (delta === undefined) return false
    this.appendText(delta)
    return true
  }

  protected override consumeTemplateEvents(text: string, start: number): number {
    return this.templates.consume(text, start, this.appendText)
  }

  private readonly appendText = (delta: string): void => {
    if (this.pendingDeltas.push(this.limitSize(delta)) < deltaBatchSize) return
    this.text += this.pendingDeltas.join('')
    this.pendingDeltas.length = 0
  }

  /** Runs for every few characters of a reply, so it reads fields directly instead of walking paths. */
  protected handleEvent(event: Fields, text: string): void {
    const { id, usage, choices } = event
    if (this.id === undefined && typeof id === 'string' && id !== '') this.id = id
    if (isObject(usage)) this.usage = toUsage(usage)
    const choice = Array.isArray(choices) ? choices.find(isFirstChoice) : undefined
    if (choice === undefined) return
    const { delta, finish_reason: reason } = choice
    if (isObject(delta)) this.appendDelta(delta)
    if (typeof reason === 'string' && reason !== '') this.hasFinishReason = true
    // Events without usage carry nothing but text that matters when repeated, so they may serve as a template.
    if (isTextDelta(delta) && !isObject(usage)) this.templates.learn(text, delta.content, readContent)
  }

  private appendDelta({ content, refusal, tool_calls: calls, function_call: functionCall }: Fields): void {
    const text = typeof content === 'string' && content !== '' ? content : refusal
    if (typeof text === 'string') this.appendText(text)
    if (Array.isArray(calls)) for (const [position, call] of calls.entries()) this.appendCall(call, position)
    else if (isObject(functionCall)) this.appendCall(fromFunctionCall(functionCall), 0)
  }

  private appendCall(delta: unknown, position: number): void {
    const index = at(delta, 'index')
    const slot = typeof index === 'number' ? index : position
    this.calls ??= new Map()
    const call = this.calls.get(slot) ?? { id: '', name: '', arguments: '', input: undefined }
    // Ids and names arrive complete, and some servers repeat them; arguments arrive in pieces.
    call.id ||= textAt(delta, 'id')
    call.name ||= textAt(delta, 'function', 'name') || textAt(delta, 'custom', 'name')
    call.arguments += this.limitSize(textAt(delta, 'function', 'arguments'))
    const input = at(delta, 'custom', 'input')
    if (typeof input === 'string') call.input = `${call.input ?? ''}${this.limitSize(input)}`
    this.calls.set(slot, call)
  }
}

const readContent = (event: unknown): unknown => at(listAt(event, 'choices').find(isFirstChoice), 'delta', 'content')
const isTextDelta = (delta: unknown): delta is { readonly content: string } =>
  isObject(delta) &&
  typeof delta.content === 'string' &&
  delta.content !== '' &&
  typeof delta.refusal !== 'string' &&
  !hasToolCalls(delta)
const isFirstChoice = (choice: unknown): choice is Fields => isObject(choice) && (choice.index ?? 0) === 0
const toToolCall = ({ id, name, arguments: text, input }: PartialCall): ToolCall => ({
  id,
  name,
  arguments: input === undefined ? text : toArguments(input),
})

export const createChatReplyParser = (address: string): Listener => new ChatReplyParser(address)

const toUsage = (usage: Fields): Usage => ({
  prompt: Number(usage.prompt_tokens) || 0,
  completion: Number(usage.completion_tokens) || 0,
  cached: Number(at(usage, 'prompt_tokens_details', 'cached_tokens')) || 0,
})

/** Parses a complete chat completion. Throws if the text is not one. */
export function parseChatReply(text: string, address: string): Heard {
  const json = parseJsonReply(text, address)
  const message = at(json, 'choices', 0, 'message')
  if (!isObject(message)) throw notAReply(address, 'JSON of another kind')
  const content = textAt(message, 'content') || textAt(message, 'refusal')
  return {
    reply: createAssistantMessage(content, readToolCalls(message)),
    id: textAt(json, 'id') || undefined,
    usage: isObject(json) && isObject(json.usage) ? toUsage(json.usage) : undefined,
  }
}

function readToolCalls(message: Fields): readonly ToolCall[] {
  if (!hasToolCalls(message)) return []
  return listAt(normalizeToolCalls({ role: 'assistant', ...message }), 'tool_calls').map(parseToolCall)
}

/** Drops calls without an id or a name: no tool result can refer to them. */
function createAssistantMessage(content: string, calls: readonly ToolCall[]): Incoming {
  const valid = calls.filter((call) => call.id !== '' && call.name !== '')
  return valid.length === 0
    ? { role: 'assistant', content }
    : { role: 'assistant', content, tool_calls: valid.map(toFunctionCall) }
}
