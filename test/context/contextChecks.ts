import { speakerOf } from '../../src/context/entryText.ts'
import { countChatMessage } from '../../src/context/measureMessage.ts'
import { groupIntoUnits } from '../../src/context/render.ts'
import { replaceLoneSurrogates } from '../../src/domain/chat.ts'
import { type DerivedEntry, getEntryText, isBlank, type Message, parseMessageId } from '../../src/domain/entry.ts'
import type {
  AnthropicBlock,
  AnthropicContext,
  ChatMessage,
  Context,
  Ledger,
  LedgerLine,
} from '../../src/domain/ledger.ts'
import type { Tokenizer } from '../../src/domain/ports.ts'
import { clip } from '../../src/text/clip.ts'
import { markerOf, type TestCase } from './cases.ts'
import type { Fixture } from './harness.ts'

/** messages and text cost no more than the receipt says, and that is within the budget. */
export function checkBudget({ messages, text, ledger }: Context, exact: Tokenizer, budget: number): string[] {
  const chatTokens = messages.reduce(
    (sum, message) => sum + countChatMessage(exact, message),
    messages.length > 0 ? exact.overhead.reply : 0,
  )
  const textTokens = exact.count(text)
  const faults: string[] = []
  if (chatTokens > ledger.spent) faults.push(`messages cost ${chatTokens}, the receipt says ${ledger.spent}`)
  if (textTokens > ledger.spent) faults.push(`text costs ${textTokens}, the receipt says ${ledger.spent}`)
  if (ledger.spent > budget || ledger.budget !== budget)
    faults.push(`spent ${ledger.spent} of ${ledger.budget}, the budget is ${budget}`)
  return faults
}

/** X-01 for Anthropic's format, with the same overheads: a turn counts as a message, a tool use as a call. */
export function checkAnthropicBudget({ system, messages, ledger }: AnthropicContext, exact: Tokenizer): string[] {
  const { message, call, reply } = exact.overhead
  const blockCost = (block: AnthropicBlock): number => {
    if (block.type === 'text') return exact.count(block.text)
    if (block.type === 'tool_result') return exact.count(String(block.content)) + exact.count(block.tool_use_id)
    if (block.type !== 'tool_use') throw new Error(`unexpected block ${block.type}`)
    return call + exact.count(block.name) + exact.count(JSON.stringify(block.input)) + exact.count(block.id)
  }
  const turns = messages.map(({ role, content }) => {
    const blocks =
      typeof content === 'string' ? exact.count(content) : content.reduce((sum, block) => sum + blockCost(block), 0)
    return message + exact.count(role) + blocks
  })
  const systemCost = system === '' ? [] : [message + exact.count('system') + exact.count(system)]
  const cost = [...systemCost, ...turns].reduce((sum, tokens) => sum + tokens, turns.length > 0 ? reply : 0)
  return cost > ledger.spent ? [`anthropic: costs ${cost}, the receipt says ${ledger.spent}`] : []
}

/** the context contains the newest turn of the user, whole if the receipt says so, otherwise its beginning. */
export function checkNewestTurn(
  { newestTurn, transcript, derived, options }: Fixture,
  { messages, text, ledger }: Context,
): string[] {
  if (newestTurn === undefined) return []
  const line = linesByEntry(ledger, transcript, derived).lines.get(newestTurn.id)
  if (line?.verdict !== 'whole' && line?.verdict !== 'shortened')
    return [`the newest turn ${newestTurn.id} is ${line?.verdict ?? 'missing'}`]
  const faults: string[] = []
  const isStored = options.query === undefined || options.query === newestTurn.content
  const turns = messages.filter((message) => message.role === 'user').map((message) => message.content ?? '')
  const content = replaceLoneSurrogates(newestTurn.content)
  if (line.verdict === 'whole') {
    if (!text.includes(content)) faults.push('the newest turn is not in the text')
    if (isStored && !turns.includes(content)) faults.push('the newest turn is not in the messages')
    return faults
  }
  if (isStored && newestTurn.tokens < options.budget / 2 - 30)
    faults.push(`the newest turn is shortened, with ${newestTurn.tokens} tokens in a budget of ${options.budget}`)
  const firstCharacter = [...content.trimStart()][0] as string
  const label = `${speakerOf(newestTurn)}: `
  if (!text.split(label).some((part, at) => at > 0 && part.trimStart().startsWith(firstCharacter)))
    faults.push('the beginning of the newest turn is not in the text')
  if (isStored && !turns.some((turn) => turn.trimStart().startsWith(firstCharacter)))
    faults.push('the beginning of the newest turn is not in the messages')
  return faults
}

