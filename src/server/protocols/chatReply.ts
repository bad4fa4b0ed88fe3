import type { Incoming } from '../../domain/chat.ts'
import { isObject } from '../../domain/checks.ts'
import type { ToolCall } from '../../domain/entry.ts'
import { notAReply, reported } from '../../providers/failure.ts'
import { at, listAt, parseJson, textAt } from '../../providers/json.ts'
import { argumentsOf, asFunction, callIn, hasCalls, outdatedCall, withPlainCalls } from './chatCalls.ts'
import type { Heard, Listener, Usage } from './dialect.ts'
import { JsonListener } from './jsonListener.ts'
import { Mould } from './mould.ts'

type Fields = Readonly<Record<string, unknown>>

/** A call on its way; `input` is what a tool that is no function is given. */
type Call = { id: string; name: string; arguments: string; input: string | undefined }

/** So many pieces are joined at a time: as long as they are not, each of them may keep the text it was cut from. */
const mostFresh = 32

/** Puts the assistant's message together from the events of a streamed answer. Of several choices the first one counts. */
class ChatListener extends JsonListener {
  private said = ''
  /** What was said last, piece by piece. */
  private readonly fresh: string[] = []
  private readonly mould = new Mould()
  /** Few replies have any. */
  private calls: Map<number, Call> | undefined
  private finished = false
  private done = false
  private id: string | undefined
  private usage: Usage | undefined

  get isComplete(): boolean {
    return !this.hasFailed && (this.finished || this.done)
  }

  get isOver(): boolean {
    return this.done
  }

  heard(): Heard {
    const calls =
      this.calls === undefined ? [] : [...this.calls].sort(([a], [b]) => a - b).map(([, call]) => grown(call))
    return { reply: assistant(this.said + this.fresh.join(''), calls), id: this.id, usage: this.usage }
  }

  protected override over(): void {
    this.done = true
  }

  protected override takeAlike(text: string): boolean {
    const piece = this.mould.pieceIn(text)
    if (piece === undefined) return false
    this.say(piece)
    return true
  }

  protected override skipAlike(text: string, start: number): number {
    return this.mould.skip(text, start, this.say)
  }

  private readonly say = (piece: string): void => {
    if (this.fresh.push(this.measured(piece)) < mostFresh) return
    this.said += this.fresh.join('')
    this.fresh.length = 0
  }

  /** Comes for every few letters: read field by field, without a walk along paths. */
  protected take(event: Fields, text: string): void {
    const { id, usage, choices } = event
    if (this.id === undefined && typeof id === 'string' && id !== '') this.id = id
    if (isObject(usage)) this.usage = usageOf(usage)
    const choice = Array.isArray(choices) ? choices.find(isFirst) : undefined
    if (choice === undefined) return
    const { delta, finish_reason: reason } = choice
    if (isObject(delta)) this.takeDelta(delta)
    if (typeof reason === 'string' && reason !== '') this.finished = true
    // What such an event tells beside its words changes nothing when it is told again.
    if (isWords(delta) && !isObject(usage)) this.mould.learn(text, delta.content, contentIn)
  }

  private takeDelta({ content, refusal, tool_calls: calls, function_call: outdated }: Fields): void {
    const said = typeof content === 'string' && content !== '' ? content : refusal
    if (typeof said === 'string') this.say(said)
    if (Array.isArray(calls)) for (const [place, call] of calls.entries()) this.addCall(call, place)
    else if (isObject(outdated)) this.addCall(outdatedCall(outdated), 0)
  }

  private addCall(delta: unknown, place: number): void {
    const index = at(delta, 'index')
    const slot = typeof index === 'number' ? index : place
    this.calls ??= new Map()
    const call = this.calls.get(slot) ?? { id: '', name: '', arguments: '', input: undefined }
    // Ids and names come whole, some servers repeat them; arguments come in pieces.
    call.id ||= textAt(delta, 'id')
    call.name ||= textAt(delta, 'function', 'name') || textAt(delta, 'custom', 'name')
    call.arguments += this.measured(textAt(delta, 'function', 'arguments'))
    const input = at(delta, 'custom', 'input')
    if (typeof input === 'string') call.input = `${call.input ?? ''}${this.measured(input)}`
    this.calls.set(slot, call)
  }
}

const contentIn = (event: unknown): unknown => at(listAt(event, 'choices').find(isFirst), 'delta', 'content')
const isWords = (delta: unknown): delta is { readonly content: string } =>
  isObject(delta) &&
  typeof delta.content === 'string' &&
  delta.content !== '' &&
  typeof delta.refusal !== 'string' &&
  !hasCalls(delta)
const isFirst = (choice: unknown): choice is Fields => isObject(choice) && (choice.index ?? 0) === 0
const grown = ({ id, name, arguments: text, input }: Call): ToolCall => ({
  id,
  name,
  arguments: input === undefined ? text : argumentsOf(input),
})

export const chatListener = (where: string): Listener => new ChatListener(where)

/** What an answer has cost, as the upstream counts it. */
const usageOf = (usage: Fields): Usage => ({
  prompt: Number(usage.prompt_tokens) || 0,
  completion: Number(usage.completion_tokens) || 0,
  cached: Number(at(usage, 'prompt_tokens_details', 'cached_tokens')) || 0,
})

/** The assistant's message in an answer that came in one; throws if it is no answer of a model server. */
export function hearChat(text: string, where: string): Heard {
  const json = parseJson(text)
  if (json === undefined) throw notAReply(where, 'something that is not JSON')
  const failure = reported(where, json)
  if (failure !== undefined) throw failure
  const message = at(json, 'choices', 0, 'message')
  if (!isObject(message)) throw notAReply(where, 'JSON of another kind')
  const content = textAt(message, 'content') || textAt(message, 'refusal')
  return {
    reply: assistant(content, callsIn(message)),
    id: textAt(json, 'id') || undefined,
    usage: isObject(json) && isObject(json.usage) ? usageOf(json.usage) : undefined,
  }
}

function callsIn(message: Fields): readonly ToolCall[] {
  return hasCalls(message) ? listAt(withPlainCalls({ role: 'assistant', ...message }), 'tool_calls').map(callIn) : []
}

/** A call nobody can answer, because it has no id or names no tool, is not kept. */
function assistant(content: string, calls: readonly ToolCall[]): Incoming {
  const kept = calls.filter((call) => call.id !== '' && call.name !== '')
  return kept.length === 0
    ? { role: 'assistant', content }
    : { role: 'assistant', content, tool_calls: kept.map(asFunction) }
}
