import { isBlank, type Message } from '../domain/entry.ts'

/** Reason why a stored message cannot be sent as it is. */
export type UnitFault = 'empty message' | 'tool result without its call' | 'tool call without its result'

/**
 * Smallest part of a conversation that is shown or left out: one message, or an assistant's tool calls with all their
 * results, because providers reject one without the other.
 */
export type Unit = { readonly messages: readonly Message[]; readonly fault: UnitFault | undefined }

/** Creates a unit of one message. */
export const singleUnit = (message: Message, fault?: UnitFault): Unit => ({ messages: [message], fault })

export const firstSequence = (unit: Unit): number => (unit.messages[0] as Message).sequence
/** Sequence number of the last message of a unit. */
export const lastSequence = (unit: Unit): number => (unit.messages.at(-1) as Message).sequence

/** True if a provider accepts at least part of the unit: of a call without its results, the text sent with it. */
export const isSendable = ({ fault, messages }: Unit): boolean =>
  fault === undefined || (fault === 'tool call without its result' && !isBlank((messages[0] as Message).content))

/** Groups consecutive messages, starting at index `from`, into units. */
export function groupIntoUnits(messages: readonly Message[], from = 0): Unit[] {
  const units: Unit[] = []
  for (let at = from; at < messages.length; ) {
    const unit = readUnit(messages, at)
    units.push(unit)
    at += unit.messages.length
  }
  return units
}

/** True if the message may be separated from its tool call or results at the edge of a page. */
export const mayBeSplit = (message: Message | undefined): boolean =>
  message !== undefined && (message.role === 'tool' || message.toolCalls !== undefined)

function readUnit(messages: readonly Message[], at: number): Unit {
  const message = messages[at] as Message
  if (message.role === 'tool') return singleUnit(message, 'tool result without its call')
  if (message.toolCalls === undefined || message.toolCalls.length === 0)
    return singleUnit(message, isBlank(message.content) ? 'empty message' : undefined)
  const openCalls = new Set(message.toolCalls.map((call) => call.id))
  const hasUniqueIds = openCalls.size === message.toolCalls.length
  let end = at + 1
  for (; end < messages.length; end++) {
    const result = messages[end] as Message
    if (result.role !== 'tool' || !openCalls.delete(result.toolCallId ?? '')) break
  }
  return {
    messages: messages.slice(at, end),
    fault: hasUniqueIds && openCalls.size === 0 ? undefined : 'tool call without its result',
  }
}
