import { chatCost } from '../../src/context/render.ts'
import { unitsOf } from '../../src/context/unit.ts'
import { speaker } from '../../src/context/wording.ts'
import { wellFormed } from '../../src/domain/chat.ts'
import { type Derived, isBlank, type Message, sequenceOf, textOf } from '../../src/domain/entry.ts'
import type { AnthropicBlock, AnthropicContext, ChatMessage, Context, Ledger, Line } from '../../src/domain/ledger.ts'
import type { Tokenizer } from '../../src/domain/ports.ts'
import { clip } from '../../src/text/clip.ts'
import { type Case, markOf } from './histories.ts'
import type { Stage } from './stage.ts'

/** neither form of the context is larger than what the receipt says, nor that than the budget. */
export function budgetFaults({ messages, text, ledger }: Context, exact: Tokenizer, budget: number): string[] {
  const chat = messages.reduce(
    (sum, message) => sum + chatCost(exact, message),
    messages.length > 0 ? exact.overhead.reply : 0,
  )
  const spoken = exact.count(text)
  const faults: string[] = []
  if (chat > ledger.spent) faults.push(`messages cost ${chat}, the receipt says ${ledger.spent}`)
  if (spoken > ledger.spent) faults.push(`text costs ${spoken}, the receipt says ${ledger.spent}`)
  if (ledger.spent > budget || ledger.budget !== budget)
    faults.push(`spent ${ledger.spent} of ${ledger.budget}, the budget is ${budget}`)
  return faults
}

/** X-01 for Anthropic's shape, by the same figures: a turn costs what a message costs, a tool use what a call costs. */
export function anthropicBudgetFaults({ system, messages, ledger }: AnthropicContext, exact: Tokenizer): string[] {
  const { message, call, reply } = exact.overhead
  const blockCost = (block: AnthropicBlock): number => {
    if (block.type === 'text') return exact.count(block.text)
    if (block.type === 'tool_result') return exact.count(block.content) + exact.count(block.tool_use_id)
    return call + exact.count(block.name) + exact.count(JSON.stringify(block.input)) + exact.count(block.id)
  }
  const turns = messages.map(({ role, content }) => {
    const blocks =
      typeof content === 'string' ? exact.count(content) : content.reduce((sum, block) => sum + blockCost(block), 0)
    return message + exact.count(role) + blocks
  })
  const apart = system === '' ? [] : [message + exact.count('system') + exact.count(system)]
  const cost = [...apart, ...turns].reduce((sum, tokens) => sum + tokens, turns.length > 0 ? reply : 0)
  return cost > ledger.spent ? [`anthropic: costs ${cost}, the receipt says ${ledger.spent}`] : []
}

/** the newest turn of the user is in, whole if the receipt says so, else with its beginning. */
export function newestFaults(
  { asked, transcript, derived, options }: Stage,
  { messages, text, ledger }: Context,
): string[] {
  if (asked === undefined) return []
  const line = fatesOf(ledger, transcript, derived).fates.get(asked.id)
  if (line?.verdict !== 'whole' && line?.verdict !== 'shortened')
    return [`the newest turn ${asked.id} is ${line?.verdict ?? 'nowhere'}`]
  const faults: string[] = []
  const stored = options.query === undefined || options.query === asked.content
  const turns = messages.filter((message) => message.role === 'user').map((message) => message.content ?? '')
  const said = wellFormed(asked.content)
  if (line.verdict === 'whole') {
    if (!text.includes(said)) faults.push('the newest turn is not in the text')
    if (stored && !turns.includes(said)) faults.push('the newest turn is not in the messages')
    return faults
  }
  if (stored && asked.tokens < options.budget / 2 - 30)
    faults.push(`the newest turn is shortened, of ${asked.tokens} tokens in ${options.budget}`)
  const begin = [...said.trimStart()][0] as string
  const label = `${speaker(asked)}: `
  if (!text.split(label).some((part, at) => at > 0 && part.trimStart().startsWith(begin)))
    faults.push('no beginning of the newest turn is in the text')
  if (stored && !turns.some((turn) => turn.trimStart().startsWith(begin)))
    faults.push('no beginning of the newest turn is in the messages')
  return faults
}

