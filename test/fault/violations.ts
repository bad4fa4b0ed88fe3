import type { DerivedEntry, Fact, Message } from '../../src/domain/entry.ts'
import { countExisting } from '../../src/domain/session.ts'
import type { Journal, Position } from './journal.ts'
import {
  counterSession,
  importedScope,
  messageText,
  type Operation,
  parseMessageText,
  rowSession,
} from './operations.ts'
import { undoReplacements } from './otherViolations.ts'
import type { StoredSession } from './storedSessions.ts'

type Append = Extract<Operation, { kind: 'append' }>
/** Messages by operation id and index within the operation. */
type MessagesByOperation = ReadonlyMap<string, ReadonlyMap<number, Message>>

/**
 * Compares the stored sessions with the journal of their writers. Reports acknowledged data that is lost, data that is
 * stored twice or partially, erased data that is still stored, and wrong positions. Empty for a correct store.
 */
export function findViolations(journal: Journal, stored: ReadonlyMap<string, StoredSession>): readonly string[] {
  const sessions = new Set([...journal.requested.map(({ session }) => session), ...stored.keys()])
  return [...sessions].filter(hasAppends).flatMap((session) => {
    const requested = journal.requested.filter((operation) => operation.session === session)
    const check = session === counterSession ? checkCounter : checkSession
    return check(journal, requested, stored.get(session)).map((violation) => `${session}: ${violation}`)
  })
}

/** False for rows and imported sessions, which `findOtherViolations` checks. */
const hasAppends = (session: string): boolean => session !== rowSession && !session.startsWith(`${importedScope}:`)

function checkSession(
  journal: Journal,
  requested: readonly Operation[],
  storedNow: StoredSession | undefined,
): readonly string[] {
  const stored = storedNow && { ...storedNow, messages: undoReplacements(storedNow.messages, requested) }
  const isAcknowledged = ({ id }: Operation): boolean => journal.acknowledged.has(id)
  // A session is erased only by the caller that fills it, so nothing else is in progress then.
  const isErasure = (operation: Operation): boolean => operation.kind === 'eraseSession' && isAcknowledged(operation)
  const live = requested.slice(requested.findLastIndex(isErasure) + 1)
  if (stored === undefined && live.at(-1)?.kind === 'eraseSession') return []
  const appends = live.filter((operation) => operation.kind === 'append')
  const erasures = live.filter((operation) => operation.kind === 'eraseMessage')
  const { messages, violations } = groupByOperation(stored?.messages ?? [])
  return [
    ...violations,
    ...findUnexpected(appends, stored, messages),
    ...appends.flatMap((append) =>
      isAcknowledged(append) ? findLost(journal, append, messages, erasures) : checkAtomic(append, messages),
    ),
    ...appends.flatMap((append) => checkFact(append, stored, messages.has(append.id))),
    ...erasures
      .filter((erasure) => isAcknowledged(erasure) && stored?.messages.some(({ id }) => id === erasure.message))
      .map(({ message }) => `${message} was erased and is stored`),
    ...(stored === undefined
      ? []
      : checkOrder(journal, stored, appends, new Set(erasures.map(({ message }) => message)))),
  ]
}

/** Groups messages by their origin; reports messages without an origin and duplicates. */
function groupByOperation(messages: readonly Message[]): {
  readonly messages: MessagesByOperation
  readonly violations: readonly string[]
} {
  const byOperation = new Map<string, Map<number, Message>>()
  const violations: string[] = []
  for (const message of messages) {
    const origin = parseMessageText(message.content)
    if (origin === undefined) {
      violations.push(`${message.id} belongs to no operation: ${JSON.stringify(message.content.slice(0, 40))}`)
      continue
    }
    const { operation, index } = origin
    const group = byOperation.get(operation) ?? new Map<number, Message>()
    const previous = group.get(index)
    if (previous !== undefined)
      violations.push(`${operation}#${index} is stored twice, as ${previous.id} and ${message.id}`)
    byOperation.set(operation, group.set(index, message))
  }
  return { messages: byOperation, violations }
}

/** Finds stored data that was erased or never requested, and incomplete summaries. */
function findUnexpected(
  appends: readonly Append[],
  stored: StoredSession | undefined,
  messages: MessagesByOperation,
): readonly string[] {
  const expected = new Set(appends.map(({ id }) => id))
  const { derived = [], lastSequence = 0 } = stored?.head ?? {}
  const facts = derived.filter((entry) => !isFromUpkeep(entry)).map(({ id }) => id)
  const unexpected = [...messages.keys(), ...facts]
    .filter((id) => !expected.has(id))
    .map((id) => `${id} is stored, but was erased or never requested`)
  const incomplete = derived.filter(
    (entry) => entry.kind === 'summary' && (entry.text === '' || entry.covers[1] > lastSequence || entry.version < 1),
  )
  return [...unexpected, ...incomplete.map(({ id }) => `${id} is an incomplete summary`)]
}

