import { aboutIn, type Entry, type Fact, type Knowledge, type Message, type Summary } from '../../domain/entry.ts'
import { formatKey } from '../../domain/key.ts'
import { type Head, never } from '../../domain/session.ts'

/** A session as clients see it; one that does not end by itself has no time for that. */
export function shownSession({ key, startedAt, touchedAt, expiresAt, messages, derived }: Head) {
  const { template, idle, age, person, metadata } = aboutIn(derived) ?? {}
  const about = Object.entries({ template, idle, age, person, metadata }).filter(([, value]) => value !== undefined)
  return {
    key: formatKey(key),
    startedAt,
    touchedAt,
    expiresAt: expiresAt === never ? null : expiresAt,
    messages,
    ...Object.fromEntries(about),
  }
}

/** A message whole, without what the engine counts with. */
export function shownMessage({
  kind: _kind,
  offset: _offset,
  lineTokens: _line,
  tokenizer: _tokenizer,
  weight: _weight,
  ...message
}: Message) {
  return message
}

export function shownSummary({ kind: _kind, reach: _reach, ...summary }: Summary) {
  return summary
}

export function shownFact({ kind: _kind, ...fact }: Fact) {
  return fact
}

export function shownKnowledge({ kind: _kind, agedAt: _agedAt, ...knowledge }: Knowledge) {
  return knowledge
}

/** Whatever was found; its kind tells what it is. */
export function shownEntry(entry: Entry) {
  if (entry.kind === 'message') return { kind: entry.kind, ...shownMessage(entry) }
  return entry.kind === 'summary' ? { kind: entry.kind, ...shownSummary(entry) } : entry
}