/** Maps each entry to its receipt line, and reports entries that are not in exactly one line. */
export function linesByEntry(
  ledger: Ledger,
  transcript: readonly Message[],
  derived: readonly DerivedEntry[],
): { readonly lines: ReadonlyMap<string, LedgerLine>; readonly faults: readonly string[] } {
  const lines = new Map<string, LedgerLine>()
  const faults: string[] = []
  for (const line of ledger.lines) {
    if (line.entries === null) continue
    const run = idsInRun(line.entries, transcript, derived)
    if (run.length === 0 || run.length !== line.count)
      faults.push(`line ${line.entries.join('–')} counts ${line.count} entries instead of ${run.length}`)
    for (const id of run) {
      if (lines.has(id)) faults.push(`${id} is in two lines`)
      lines.set(id, line)
    }
  }
  for (const { id } of [...transcript, ...derived]) if (!lines.has(id)) faults.push(`${id} is in no line`)
  return { lines, faults }
}

function idsInRun(
  [first, last]: readonly [string, string],
  transcript: readonly Message[],
  derived: readonly DerivedEntry[],
): readonly string[] {
  const [from, to] = [parseMessageId(first), parseMessageId(last)]
  if (from !== undefined && to !== undefined) {
    const run = transcript
      .filter((message) => message.sequence >= from && message.sequence <= to)
      .map((message) => message.id)
    return run[0] === first && run.at(-1) === last ? run : []
  }
  const ids = derived.map((entry) => entry.id)
  return ids.includes(first) && ids.includes(last) ? ids.slice(ids.indexOf(first), ids.indexOf(last) + 1) : []
}

/** the receipt lists every entry once, its sum is right, and entries marked whole are whole. */
export function checkReceipt({ transcript, derived }: Fixture, context: Context): string[] {
  const { ledger } = context
  const { lines, faults } = linesByEntry(ledger, transcript, derived)
  const sum = ledger.lines.reduce((total, line) => total + line.tokens, 0)
  const found =
    sum === ledger.spent ? [...faults] : [...faults, `the lines add up to ${sum}, the receipt says ${ledger.spent}`]
  for (const message of transcript)
    if (lines.get(message.id)?.verdict === 'whole') found.push(...checkWhole(message, context))
  for (const { messages, fault } of groupIntoUnits(transcript))
    for (const { id } of messages)
      if (fault === undefined && /empty|without its/.test(lines.get(id)?.why ?? ''))
        found.push(`${id} can be sent, but the receipt says: ${lines.get(id)?.why}`)
  for (const entry of derived) {
    const text = replaceLoneSurrogates(shownText(entry).trim())
    if (lines.get(entry.id)?.verdict === 'whole' && !context.text.includes(text)) found.push(`${entry.id} is not whole`)
  }
  return found
}

function checkWhole(message: Message, { messages, text }: Context): string[] {
  const placeholder = message.role === 'tool' ? '(no output)' : ''
  const content = isBlank(message.content) ? placeholder : replaceLoneSurrogates(message.content)
  const faults = text.includes(content) ? [] : [`${message.id} is not whole in the text`]
  if (!messages.some((sent) => (sent.content ?? '').includes(content)))
    faults.push(`${message.id} is not whole in the messages`)
  if (message.toolCalls?.some((call) => !text.includes(replaceLoneSurrogates(call.arguments))))
    faults.push(`the calls of ${message.id} are not in the text`)
  return faults
}

const shownText = (entry: DerivedEntry): string =>
  entry.kind === 'fact' || entry.kind === 'knowledge'
    ? typeof entry.value === 'string'
      ? entry.value
      : JSON.stringify(entry.value)
    : getEntryText(entry)

/** Finds the positions of marked messages in a text, in conversation order. */
function findMarkers(
  text: string,
  transcript: readonly Message[],
): { readonly id: string; readonly positions: readonly number[] }[] {
  return transcript.flatMap(({ id, sequence, content }) => {
    const marker = markerOf(sequence - 1)
    return content.startsWith(marker) ? [{ id, positions: positionsOf(marker, text) }] : []
  })
}

