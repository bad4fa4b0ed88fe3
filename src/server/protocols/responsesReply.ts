import { isObject } from '../../domain/checks.ts'
import { notAReply } from '../../providers/errors.ts'
import { at, listAt, textAt } from '../../providers/json.ts'
import { JsonReplyParser, parseJsonReply } from './jsonReplyParser.ts'
import type { Heard, Listener, Usage } from './protocol.ts'
import { type Item, isAssistantItem, toReplyMessage } from './responsesItems.ts'
import { readType } from './validation.ts'

/** Output item under assembly: the item as announced or finished, and the deltas received in between. */
type PartialItem = {
  item: Item
  done: boolean
  readonly parts: Map<number, { type: string; [field: string]: string }>
  input: string
}

const finalEventTypes = ['response.completed', 'response.incomplete', 'response.failed']

/** Assembles the assistant message from a streamed response. */
class ResponsesReplyParser extends JsonReplyParser {
  private readonly items = new Map<number, PartialItem>()
  private response: unknown
  private ended = false

  get isComplete(): boolean {
    return !this.hasFailed && this.ended
  }

  get isOver(): boolean {
    return this.ended
  }

  heard(): Heard {
    // Some servers send a final response without the output.
    const output = listAt(this.response, 'output')
    return toReply(this.response, output.length > 0 ? output : this.assembleItems())
  }

  protected handleEvent(event: Item): void {
    const type = readType(event)
    if (type === 'response.failed') this.fail()
    if (finalEventTypes.includes(type)) this.ended = true
    if (isObject(event.response)) this.response = event.response
    else if (isAssistantItem(event.item)) this.setItem(event, event.item as Item)
    else if (type.endsWith('.delta')) this.appendDelta(event, type)
  }

  private setItem({ output_index: index, type }: Item, item: Item): void {
    const done = type === 'response.output_item.done'
    if (done) this.limitSize(JSON.stringify(item))
    this.items.set(Number(index), { item, done, parts: new Map(), input: '' })
  }

  private appendDelta(event: Item, type: string): void {
    const partial = this.items.get(Number(event.output_index))
    if (partial === undefined) return
    const delta = this.limitSize(textAt(event, 'delta'))
    const index = Number(event.content_index)
    if (type === 'response.output_text.delta')
      partial.parts.set(index, { type: 'output_text', text: `${partial.parts.get(index)?.text ?? ''}${delta}` })
    if (type === 'response.refusal.delta')
      partial.parts.set(index, { type: 'refusal', refusal: `${partial.parts.get(index)?.refusal ?? ''}${delta}` })
    if (type === 'response.function_call_arguments.delta' || type === 'response.custom_tool_call_input.delta')
      partial.input += delta
  }

  private assembleItems(): Item[] {
    return sortByIndex(this.items).map(({ item, done, parts, input }) => {
      if (done) return item
      return {
        ...item,
        ...(parts.size === 0 ? {} : { content: sortByIndex(parts) }),
        ...(input === '' ? {} : { arguments: input, input }),
      }
    })
  }
}

const sortByIndex = <T>(map: ReadonlyMap<number, T>): T[] =>
  [...map].sort(([a], [b]) => a - b).map(([, value]) => value)

export const createResponsesReplyParser = (address: string): Listener => new ResponsesReplyParser(address)

/** Parses a complete response. Throws if the text is not one. */
export function parseResponsesReply(text: string, address: string): Heard {
  const json = parseJsonReply(text, address)
  if (!Array.isArray(at(json, 'output'))) throw notAReply(address, 'JSON of another kind')
  return toReply(json, listAt(json, 'output'))
}

const toReply = (response: unknown, output: readonly unknown[]): Heard => ({
  reply: toReplyMessage(output),
  id: textAt(response, 'id') || undefined,
  usage: toUsage(at(response, 'usage')),
})

function toUsage(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined
  const readCount = (...path: readonly string[]): number => Number(at(usage, ...path)) || 0
  return {
    prompt: readCount('input_tokens'),
    completion: readCount('output_tokens'),
    cached: readCount('input_tokens_details', 'cached_tokens'),
  }
}
