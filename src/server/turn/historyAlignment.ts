import {
  type ComparableMessage,
  compareMessages,
  isUser,
  type MessageEquality,
  matchesAt,
  type NormalForms,
} from './messageEquality.ts'

/** An index into the stored messages and one into the sent messages. */
type Position = { readonly stored: number; readonly sent: number }

type Histories = MessageEquality & {
  readonly storedMessages: readonly ComparableMessage[]
  readonly sentMessages: readonly ComparableMessage[]
  readonly forms: NormalForms
}

/** Common runs of two histories. */
type Overlap = {
  /** Length of the longest prefix of the sent messages that is a suffix of the stored ones. */
  readonly suffixLength: number
  /** End of the longest sent prefix stored anywhere; the latest occurrence wins. */
  readonly longest: Position
}

/**
 * Aligns a client's history with the stored one and returns the first position on each side that the other lacks, or
 * undefined when they share nothing. `hasEarlier` says that the stored history starts before `stored`.
 *
 * The client's history may start anywhere, leave messages out, contain messages that were never stored (its own
 * summary) or reword them: whatever lies between two shared messages counts as the same. That includes user messages: a
 * client that edits one also drops the replies after it, so a reworded question with its old reply was only decorated
 * (search results, reminders) or stripped.
 *
 * Runs in time linear in the messages compared, however repetitive they are.
 */
export function alignHistories(
  stored: readonly ComparableMessage[],
  sent: readonly ComparableMessage[],
  hasEarlier: boolean,
  forms: NormalForms = new Map(),
): Position | undefined {
  // Fast path: nearly all clients resend the stored history, or its end, unchanged and continue from there.
  if (!hasEarlier && matchesAt(stored, 0, sent, stored.length)) return { stored: stored.length, sent: stored.length }
  if (hasEarlier && isSuffixPlusOne(stored, sent)) return { stored: stored.length, sent: sent.length - 1 }
  return alignByComparison(stored, sent, hasEarlier, forms)
}

/** True when the client sends the identical end of the stored history and one new message. */
function isSuffixPlusOne(stored: readonly ComparableMessage[], sent: readonly ComparableMessage[]): boolean {
  const newestRole = sent.at(-1)?.role
  if (newestRole === 'assistant' || newestRole === stored.at(-1)?.role) return false
  return matchesAt(stored, stored.length - sent.length + 1, sent, sent.length - 1)
}

/** `alignHistories` without its fast paths. */
export function alignByComparison(
  stored: readonly ComparableMessage[],
  sent: readonly ComparableMessage[],
  hasEarlier: boolean,
  forms: NormalForms = new Map(),
): Position | undefined {
  const equality = compareMessages(stored, sent, forms)
  const histories: Histories = { ...equality, storedMessages: stored, sentMessages: sent, forms }
  const findSharedReply = sharedReplyFinder(histories)
  let userIndexes: readonly [readonly number[], readonly number[]] | undefined
  const resume = ({ stored: at, sent: sentAt }: Position): Position | undefined => {
    if (at === stored.length || sentAt === sent.length) return undefined
    // The last sent message is not a truncated reply but one to be continued.
    if (sentAt < sent.length - 1 && histories.isPartOf(at, sentAt)) return { stored: at + 1, sent: sentAt + 1 }
    userIndexes ??= [nextUserIndexes(stored), nextUserIndexes(sent)]
    const question = { stored: userIndexes[0][at] as number, sent: userIndexes[1][sentAt] as number }
    return histories.isSame(question.stored, question.sent) ? question : findSharedReply({ stored: at, sent: sentAt })
  }
  let end: Position | undefined
  let next = findStart(histories, hasEarlier) ?? findSharedReply({ stored: 0, sent: 0 })
  // Weak evidence, used only when no older messages could tell more.
  if (next === undefined && !hasEarlier) next = findNewestStored(histories)
  while (next !== undefined) {
    end = skipShared(histories, next)
    next = resume(end)
  }
  return end
}

