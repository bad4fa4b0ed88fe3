import { isObject } from '../../domain/checks.ts'
import { notAReply } from '../../providers/errors.ts'
import { at, listAt, parseJson, textAt } from '../../providers/json.ts'
import { JsonReplyParser, parseJsonReply } from './jsonReplyParser.ts'
import { type Block, toAssistantMessage } from './messagesBlocks.ts'
import type { Heard, Listener, Usage } from './protocol.ts'
import { readType } from './validation.ts'

/** Content block under assembly: its start event and the deltas received since. */
type PartialBlock = { readonly block: Block; text: string; json: string }

/** Assembles the assistant message from a streamed Anthropic message. */
class MessagesReplyParser extends JsonReplyParser {
  private readonly blocks = new Map<number, PartialBlock>()
  private id: string | undefined
  private usage: Block | undefined
  private hasStopReason = false
  private stopped = false

  get isComplete(): boolean {
    return !this.hasFailed && (this.hasStopReason || this.stopped)
  }

  get isOver(): boolean {
    return this.stopped
  }

  heard(): Heard {
    const blocks = [...this.blocks].sort(([a], [b]) => a - b).map(([, partial]) => toBlock(partial))
    return { reply: toAssistantMessage(blocks), id: this.id, usage: toUsage(this.usage) }
  }

  protected handleEvent(event: Block): void {
    const type = readType(event)
    if (type === 'message_start') {
      this.id = textAt(event, 'message', 'id') || undefined
      this.updateUsage(at(event, 'message', 'usage'))
    } else if (type === 'content_block_start' && isObject(event.content_block)) {
      this.limitSize(JSON.stringify(event.content_block))
      this.blocks.set(Number(event.index), { block: event.content_block, text: '', json: '' })
    } else if (type === 'content_block_delta') this.appendDelta(this.blocks.get(Number(event.index)), event.delta)
    else if (type === 'message_delta') {
      if (textAt(event, 'delta', 'stop_reason') !== '') this.hasStopReason = true
      this.updateUsage(event.usage)
    } else if (type === 'message_stop') this.stopped = true
  }

  private appendDelta(partial: PartialBlock | undefined, delta: unknown): void {
    if (partial === undefined) return
    partial.text += this.limitSize(textAt(delta, 'text'))
    partial.json += this.limitSize(textAt(delta, 'partial_json'))
  }

  /** Merges cumulative counts; missing and null counts keep their previous value. */
  private updateUsage(usage: unknown): void {
    if (!isObject(usage)) return
    this.usage = { ...this.usage, ...Object.fromEntries(Object.entries(usage).filter(([, value]) => value !== null)) }
  }
}

function toBlock({ block, text, json }: PartialBlock): Block {
  if (block.type === 'text') return { ...block, text: textAt(block, 'text') + text }
  return json === '' ? block : { ...block, input: parseJson(json) ?? json }
}

export const createMessagesReplyParser = (address: string): Listener => new MessagesReplyParser(address)

/** Parses a complete Anthropic message. Throws if the text is not one. */
export function parseMessagesReply(text: string, address: string): Heard {
  const json = parseJsonReply(text, address)
  if (!Array.isArray(at(json, 'content'))) throw notAReply(address, 'JSON of another kind')
  return {
    reply: toAssistantMessage(listAt(json, 'content')),
    id: textAt(json, 'id') || undefined,
    usage: toUsage(at(json, 'usage')),
  }
}

/** Converts usage. Anthropic does not include cache reads and cache writes in `input_tokens`. */
function toUsage(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined
  const readCount = (field: string): number => Number(usage[field]) || 0
  const cached = readCount('cache_read_input_tokens')
  return {
    prompt: readCount('input_tokens') + cached + readCount('cache_creation_input_tokens'),
    completion: readCount('output_tokens'),
    cached,
  }
}