/** True for entries that upkeep creates by itself. */
const isFromUpkeep = ({ kind, id }: DerivedEntry): boolean =>
  kind === 'summary' || kind === 'notes' || /^f\d+\.\d+$/.test(id)

/** Finds acknowledged messages that are not at their acknowledged position. */
function findLost(
  { acknowledged }: Journal,
  { id, messages: count }: Append,
  messages: MessagesByOperation,
  erasures: readonly { readonly message: string }[],
): readonly string[] {
  const [positions = [], ...repeated] = acknowledged.get(id) ?? []
  const differing = repeated
    .filter((other) => JSON.stringify(other) !== JSON.stringify(positions))
    .map(() => `${id} was acknowledged with different positions`)
  const missing = Array.from({ length: count }, (_, index): string | undefined => {
    const [actual, expected] = [messages.get(id)?.get(index), positions[index]]
    if (expected === undefined) return `${id}#${index} was acknowledged without a position`
    if (actual === undefined)
      return erasures.some(({ message }) => message === `m${expected.sequence}`)
        ? undefined
        : `${id}#${index} was acknowledged and is lost`
    return isAt(actual, expected)
      ? undefined
      : `${id}#${index} was acknowledged as m${expected.sequence} and is ${actual.id}`
  })
  return [...differing, ...missing.filter((violation) => violation !== undefined)]
}

const isAt = (actual: Position, expected: Position): boolean =>
  actual.sequence === expected.sequence && actual.offset === expected.offset && actual.weight === expected.weight

/** Checks that an unacknowledged append is stored completely or not at all. */
function checkAtomic({ id, messages: count }: Append, messages: MessagesByOperation): readonly string[] {
  const storedCount = messages.get(id)?.size ?? 0
  return storedCount === 0 || storedCount === count
    ? []
    : [`${id} is partially stored: ${storedCount} of ${count} messages`]
}

/** Checks that a fact is stored if and only if the messages of its commit are. */
function checkFact(
  { id, withFact }: Append,
  stored: StoredSession | undefined,
  hasMessages: boolean,
): readonly string[] {
  const fact = stored?.head.derived.find((entry) => entry.id === id) as Fact | undefined
  if (!withFact || (fact?.value === messageText(id, 0)) === hasMessages) return []
  return [
    `${id} is partially stored: its messages are ${hasMessages ? '' : 'not '}stored and its fact is ${JSON.stringify(fact?.value)?.slice(0, 40)}`,
  ]
}

/** Checks that sequence numbers have no holes except for erased messages, offsets add up, and counters match. */
function checkOrder(
  { acknowledged }: Journal,
  { head, messages }: StoredSession,
  appends: readonly Append[],
  erased: ReadonlySet<string>,
): readonly string[] {
  const violations: string[] = []
  const positions = appends.flatMap(({ id }) => acknowledged.get(id)?.[0] ?? [])
  const acknowledgedAt = new Map(positions.map((position) => [position.sequence, position]))
  const bySequence = new Map(messages.map((message) => [message.sequence, message]))
  let offset = 0
  for (let sequence = 1; sequence <= head.lastSequence; sequence++) {
    const message = bySequence.get(sequence)
    if (message === undefined && !erased.has(`m${sequence}`)) violations.push(`m${sequence} is missing`)
    if (message !== undefined && message.offset !== offset)
      violations.push(`m${sequence} has offset ${message.offset}, not ${offset}`)
    offset += message?.weight ?? acknowledgedAt.get(sequence)?.weight ?? 0
  }
  const [newest] = messages.slice(-1)
  if ((newest?.sequence ?? 0) > head.lastSequence)
    violations.push(`${newest?.id} is after the last message m${head.lastSequence}`)
  if (head.messages !== messages.length) violations.push(`there are ${messages.length} messages, not ${head.messages}`)
  if (countExisting(head.gaps, 1, head.lastSequence) !== messages.length)
    violations.push(`the gaps ${JSON.stringify(head.gaps)} do not match the messages`)
  return [...violations, ...findSeparated(messages)]
}

/** Finds messages that do not directly follow the previous one of their operation. Only the last one of an operation is ever erased. */
function findSeparated(messages: readonly Message[]): readonly string[] {
  return messages.flatMap((message, at) => {
    const [origin, previous] = [parseMessageText(message.content), messages[at - 1]]
    if (origin === undefined || origin.index === 0) return []
    const { operation, index } = origin
    const follows =
      previous?.sequence === message.sequence - 1 && previous.content === messageText(operation, index - 1)
    return follows ? [] : [`${operation}#${index} does not follow the previous message of its operation`]
  })
}

/** Checks that the counter is between the number of acknowledged and of requested increments. */
function checkCounter(
  { acknowledged }: Journal,
  requested: readonly Operation[],
  stored: StoredSession | undefined,
): readonly string[] {
  const count = Number((stored?.head.derived[0] as Fact | undefined)?.value ?? 0)
  const min = requested.filter(({ id }) => acknowledged.has(id)).length
  return count >= min && count <= requested.length
    ? []
    : [`the counter is ${count}, not between ${min} and ${requested.length}`]
}
