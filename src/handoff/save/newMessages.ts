import { hash } from 'node:crypto'
import type { ParsedMessage } from '../../domain/chat.ts'
import { runInSlices, type Work } from '../../domain/work.ts'
import { yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import { normalizeSecrets, normalizeSecretsInSteps } from '../../text/secrets.ts'

type Fingerprinted = Omit<ParsedMessage, 'at'>

/**
 * Returns the index of the first sent message that is not stored yet. Clients send the whole conversation again,
 * possibly without messages that others stored in between, or only its newest part, which then overlaps the end of the
 * stored one.
 *
 * A single short message in common proves nothing: "go on" recurs, and storing it twice is better than losing it.
 * `isDistinctiveAt` tells whether the message at an index identifies its conversation.
 *
 * @example
 * firstNewIndex(['a', 'b'], ['b', 'c']) // 1
 * firstNewIndex(['go on', 'Part 1'], ['go on', 'Part 2'], () => false) // 0
 */
export function firstNewIndex(
  stored: readonly string[],
  sent: readonly string[],
  isDistinctiveAt: (index: number) => boolean = () => true,
): number {
  const overlap = countOverlap(stored, sent)
  const isSameStart = isDistinctiveAt(0) || (sent[0] === stored[0] && sent[1] === stored[1])
  return Math.max(overlap > 1 || isDistinctiveAt(0) ? overlap : 0, isSameStart ? countRepeatedStart(stored, sent) : 0)
}

/** Applies `firstNewIndex` to messages. `knownHashes` are those of the first stored messages before shortening. */
export const indexOfFirstNewMessage = async (
  stored: readonly Fingerprinted[],
  sent: readonly Fingerprinted[],
  knownHashes: readonly string[] = [],
): Promise<number> =>
  firstNewIndex(
    await hashMessages(stored, knownHashes),
    await hashMessages(sent),
    (index) => sent[index] !== undefined && isDistinctive(sent[index]),
  )

/** Digits of a hash: enough to tell the messages of a session apart, too few to find out an unknown text. */
const hashDigits = 12

/** Hashes messages; the first ones may be known from before their shortening. */
export async function hashMessages(
  messages: readonly Fingerprinted[],
  knownHashes: readonly string[] = [],
): Promise<readonly string[]> {
  const known = knownHashes.slice(0, messages.length)
  const fingerprints = await fingerprintAll(messages.slice(known.length))
  return [...known, ...fingerprints.map((fingerprint) => fingerprint.slice(0, hashDigits))]
}

const minDistinctiveChars = 40

/** Checks whether a message alone identifies its conversation: short messages occur in many. */
export const isDistinctive = ({ content, toolCalls }: Pick<ParsedMessage, 'content' | 'toolCalls'>): boolean =>
  content.trim().length >= minDistinctiveChars || toolCalls !== undefined

/**
 * Counts the messages repeated from the start of the stored conversation. A single message is not a history, and
 * neither is one that was stored more than once.
 */
function countRepeatedStart(stored: readonly string[], sent: readonly string[]): number {
  const [first] = stored
  if (sent.length < 2 || sent[0] !== first) return 0
  const repeated = countInOrder(stored, sent)
  return repeated === 1 && stored.lastIndexOf(first as string) > 0 ? 0 : repeated
}

/** Counts the leading sent messages that occur in the stored ones in the same order. */
function countInOrder(stored: readonly string[], sent: readonly string[]): number {
  let position = 0
  for (const [index, message] of sent.entries()) {
    while (position < stored.length && stored[position] !== message) position++
    if (position === stored.length) return index
    position++
  }
  return sent.length
}

/** Length of the longest prefix of `sent` that is a suffix of `stored`: Knuth-Morris-Pratt, linear time. */
function countOverlap(stored: readonly string[], sent: readonly string[]): number {
  const fallbacks: number[] = [0]
  const extend = (matched: number, next: string | undefined): number => {
    let length = matched
    while (length > 0 && (length === sent.length || sent[length] !== next)) length = fallbacks[length - 1] as number
    return length < sent.length && sent[length] === next ? length + 1 : length
  }
  for (let index = 1; index < sent.length; index++) fallbacks.push(extend(fallbacks[index - 1] as number, sent[index]))
  return stored.slice(-sent.length).reduce((matched, next) => extend(matched, next), 0)
}

/** Hashes a message by its content, ignoring its time and its secrets, which may be masked. */
function* fingerprint({ role, content, name, toolCalls, toolCallId }: Fingerprinted): Work<string> {
  const fields = [role, yield* normalizeSecretsInSteps(content), normalizeSecrets(name ?? ''), toolCallId ?? '']
  const callFields: string[] = []
  for (const call of toolCalls ?? []) callFields.push(call.name, yield* normalizeSecretsInSteps(call.arguments))
  yield messageWork + Math.ceil(content.length / scanSpeed)
  return hash('sha256', JSON.stringify([fields, callFields]))
}

/** Looking for secrets is faster than the work that slices are made for. */
const scanSpeed = 10
/** Cost of a message beside its characters. */
const messageWork = 60

/** Fingerprints messages, with pauses between many or long ones. */
export const fingerprintAll = (messages: readonly Fingerprinted[]): Promise<readonly string[]> =>
  runInSlices(fingerprintInSteps(messages), yieldWhenLong)

function* fingerprintInSteps(messages: readonly Fingerprinted[]): Work<readonly string[]> {
  const fingerprints: string[] = []
  for (const message of messages) fingerprints.push(yield* fingerprint(message))
  return fingerprints
}
