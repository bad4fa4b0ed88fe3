import { isObject } from '../../domain/checks.ts'
import type { ChatMessage } from '../../domain/ledger.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { at, listAt, textAt } from '../../providers/json.ts'
import { preludeCost } from '../../text/cost.ts'
import { sessionIn } from '../auth/identity.ts'
import { type Problem, Refusal } from '../http/httpError.ts'
import { askOf, sentOf, startOfTurn } from './ask.ts'
import { instruction, listOf, numberOf } from './chat.ts'
import { fewIn, typeOf } from './checks.ts'
import type { Ask, Body, Dialect, FilePart } from './dialect.ts'
import { resentMedia } from './media.ts'
import { checkItems, type Item, isReference, isStanding, spokenIn } from './responsesItems.ts'
import { itemsOf } from './responsesMemory.ts'
import { hearResponse, responsesListener } from './responsesReply.ts'

/** OpenAI's responses. */
export const responses: Dialect = {
  name: 'responses',
  path: '/responses',
  read,
  write,
  listener: responsesListener,
  hear: hearResponse,
  problem: (error) => ({ error }),
  failure,
}

function read(body: Body, tokenizer: Tokenizer): Ask {
  const envelope = {
    body,
    model: textAt(body, 'model'),
    streams: body.stream === true,
    maxTokens: numberOf(body.max_output_tokens),
    session: sessionIn(body),
    previous: textAt(body, 'previous_response_id') || undefined,
    conversation: textAt(body, 'conversation') || textAt(body, 'conversation', 'id') || undefined,
  }
  return askOf(envelope, () => {
    const items = checkItems(fewIn(itemsIn(body), 'messages', 'input'), 'input')
    const files: FilePart[] = []
    const sent = spokenIn(items, files).map(({ message, place }) => sentOf(message, place))
    // What a client only refers to it leaves to memory, and all before it.
    const known = items.findLastIndex(isReference)
    const said = sent.filter(({ role, place }) => role !== 'system' && place > known)
    const instructions = [
      textAt(body, 'instructions'),
      ...sent.filter(({ role }) => role === 'system').map(({ content }) => content),
    ].filter(Boolean)
    const tools = fewIn([...listOf(body.tools), ...items.flatMap((item) => listAt(item, 'tools'))], 'tools').map(
      asChatTool,
    )
    return {
      said,
      turn: startOfTurn(said) ?? items.length,
      owed: preludeCost(tokenizer, instructions.map(instruction), tools),
      instructions,
      hasTools: tools.length > 0,
      files,
    }
  })
}

/** What memory serves, the upstream is neither asked for nor asked to keep. */
function write(ask: Ask, memory: readonly ChatMessage[], from = ask.turn): Body {
  const { previous_response_id: _previous, conversation: _conversation, ...rest } = ask.body
  const items = itemsIn(ask.body)
  const own = items.slice(from).filter((item) => hasReasoning(ask.body) || !isLeftBehind(item))
  const input = [
    ...items.slice(0, from).filter(isStanding),
    ...itemsOf(memory, own, resentMedia(ask.said, items, from)),
    ...own,
  ]
  return { ...rest, ...(input.length === 0 && !('input' in rest) ? {} : { input }), store: false }
}

/** Whether the client has reasoning sent to it in full, and sends it back the same way. */
const hasReasoning = ({ include }: Body): boolean => listOf(include).includes('reasoning.encrypted_content')

/** Reasoning without its contents is only a name for what an upstream keeps; told to keep nothing, it refuses such names. */
const isLeftBehind = (item: Item): boolean =>
  typeOf(item) === 'reasoning' && textAt(item, 'encrypted_content') === '' && listAt(item, 'content').length === 0

/** The items of a request; text alone is a message of the user. A prompt that the service keeps may say all there is to say. */
function itemsIn({ input, prompt }: Body): readonly Item[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  if (Array.isArray(input) && (input.length > 0 || isObject(prompt))) return input
  if ((input ?? undefined) === undefined && isObject(prompt)) return []
  throw new Refusal(
    400,
    'missing_input',
    'input is missing: it must be text, or a list with at least one item such as { "role": "user", "content": "Hello" }.',
    'input',
  )
}

/** A function as chat completions define it, by which it is priced. */
function asChatTool(tool: unknown): unknown {
  if (!isObject(tool) || at(tool, 'type') !== 'function') return tool
  const { type, ...definition } = tool
  return { type, function: definition }
}

/** The reference has the fields of this event side by side, the service sends them below `error`: clients read one or the other. */
function failure(error: Problem['error']): string {
  const { message, code, param } = error
  return `event: error\ndata: ${JSON.stringify({ type: 'error', code, message, param, sequence_number: 0, error })}\n\n`
}
