import {
  type DerivedEntry,
  type Fact,
  getEntryText,
  type Message,
  parseMessageId,
  type Summary,
} from '../domain/entry.ts'
import { payloadStrings, unpackPayload } from '../domain/payload.ts'
import type { Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { Work } from '../domain/work.ts'
import { listJsonTexts } from '../text/json.ts'
import { fallbackSummary, findLostRuns, truncateMessages } from './draft.ts'
import { extractFactsInSteps } from './extract/extract.ts'
import { maxSummaryTokens } from './plan.ts'
import { summariseInSteps } from './summarise/summarise.ts'
import type { SummaryTarget } from './summarise/summary.ts'

/** Ids of the deleted messages of a session, or `'all'`. */
type DeletedMessages = ReadonlySet<string> | 'all'

/** Deleted messages of a scope by session id. */
export type DeletionsBySession = ReadonlyMap<string, DeletedMessages>

/**
 * Finds the derived entries of a session that may contain deleted content: they cite a deleted message, or summarise a
 * range that included one.
 */
export function findAffected(
  derived: readonly DerivedEntry[],
  sessionId: string,
  deletions: DeletionsBySession,
): readonly DerivedEntry[] {
  return derived.filter(
    (entry) =>
      entry.sources.some(({ message, session = sessionId }) => isDeleted(deletions.get(session), message)) ||
      coversDeleted(entry, deletions.get(sessionId)),
  )
}

function coversDeleted(entry: DerivedEntry, deleted: DeletedMessages | undefined): boolean {
  if (entry.kind !== 'summary' || deleted === undefined) return false
  const [first, last] = entry.covers
  if (deleted === 'all') return true
  for (const id of deleted) {
    const sequence = parseMessageId(id)
    if (sequence !== undefined && sequence >= first && sequence <= last) return true
  }
  return false
}

const isDeleted = (deleted: DeletedMessages | undefined, message: string): boolean =>
  deleted !== undefined && (deleted === 'all' || deleted.has(message))

/**
 * True if an entry contains a text, ignoring case, in its user-supplied content. Role, numbers and id are not searched.
 */
export function containsText(entry: Message | DerivedEntry, text: string): boolean {
  const lowercase = text.toLowerCase()
  return searchableTexts(entry).some((content) => content.toLowerCase().includes(lowercase))
}

function searchableTexts(entry: Message | DerivedEntry): readonly string[] {
  if (entry.kind === 'message')
    return [entry.content, entry.name ?? '', ...listJsonTexts(entry.toolCalls ?? []), ...payloadTexts(entry)]
  if (entry.kind === 'fact' || entry.kind === 'knowledge') return [entry.key, ...listJsonTexts(entry.value)]
  if (entry.kind === 'about') return listJsonTexts(entry.metadata ?? '')
  return [getEntryText(entry)]
}

/** Texts of a message's original form; a damaged one is searched as it is stored. */
function payloadTexts({ packedPayload, content }: Message): readonly string[] {
  if (packedPayload === undefined) return []
  const payload = unpackPayload(packedPayload, content)
  return payload === undefined ? [packedPayload] : [...payloadStrings(payload)]
}

/**
 * Rebuilds an entry from the remaining messages with the built-in rules; undefined when nothing remains of it.
 * Interruptible work.
 */
export function* rederive(
  entry: DerivedEntry,
  remaining: readonly Message[],
  profile: Profile,
  tokenizer: Tokenizer,
): Work<DerivedEntry | undefined> {
  if (remaining.length === 0) return undefined
  if (entry.kind === 'summary') return yield* resummarise(entry, remaining, profile, tokenizer)
  if (entry.kind === 'fact') return yield* reextractFact(entry, remaining)
  return undefined
}

function* resummarise(
  summary: Summary,
  remaining: readonly Message[],
  profile: Profile,
  tokenizer: Tokenizer,
): Work<Summary | undefined> {
  // Batch summaries come from the application and cannot be rebuilt.
  if (summary.tier === 'batch') return undefined
  const target = targetFor(summary, remaining, profile, tokenizer)
  const input = { messages: truncateMessages(remaining), previous: undefined }
  const rebuilt = yield* summariseInSteps(input.messages, undefined, target)
  const { text, sources } = rebuilt.text === '' ? fallbackSummary(input, target) : rebuilt
  return {
    ...summary,
    text,
    sources,
    by: 'builtin',
    lossyRanges: yield* findLostRuns(text, { ...input, messages: remaining }),
  }
}

/** Returns the size limit of the rule that created the summary. */
function targetFor(
  { tier, version }: Summary,
  remaining: readonly Message[],
  profile: Profile,
  tokenizer: Tokenizer,
): SummaryTarget {
  for (const { do: task } of profile.upkeep) {
    if (!('summarise' in task) || task.summarise !== tier) continue
    const bandTokens = maxSummaryTokens(profile)
    if (task.summarise === 'progressive')
      return {
        words: task.words[Math.min(version, task.words.length) - 1] as readonly [number, number],
        fits: (text) => tokenizer.count(text) <= bandTokens,
      }
    // A session summary was made from hour summaries, so its share applies twice.
    const share = task.summarise === 'session' ? task.share ** 2 : task.share
    const messageTokens = remaining.reduce((sum, { tokens }) => sum + tokens, 0)
    const maxTokens = Math.max(16, Math.min(bandTokens / 3, share * messageTokens))
    return { fits: (text) => tokenizer.count(text) <= maxTokens }
  }
  return { words: [100, 150] }
}

/** Finds the same fact in the remaining messages. */
function* reextractFact(fact: Fact, remaining: readonly Message[]): Work<Fact | undefined> {
  const same = (yield* extractFactsInSteps(truncateMessages(remaining))).findLast(
    ({ field, key, value, revises, replaces }) =>
      // A change was stored in the slot it refers to, which may have a qualifier or another name.
      field === fact.field &&
      (key === fact.key || revises !== undefined || replaces !== undefined) &&
      JSON.stringify(value) === JSON.stringify(fact.value),
  )
  return same && { ...fact, sources: [same.source] }
}