function positionsOf(marker: string, text: string): number[] {
  const positions: number[] = []
  for (let at = text.indexOf(marker); at >= 0; at = text.indexOf(marker, at + 1)) positions.push(at)
  return positions
}

const joinContents = (messages: readonly ChatMessage[]): string =>
  messages.map((message) => message.content ?? '').join('\n')

/** E-09: no message is shown twice, in the text or in the messages. */
export function checkNoRepeats({ transcript }: Fixture, { messages, text }: Context): string[] {
  return [text, joinContents(messages)].flatMap((shown, form) =>
    findMarkers(shown, transcript)
      .filter(({ positions }) => positions.length > 1)
      .map(({ id }) => `${id} is shown twice in the ${form === 0 ? 'text' : 'messages'}`),
  )
}

/** Turns are in conversation order, whichever bands they belong to. */
export function checkTurnOrder({ transcript }: Fixture, { messages }: Context): string[] {
  const turns = messages.flatMap(({ content }) =>
    transcript.filter((message) => content?.startsWith(`${markerOf(message.sequence - 1)} `)),
  )
  const wrong = turns.findIndex((turn, at) => turn.sequence < (turns[at - 1]?.sequence ?? 0))
  return wrong < 0 ? [] : [`${turns[wrong]?.id} comes after ${turns[wrong - 1]?.id}`]
}

/** E-06: the context is in conversation order. */
export function checkOrder({ transcript }: Fixture, { messages, text }: Context): string[] {
  return [text, joinContents(messages)].flatMap((shown, form) => {
    const order = findMarkers(shown, transcript).filter(({ positions }) => positions.length > 0)
    const wrong = order.findIndex(({ positions }, at) => (positions[0] as number) < (order[at - 1]?.positions[0] ?? -1))
    return wrong < 0
      ? []
      : [`${order[wrong]?.id} precedes ${order[wrong - 1]?.id} in the ${form === 0 ? 'text' : 'messages'}`]
  })
}

/** Budget that holds the framing text, the first message and the newest message, each in its shortest form. */
const minEphemeralBudget = 400

/** E-06 and E-08: older messages are labelled and clipped to 100 characters; the first and newest messages are never left out. */
export function checkEphemeral(
  { transcript, derived, options, newestTurn }: Fixture,
  { text, ledger }: Context,
): string[] {
  const faults: string[] = []
  const { lines } = linesByEntry(ledger, transcript, derived)
  const isDropped = (message: Message | undefined): boolean =>
    message !== undefined && isPlain(message) && lines.get(message.id)?.verdict === 'dropped'
  const isStored = options.query === undefined || options.query === newestTurn?.content
  if (ledger.budget >= minEphemeralBudget && isStored) {
    if (isDropped(transcript[0])) faults.push(`the first message ${transcript[0]?.id} is left out`)
    if (isDropped(transcript.at(-1))) faults.push(`the newest message ${transcript.at(-1)?.id} is left out`)
  }
  for (const message of transcript) {
    const line = lines.get(message.id)
    const isOlder = line?.why === 'older message' || line?.why === 'older message; clipped'
    if (message === newestTurn || !isOlder) continue
    const clipped = `(Past) ${speakerOf(message)}: ${replaceLoneSurrogates(clip(message.content, 100))}`
    if (isPlain(message) && !text.includes(clipped)) faults.push(`${message.id} is not clipped: ${clipped}`)
  }
  return faults
}

/** True for a message that consists of text only, from a speaker whose name fits into any budget. */
const isPlain = ({ role, content, toolCalls, name = '' }: Message): boolean =>
  role !== 'tool' && role !== 'system' && toolCalls === undefined && !isBlank(content) && name.length < 20

/** E-05 and E-07: the message cap holds for any batch size, and the first message is kept. */
export function checkMessageCap({ transcript }: Fixture, testCase: TestCase): string[] {
  if (testCase.forgotten.length > 0) return []
  const expected = Math.min(50, testCase.messages.length)
  const faults =
    transcript.length === expected ? [] : [`${transcript.length} messages are stored of ${testCase.messages.length}`]
  return expected > 0 && transcript[0]?.sequence !== 1 ? [...faults, 'the first message is missing'] : faults
}
