import { isObject } from '../../domain/checks.ts'
import { notAReply, reported } from '../../providers/failure.ts'
import { at, listAt, parseJson, textAt } from '../../providers/json.ts'
import { typeOf } from './checks.ts'
import type { Heard, Listener, Usage } from './dialect.ts'
import { JsonListener } from './jsonListener.ts'
import { type Block, replyIn } from './messagesBlocks.ts'

/** A block on its way: as it began, and what has come since. */
type Growing = { readonly block: Block; text: string; json: string }

/** Puts the assistant's message together from the events of a streamed message. */
class MessagesListener extends JsonListener {
  private readonly blocks = new Map<number, Growing>()
  private id: string | undefined
  private usage: Block | undefined
  private stopped = false
  private ended = false

  get isComplete(): boolean {
    return !this.hasFailed && (this.stopped || this.ended)
  }

  get isOver(): boolean {
    return this.ended
  }

  heard(): Heard {
    const blocks = [...this.blocks].sort(([a], [b]) => a - b).map(([, growing]) => grown(growing))
    return { reply: replyIn(blocks), id: this.id, usage: usageIn(this.usage) }
  }

  protected take(event: Block): void {
    const type = typeOf(event)
    if (type === 'message_start') {
      this.id = textAt(event, 'message', 'id') || undefined
      this.count(at(event, 'message', 'usage'))
    } else if (type === 'content_block_start' && isObject(event.content_block)) {
      this.measured(JSON.stringify(event.content_block))
      this.blocks.set(Number(event.index), { block: event.content_block, text: '', json: '' })
    } else if (type === 'content_block_delta') this.grow(this.blocks.get(Number(event.index)), event.delta)
    else if (type === 'message_delta') {
      if (textAt(event, 'delta', 'stop_reason') !== '') this.stopped = true
      this.count(event.usage)
    } else if (type === 'message_stop') this.ended = true
  }

  private grow(growing: Growing | undefined, delta: unknown): void {
    if (growing === undefined) return
    growing.text += this.measured(textAt(delta, 'text'))
    growing.json += this.measured(textAt(delta, 'partial_json'))
  }

  /** Counts are sums up to now; those left out, or null, stay as they were. */
  private count(usage: unknown): void {
    if (!isObject(usage)) return
    this.usage = { ...this.usage, ...Object.fromEntries(Object.entries(usage).filter(([, value]) => value !== null)) }
  }
}

function grown({ block, text, json }: Growing): Block {
  if (block.type === 'text') return { ...block, text: textAt(block, 'text') + text }
  return json === '' ? block : { ...block, input: parseJson(json) ?? json }
}

export const messagesListener = (where: string): Listener => new MessagesListener(where)

/** The assistant's message in an answer that came in one; throws if it is no answer of a model server. */
export function hearMessage(text: string, where: string): Heard {
  const json = parseJson(text)
  if (json === undefined) throw notAReply(where, 'something that is not JSON')
  const failure = reported(where, json)
  if (failure !== undefined) throw failure
  if (!Array.isArray(at(json, 'content'))) throw notAReply(where, 'JSON of another kind')
  return {
    reply: replyIn(listAt(json, 'content')),
    id: textAt(json, 'id') || undefined,
    usage: usageIn(at(json, 'usage')),
  }
}

/** What an answer has cost: the service counts what it read from its cache, or wrote to it, apart from the rest of the prompt. */
function usageIn(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined
  const count = (field: string): number => Number(usage[field]) || 0
  const cached = count('cache_read_input_tokens')
  return {
    prompt: count('input_tokens') + cached + count('cache_creation_input_tokens'),
    completion: count('output_tokens'),
    cached,
  }
}
