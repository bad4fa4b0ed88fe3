import { isBlank, type Message } from '../domain/entry.ts'

/** Why a stored message cannot be sent as it is. */
export type Fault = 'empty' | 'result without its call' | 'call without its result'

/**
 * The least that may be shown or left out: one message, or an assistant's tool calls with all their results, because
 * providers refuse one without the other.
 */
export type Unit = { readonly messages: readonly Message[]; readonly fault: Fault | undefined }

/** One message by itself. */
export const alone = (message: Message, fault?: Fault): Unit => ({ messages: [message], fault })

export const firstOf = (unit: Unit): number => (unit.messages[0] as Message).sequence
export const lastOf = (unit: Unit): number => (unit.messages.at(-1) as Message).sequence

/** Whether a provider takes any of it: of a call without its results, the words said with it. */
export const isSendable = ({ fault, messages }: Unit): boolean =>
  fault === undefined || (fault === 'call without its result' && !isBlank((messages[0] as Message).content))

/** Groups messages that follow each other, from a place on, into units in the same order. */
export function unitsOf(messages: readonly Message[], from = 0): Unit[] {
  const units: Unit[] = []
  for (let at = from; at < messages.length; ) {
    const unit = unitAt(messages, at)
    units.push(unit)
    at += unit.messages.length
  }
  return units
}

/** Whether the run may go on before its first message or after its last: a call and its results could be torn. */
export const mayBeTorn = (message: Message | undefined): boolean =>
  message !== undefined && (message.role === 'tool' || message.calls !== undefined)

function unitAt(messages: readonly Message[], at: number): Unit {
  const message = messages[at] as Message
  if (message.role === 'tool') return alone(message, 'result without its call')
  if (message.calls === undefined || message.calls.length === 0)
    return alone(message, isBlank(message.content) ? 'empty' : undefined)
  const open = new Set(message.calls.map((call) => call.id))
  const distinct = open.size === message.calls.length
  let end = at + 1
  for (; end < messages.length; end++) {
    const result = messages[end] as Message
    if (result.role !== 'tool' || !open.delete(result.answers ?? '')) break
  }
  return {
    messages: messages.slice(at, end),
    fault: distinct && open.size === 0 ? undefined : 'call without its result',
  }
}