/** Finds where the first sent messages are stored; undefined when the evidence is too weak. */
function findStart(histories: Histories, hasEarlier: boolean): Position | undefined {
  const { storedMessages: stored, sentMessages: sent } = histories
  const prefix = hasEarlier ? 0 : skipShared(histories, { stored: 0, sent: 0 }).sent
  if (prefix > 0 && prefix === stored.length) return { stored: prefix, sent: prefix }
  const { suffixLength, longest } = findOverlap(stored, sent, histories.forms)
  // Clients have no replies of their own: replies after the overlap show that it is a coincidence.
  const continues = !sent.slice(suffixLength).some(({ role }) => role === 'assistant')
  if (suffixLength > 0 && continues && prefix <= suffixLength) return { stored: stored.length, sent: suffixLength }
  if (sent.slice(0, longest.sent).some((message) => !isUser(message))) return longest
  return prefix > 0 ? { stored: prefix, sent: prefix } : undefined
}

/** Finds the overlap of two lists in linear time (Knuth-Morris-Pratt). */
export function findOverlap(
  stored: readonly ComparableMessage[],
  sent: readonly ComparableMessage[],
  forms: NormalForms = new Map(),
): Overlap {
  const { isSame } = compareMessages(stored, sent, forms)
  const borders = borderLengths(sent, forms)
  let matched = 0
  let longest: Position = { stored: 0, sent: 0 }
  for (let index = 0; index < stored.length; index++) {
    while (matched > 0 && !isSame(index, matched)) matched = borders[matched - 1] ?? 0
    if (isSame(index, matched)) matched++
    if (matched >= longest.sent) longest = { stored: index + 1, sent: matched }
  }
  return { suffixLength: matched, longest }
}

/** For each prefix of a list, the length of its longest proper suffix that is also a prefix. */
function borderLengths(list: readonly ComparableMessage[], forms: NormalForms): readonly number[] {
  const { isSame } = compareMessages(list, list, forms)
  const borders = [0]
  let length = 0
  for (let index = 1; index < list.length; index++) {
    while (length > 0 && !isSame(index, length)) length = borders[length - 1] ?? 0
    if (isSame(index, length)) length++
    borders.push(length)
  }
  return borders
}

/** Length of the common prefix of two histories. */
export const commonPrefixLength = (
  stored: readonly ComparableMessage[],
  sent: readonly ComparableMessage[],
  forms?: NormalForms,
): number => skipShared(compareMessages(stored, sent, forms), { stored: 0, sent: 0 }).sent

/** Returns the position after the run of shared messages that starts at `start`. */
function skipShared({ isSame }: MessageEquality, { stored, sent }: Position): Position {
  let count = 0
  while (isSame(stored + count, sent + count)) count++
  return { stored: stored + count, sent: sent + count }
}

/** Finds the next reply both sides have. Only replies count: users write "yes" and "go on" all the time. */
function sharedReplyFinder({
  storedMessages,
  sentMessages,
  storedKey,
  sentKey,
}: Histories): (from: Position) => Position | undefined {
  let indexesByKey: ReadonlyMap<string, readonly number[]> | undefined
  return ({ stored, sent }) => {
    indexesByKey ??= Map.groupBy(
      storedMessages.flatMap((message, index) => (isUser(message) ? [] : [index])),
      storedKey,
    )
    for (let index = sent; index < sentMessages.length; index++) {
      const found = firstAtLeast(indexesByKey.get(sentKey(index)) ?? [], stored)
      if (found !== undefined) return { stored: found, sent: index }
    }
    return undefined
  }
}

/** Binary search in ascending numbers for the first one that is at least `minimum`. */
function firstAtLeast(numbers: readonly number[], minimum: number): number | undefined {
  let [low, high] = [0, numbers.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((numbers[middle] as number) < minimum) low = middle + 1
    else high = middle
  }
  return numbers[low]
}

/** For each index, the index of the next user message at or after it. */
function nextUserIndexes(list: readonly ComparableMessage[]): readonly number[] {
  const indexes = new Array<number>(list.length)
  let next = list.length
  for (let index = list.length - 1; index >= 0; index--) {
    if (isUser(list[index] as ComparableMessage)) next = index
    indexes[index] = next
  }
  return indexes
}

/** Position after the newest stored message, where the client has it. */
function findNewestStored({ storedMessages, sentMessages, isSame, isPartOf }: Histories): Position | undefined {
  const newest = storedMessages.length - 1
  const found = sentMessages.findLastIndex(
    (_, index) => isSame(newest, index) || (index < sentMessages.length - 1 && isPartOf(newest, index)),
  )
  return found < 0 ? undefined : { stored: storedMessages.length, sent: found + 1 }
}