/** What the receipt says of each entry, and what is wrong with it: every entry must be in exactly one line. */
export function fatesOf(
  ledger: Ledger,
  transcript: readonly Message[],
  derived: readonly Derived[],
): { readonly fates: ReadonlyMap<string, Line>; readonly faults: readonly string[] } {
  const fates = new Map<string, Line>()
  const faults: string[] = []
  for (const line of ledger.lines) {
    if (line.entries === null) continue
    const run = runOf(line.entries, transcript, derived)
    if (run.length === 0 || run.length !== line.count)
      faults.push(`line ${line.entries.join('–')} counts ${line.count} entries, there are ${run.length}`)
    for (const id of run) {
      if (fates.has(id)) faults.push(`${id} is in two lines`)
      fates.set(id, line)
    }
  }
  for (const { id } of [...transcript, ...derived]) if (!fates.has(id)) faults.push(`${id} is in no line`)
  return { fates, faults }
}

function runOf(
  [first, last]: readonly [string, string],
  transcript: readonly Message[],
  derived: readonly Derived[],
): readonly string[] {
  const [from, to] = [sequenceOf(first), sequenceOf(last)]
  if (from !== undefined && to !== undefined) {
    const run = transcript
      .filter((message) => message.sequence >= from && message.sequence <= to)
      .map((message) => message.id)
    return run[0] === first && run.at(-1) === last ? run : []
  }
  const ids = derived.map((entry) => entry.id)
  return ids.includes(first) && ids.includes(last) ? ids.slice(ids.indexOf(first), ids.indexOf(last) + 1) : []
}

/** every entry once, the sum right, and what is called whole is whole. */
export function receiptFaults({ transcript, derived }: Stage, context: Context): string[] {
  const { ledger } = context
  const { fates, faults } = fatesOf(ledger, transcript, derived)
  const sum = ledger.lines.reduce((total, line) => total + line.tokens, 0)
  const found =
    sum === ledger.spent ? [...faults] : [...faults, `the lines sum up to ${sum}, the receipt says ${ledger.spent}`]
  for (const message of transcript)
    if (fates.get(message.id)?.verdict === 'whole') found.push(...wholeFaults(message, context))
  for (const { messages, fault } of unitsOf(transcript))
    for (const { id } of messages)
      if (fault === undefined && /empty|without its/.test(fates.get(id)?.why ?? ''))
        found.push(`${id} is sound, and the receipt says: ${fates.get(id)?.why}`)
  for (const entry of derived) {
    const said = wellFormed(saidBy(entry).trim())
    if (fates.get(entry.id)?.verdict === 'whole' && !context.text.includes(said)) found.push(`${entry.id} is not whole`)
  }
  return found
}

function wholeFaults(message: Message, { messages, text }: Context): string[] {
  const empty = message.role === 'tool' ? '(no output)' : ''
  const content = isBlank(message.content) ? empty : wellFormed(message.content)
  const faults = text.includes(content) ? [] : [`${message.id} is not whole in the text`]
  if (!messages.some((one) => (one.content ?? '').includes(content)))
    faults.push(`${message.id} is not whole in the messages`)
  if (message.calls?.some((call) => !text.includes(wellFormed(call.arguments))))
    faults.push(`the calls of ${message.id} are not in the text`)
  return faults
}

const saidBy = (entry: Derived): string =>
  entry.kind === 'fact' || entry.kind === 'knowledge'
    ? typeof entry.value === 'string'
      ? entry.value
      : JSON.stringify(entry.value)
    : textOf(entry)

/** Where the marked messages stand in a text, in the order of the conversation. */
function marksIn(
  text: string,
  transcript: readonly Message[],
): { readonly id: string; readonly places: readonly number[] }[] {
  return transcript.flatMap(({ id, sequence, content }) => {
    const mark = markOf(sequence - 1)
    return content.startsWith(mark) ? [{ id, places: placesOf(mark, text) }] : []
  })
}

