import type { Derived, Fact, Message } from '../../src/domain/entry.ts'
import { countBetween } from '../../src/domain/session.ts'
import type { Journal, Place } from './journal.ts'
import type { Kept } from './kept.ts'
import { counted, type Operation, originOf, textOf } from './operations.ts'

type Say = Extract<Operation, { does: 'say' }>

/**
 * What is wrong with what is kept, by what its writers were told: acknowledged and lost, kept twice, half-written, kept
 * though it was forgotten, out of place. Nothing for a store that keeps its promises.
 */
export function faultsIn(journal: Journal, kept: ReadonlyMap<string, Kept>): readonly string[] {
  const sessions = new Set([...journal.asked.map(({ session }) => session), ...kept.keys()])
  return [...sessions].flatMap((session) => {
    const asked = journal.asked.filter((operation) => operation.session === session)
    const faults =
      session === counted ? miscounted(journal, asked, kept.get(session)) : faultsOf(journal, asked, kept.get(session))
    return faults.map((fault) => `${session}: ${fault}`)
  })
}

function faultsOf(journal: Journal, asked: readonly Operation[], kept: Kept | undefined): readonly string[] {
  const isDone = ({ id }: Operation): boolean => journal.done.has(id)
  // A session is forgotten only by the one that fills it, so that nothing is under way meanwhile.
  const living = asked.slice(asked.findLastIndex((operation) => operation.does === 'forget' && isDone(operation)) + 1)
  if (kept === undefined && living.at(-1)?.does === 'forget') return []
  const says = living.filter((operation) => operation.does === 'say')
  const drops = living.filter((operation) => operation.does === 'drop')
  const found = placed(kept?.messages ?? [])
  return [
    ...found.faults,
    ...strangers(says, kept, found.messages),
    ...says.flatMap((say) => (isDone(say) ? lost(journal, say, found.messages, drops) : half(say, found.messages))),
    ...says.flatMap((say) => unlearnt(say, kept, found.messages.has(say.id))),
    ...drops
      .filter((drop) => isDone(drop) && kept?.messages.some(({ id }) => id === drop.message))
      .map(({ message }) => `${message} was forgotten and is kept`),
    ...(kept === undefined ? [] : outOfOrder(journal, kept, says, new Set(drops.map(({ message }) => message)))),
  ]
}

/** The messages by the operation they belong to and their place in it, and those that belong nowhere or are there already. */
function placed(messages: readonly Message[]): {
  readonly messages: Map<string, Map<number, Message>>
  readonly faults: readonly string[]
} {
  const byOperation = new Map<string, Map<number, Message>>()
  const faults: string[] = []
  for (const message of messages) {
    const origin = originOf(message.content)
    if (origin === undefined) {
      faults.push(`${message.id} is nothing anybody said: ${JSON.stringify(message.content.slice(0, 40))}`)
      continue
    }
    const places = byOperation.get(origin.operation) ?? new Map<number, Message>()
    const before = places.get(origin.place)
    if (before !== undefined)
      faults.push(`${origin.operation}#${origin.place} is kept twice, as ${before.id} and ${message.id}`)
    byOperation.set(origin.operation, places.set(origin.place, message))
  }
  return { messages: byOperation, faults }
}

function strangers(
  says: readonly Say[],
  kept: Kept | undefined,
  found: ReadonlyMap<string, unknown>,
): readonly string[] {
  const known = new Set(says.map(({ id }) => id))
  const { derived = [], last = 0 } = kept?.head ?? {}
  const facts = derived.filter((entry) => !isMade(entry)).map(({ id }) => id)
  const strange = [...found.keys(), ...facts]
    .filter((id) => !known.has(id))
    .map((id) => `${id} is kept, but was forgotten or never asked for`)
  const half = derived.filter(
    (entry) => entry.kind === 'summary' && (entry.text === '' || entry.covers[1] > last || entry.version < 1),
  )
  return [...strange, ...half.map(({ id }) => `${id} was made by half`)]
}

/** What upkeep has made of its own accord, beside what was asked for. */
const isMade = ({ kind, id }: Derived): boolean => kind === 'summary' || kind === 'notes' || /^f\d+\.\d+$/.test(id)

