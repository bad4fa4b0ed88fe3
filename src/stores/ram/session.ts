import {
  type Derived,
  type Entry,
  isBlank,
  type Message,
  type Millis,
  messageId,
  type Said,
  sequenceOf,
} from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import { type Change, type Gap, placeOf, withGap, withGaps } from '../../domain/session.ts'

/** What was said in a session and made of it. Most sessions have nothing made of them yet, and are not charged for it. */
export type Body = {
  /** In order of their sequence numbers. */
  messages: Message[]
  gaps: readonly Gap[]
  asked: Message | undefined
  derived: Map<string, Derived> | undefined
  /** The first and last message of each change, so that the same change twice is once. */
  done: Map<string, readonly [first: number, last: number]> | undefined
}

/** Everything kept of one session. */
export type Session = {
  readonly key: Key
  readonly epoch: number
  revision: number
  startedAt: Millis
  touchedAt: Millis
  expiresAt: Millis
  last: number
  weight: number
  /** How many messages there are. */
  count: number
  /** When it was last changed, on the shelf's own count. */
  stamp: number
  /** How often entries went. */
  removals: number
  /** For the attic: its place among those that expire, what it takes, and those that were used before and after it. */
  slot: number
  bytes: number
  olderUsed: Session | undefined
  newerUsed: Session | undefined
  olderAwake: Session | undefined
  newerAwake: Session | undefined
  /** Undefined while it is packed away; then `packed` is not. */
  body: Body | undefined
  packed: string | undefined
}

/** How many answers to changes are kept for a change that comes again. */
const remembered = 1_000

const emptyBody = (): Body => ({ messages: [], gaps: [], asked: undefined, derived: undefined, done: undefined })

export const begun = ({ key, epoch, at, expiresAt }: Change): Session => ({
  key,
  epoch,
  revision: 0,
  startedAt: at,
  touchedAt: at,
  expiresAt,
  last: 0,
  weight: 0,
  count: 0,
  stamp: 0,
  removals: 0,
  slot: 0,
  bytes: 0,
  olderUsed: undefined,
  newerUsed: undefined,
  olderAwake: undefined,
  newerAwake: undefined,
  body: emptyBody(),
  packed: undefined,
})

/** Writes the messages of a change at the end of a session. */
export function append(session: Session, body: Body, { id, from, append: all }: Change): readonly Message[] {
  if (from !== undefined) skipTo(session, body, from)
  const added = all.map((said) => {
    const message = placed(said, ++session.last, session.weight)
    session.weight += said.weight
    if (isQuestion(message)) body.asked = message
    body.messages.push(message)
    return message
  })
  session.count = body.messages.length
  if (id !== undefined) answer(body, id, [session.last - added.length + 1, session.last])
  return added
}

/** A message of its own, in one piece: fields that are added later, as few have them, lie elsewhere and take more room. */
export function placed(said: Said, sequence: number, offset: number): Message {
  const { at, role, content, tokens, lineTokens, tokenizer, weight, name, calls, answers } = said
  const id = messageId(sequence)
  const message: Growing = {
    kind: 'message',
    id,
    sequence,
    offset,
    at,
    role,
    content,
    tokens,
    lineTokens,
    tokenizer,
    weight,
  }
  if (name !== undefined) message.name = name
  if (calls !== undefined) message.calls = calls
  if (answers !== undefined) message.answers = answers
  return Object.freeze(message)
}

type Growing = { -readonly [field in keyof Message]: Message[field] }

/** Puts entries that were made of a session into it; those that they replace. */
export function put(body: Body, entries: readonly Derived[]): readonly Entry[] {
  const replaced: Entry[] = []
  for (const entry of entries) {
    body.derived ??= new Map()
    const before = body.derived.get(entry.id)
    if (before) replaced.push(before)
    body.derived.set(entry.id, entry)
  }
  return replaced
}

function answer(body: Body, id: string, run: readonly [number, number]): void {
  body.done ??= new Map()
  body.done.set(id, run)
  if (body.done.size > remembered) body.done.delete(body.done.keys().next().value as string)
}

/** Takes entries out of a session; those of them that were there. */
export function remove(session: Session, body: Body, ids: readonly string[]): readonly Entry[] {
  if (ids.length === 0) return []
  const gone = new Map<string, Entry>()
  for (const id of ids) {
    const entry = body.derived?.get(id) ?? found(body, id)
    if (entry) gone.set(id, entry)
  }
  if (gone.size === 0) return []
  for (const entry of gone.values()) {
    if (entry.kind === 'message') body.gaps = withGap(body.gaps, entry.sequence)
    else body.derived?.delete(entry.id)
  }
  body.messages = body.messages.filter(({ id }) => !gone.has(id))
  if (body.asked && gone.has(body.asked.id)) body.asked = body.messages.findLast(isQuestion)
  session.count = body.messages.length
  session.removals++
  return [...gone.values()]
}

function found(body: Body, id: string): Message | undefined {
  const sequence = sequenceOf(id)
  return sequence === undefined ? undefined : at(body, sequence)
}

/** The message with this sequence number. */
export function at({ messages }: Body, sequence: number): Message | undefined {
  const message = messages[placeOf(messages, sequence)]
  return message?.sequence === sequence ? message : undefined
}

/** Whether a message is what the user asks, as far as anybody can be shown it. */
export const isQuestion = ({ role, content }: Message): boolean => role === 'user' && !isBlank(content)

/** Leaves a gap up to where the next message stands. */
function skipTo(session: Session, body: Body, { sequence, offset }: NonNullable<Change['from']>): void {
  body.gaps = withGaps(body.gaps, session.last + 1, sequence - 1)
  session.last = sequence - 1
  session.weight = offset
}