function placesOf(mark: string, text: string): number[] {
  const places: number[] = []
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1)) places.push(at)
  return places
}

const sent = (messages: readonly ChatMessage[]): string => messages.map((message) => message.content ?? '').join('\n')

/** E-09: nothing is shown twice, in neither form. */
export function repeatFaults({ transcript }: Stage, { messages, text }: Context): string[] {
  return [text, sent(messages)].flatMap((shown, form) =>
    marksIn(shown, transcript)
      .filter(({ places }) => places.length > 1)
      .map(({ id }) => `${id} is shown twice in the ${form === 0 ? 'text' : 'messages'}`),
  )
}

/** Turns come in the order in which they were said, whichever bands they belong to. */
export function turnFaults({ transcript }: Stage, { messages }: Context): string[] {
  const turns = messages.flatMap(({ content }) =>
    transcript.filter((message) => content?.startsWith(`${markOf(message.sequence - 1)} `)),
  )
  const wrong = turns.findIndex((turn, at) => turn.sequence < (turns[at - 1]?.sequence ?? 0))
  return wrong < 0 ? [] : [`${turns[wrong]?.id} comes after ${turns[wrong - 1]?.id}`]
}

/** E-06: what is shown reads in the order in which it was said. */
export function orderFaults({ transcript }: Stage, { messages, text }: Context): string[] {
  return [text, sent(messages)].flatMap((shown, form) => {
    const order = marksIn(shown, transcript).filter(({ places }) => places.length > 0)
    const wrong = order.findIndex(({ places }, at) => (places[0] as number) < (order[at - 1]?.places[0] ?? -1))
    return wrong < 0
      ? []
      : [`${order[wrong]?.id} stands before ${order[wrong - 1]?.id} in the ${form === 0 ? 'text' : 'messages'}`]
  })
}

/** From here on there is room for the words of the framing, a seed and a newest message, each in its shortest form. */
const ample = 400

/** E-06 and E-08: glimpses are labelled and cut to 100 characters; neither the first nor the newest message is left out. */
export function ephemeralFaults({ transcript, derived, options, asked }: Stage, { text, ledger }: Context): string[] {
  const faults: string[] = []
  const { fates } = fatesOf(ledger, transcript, derived)
  const isOut = (message: Message | undefined): boolean =>
    message !== undefined && isPlain(message) && fates.get(message.id)?.verdict === 'dropped'
  const stored = options.query === undefined || options.query === asked?.content
  if (ledger.budget >= ample && stored) {
    if (isOut(transcript[0])) faults.push(`the first message ${transcript[0]?.id} is left out`)
    if (isOut(transcript.at(-1))) faults.push(`the newest message ${transcript.at(-1)?.id} is left out`)
  }
  for (const message of transcript) {
    const line = fates.get(message.id)
    if (message === asked || (line?.why !== 'middle' && line?.why !== 'middle; clip')) continue
    const glimpse = `(Past) ${speaker(message)}: ${wellFormed(clip(message.content, 100))}`
    if (isPlain(message) && !text.includes(glimpse)) faults.push(`${message.id} is no glimpse: ${glimpse}`)
  }
  return faults
}

/** Words alone, under a name that fits into any budget. */
const isPlain = ({ role, content, calls, name = '' }: Message): boolean =>
  role !== 'tool' && role !== 'system' && calls === undefined && !isBlank(content) && name.length < 20

/** E-05 and E-07: the cap holds however many come at once, and the first message outlives it. */
export function capFaults({ transcript }: Stage, scene: Case): string[] {
  if (scene.forgotten.length > 0) return []
  const kept = Math.min(50, scene.messages.length)
  const faults =
    transcript.length === kept ? [] : [`${transcript.length} messages are kept of ${scene.messages.length}`]
  return kept > 0 && transcript[0]?.sequence !== 1 ? [...faults, 'the first message is gone'] : faults
}
