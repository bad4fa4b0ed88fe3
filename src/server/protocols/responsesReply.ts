import { isObject } from '../../domain/checks.ts'
import { notAReply, reported } from '../../providers/failure.ts'
import { at, listAt, parseJson, textAt } from '../../providers/json.ts'
import { typeOf } from './checks.ts'
import type { Heard, Listener, Usage } from './dialect.ts'
import { JsonListener } from './jsonListener.ts'
import { type Item, isAssistants, replyIn } from './responsesItems.ts'

/** An item on its way: as it was announced or has been finished, and the pieces that came in between. */
type Growing = {
  item: Item
  done: boolean
  readonly parts: Map<number, { type: string; [field: string]: string }>
  input: string
}

const ends = ['response.completed', 'response.incomplete', 'response.failed']

/** Puts the assistant's message together from the events of a streamed response. */
class ResponsesListener extends JsonListener {
  private readonly items = new Map<number, Growing>()
  private response: unknown
  private ended = false

  get isComplete(): boolean {
    return !this.hasFailed && this.ended
  }

  get isOver(): boolean {
    return this.ended
  }

  heard(): Heard {
    // Some servers end with a response that does not repeat what was said.
    const whole = listAt(this.response, 'output')
    return heardIn(this.response, whole.length > 0 ? whole : this.grown())
  }

  protected take(event: Item): void {
    const type = typeOf(event)
    if (type === 'response.failed') this.fail()
    if (ends.includes(type)) this.ended = true
    if (isObject(event.response)) this.response = event.response
    else if (isAssistants(event.item)) this.place(event, event.item as Item)
    else if (type.endsWith('.delta')) this.grow(event, type)
  }

  private place({ output_index: index, type }: Item, item: Item): void {
    const done = type === 'response.output_item.done'
    if (done) this.measured(JSON.stringify(item))
    this.items.set(Number(index), { item, done, parts: new Map(), input: '' })
  }

  private grow(event: Item, type: string): void {
    const growing = this.items.get(Number(event.output_index))
    if (growing === undefined) return
    const delta = this.measured(textAt(event, 'delta'))
    const place = Number(event.content_index)
    if (type === 'response.output_text.delta')
      growing.parts.set(place, { type: 'output_text', text: `${growing.parts.get(place)?.text ?? ''}${delta}` })
    if (type === 'response.refusal.delta')
      growing.parts.set(place, { type: 'refusal', refusal: `${growing.parts.get(place)?.refusal ?? ''}${delta}` })
    if (type === 'response.function_call_arguments.delta' || type === 'response.custom_tool_call_input.delta')
      growing.input += delta
  }

  private grown(): Item[] {
    return inOrder(this.items).map(({ item, done, parts, input }) => {
      if (done) return item
      return {
        ...item,
        ...(parts.size === 0 ? {} : { content: inOrder(parts) }),
        ...(input === '' ? {} : { arguments: input, input }),
      }
    })
  }
}

const inOrder = <T>(map: ReadonlyMap<number, T>): T[] => [...map].sort(([a], [b]) => a - b).map(([, value]) => value)

export const responsesListener = (where: string): Listener => new ResponsesListener(where)

/** The assistant's message in a response that came in one; throws if it is no answer of a model server. */
export function hearResponse(text: string, where: string): Heard {
  const json = parseJson(text)
  if (json === undefined) throw notAReply(where, 'something that is not JSON')
  const failure = reported(where, json)
  if (failure !== undefined) throw failure
  if (!Array.isArray(at(json, 'output'))) throw notAReply(where, 'JSON of another kind')
  return heardIn(json, listAt(json, 'output'))
}

const heardIn = (response: unknown, output: readonly unknown[]): Heard => ({
  reply: replyIn(output),
  id: textAt(response, 'id') || undefined,
  usage: usageIn(at(response, 'usage')),
})

/** What an answer has cost, as the upstream counts it. */
function usageIn(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined
  const count = (...path: readonly string[]): number => Number(at(usage, ...path)) || 0
  return {
    prompt: count('input_tokens'),
    completion: count('output_tokens'),
    cached: count('input_tokens_details', 'cached_tokens'),
  }
}