/** What an operation was acknowledged for and is not where its writer was told. */
function lost(
  { done }: Journal,
  { id, messages }: Say,
  found: ReadonlyMap<string, ReadonlyMap<number, Message>>,
  drops: readonly { readonly message: string }[],
): readonly string[] {
  const [told = [], ...again] = done.get(id) ?? []
  const differing = again
    .filter((places) => JSON.stringify(places) !== JSON.stringify(told))
    .map(() => `${id} was acknowledged with different places`)
  const missing = Array.from({ length: messages }, (_, place): string | undefined => {
    const [is, should] = [found.get(id)?.get(place), told[place]]
    if (should === undefined) return `${id}#${place} was acknowledged without a place`
    if (is === undefined)
      return drops.some(({ message }) => message === `m${should.sequence}`)
        ? undefined
        : `${id}#${place} was acknowledged and is lost`
    return isAt(is, should) ? undefined : `${id}#${place} was acknowledged as m${should.sequence} and is ${is.id}`
  })
  return [...differing, ...missing.filter((fault) => fault !== undefined)]
}

const isAt = (is: Place, should: Place): boolean =>
  is.sequence === should.sequence && is.offset === should.offset && is.weight === should.weight

/** An operation nobody was told about is there as a whole or not at all. */
function half({ id, messages }: Say, found: ReadonlyMap<string, ReadonlyMap<number, Message>>): readonly string[] {
  const places = found.get(id)?.size ?? 0
  return places === 0 || places === messages ? [] : [`${id} is half-written: ${places} of ${messages} messages`]
}

/** What was learnt is kept exactly if what it was learnt with is. */
function unlearnt({ id, learns }: Say, kept: Kept | undefined, isKept: boolean): readonly string[] {
  const fact = kept?.head.derived.find((entry) => entry.id === id) as Fact | undefined
  if (!learns || (fact?.value === textOf(id, 0)) === isKept) return []
  return [
    `${id} is half-written: its messages are ${isKept ? '' : 'not '}kept and its fact is ${JSON.stringify(fact?.value)?.slice(0, 40)}`,
  ]
}

/** Sequence numbers without a hole but for what was forgotten, messages of one operation together, offsets that add up. */
function outOfOrder(
  { done }: Journal,
  { head, messages }: Kept,
  says: readonly Say[],
  dropped: ReadonlySet<string>,
): readonly string[] {
  const faults: string[] = []
  const told = new Map(says.flatMap(({ id }) => done.get(id)?.[0] ?? []).map((place) => [place.sequence, place]))
  const bySequence = new Map(messages.map((message) => [message.sequence, message]))
  let offset = 0
  for (let sequence = 1; sequence <= head.last; sequence++) {
    const message = bySequence.get(sequence)
    if (message === undefined && !dropped.has(`m${sequence}`)) faults.push(`m${sequence} is missing`)
    if (message !== undefined && message.offset !== offset)
      faults.push(`m${sequence} has offset ${message.offset}, not ${offset}`)
    offset += message?.weight ?? told.get(sequence)?.weight ?? 0
  }
  const [newest] = messages.slice(-1)
  if ((newest?.sequence ?? 0) > head.last) faults.push(`${newest?.id} is beyond the last one, m${head.last}`)
  if (head.messages !== messages.length) faults.push(`there are ${messages.length} messages, not ${head.messages}`)
  if (countBetween(head.gaps, 1, head.last) !== messages.length)
    faults.push(`the gaps ${JSON.stringify(head.gaps)} are not those there are`)
  return [...faults, ...torn(messages)]
}

/** Messages that do not stand right behind those they were said with. Only the last one of an operation is ever dropped. */
function torn(messages: readonly Message[]): readonly string[] {
  return messages.flatMap((message, at) => {
    const [is, before] = [originOf(message.content), messages[at - 1]]
    if (is === undefined || is.place === 0) return []
    const follows = before?.sequence === message.sequence - 1 && before.content === textOf(is.operation, is.place - 1)
    return follows ? [] : [`${is.operation}#${is.place} does not follow what was said before it`]
  })
}

/** The number is how often it was counted up: between what was acknowledged and what was asked for. */
function miscounted({ done }: Journal, asked: readonly Operation[], kept: Kept | undefined): readonly string[] {
  const number = Number((kept?.head.derived[0] as Fact | undefined)?.value ?? 0)
  const least = asked.filter(({ id }) => done.has(id)).length
  return number >= least && number <= asked.length ? [] : [`counted to ${number}, not from ${least} to ${asked.length}`]
}
