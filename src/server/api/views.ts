import { type Entry, type Fact, findMetadata, type Knowledge, type Message, type Summary } from '../../domain/entry.ts'
import { formatKey } from '../../domain/key.ts'
import { noExpiry, type SessionHead } from '../../domain/session.ts'

/**
 * A session in the API; `expiresAt` is null when it does not expire. `tokens` comes from the position of the newest
 * message, which costs nothing to read: erased messages still count.
 */
export function sessionView({
  key,
  startedAt,
  touchedAt,
  expiresAt,
  messages,
  lastSequence,
  recent,
  derived,
}: SessionHead) {
  const newest = recent.at(-1)
  const { template, idle, age, person, metadata } = findMetadata(derived) ?? {}
  const optional = Object.entries({ template, idle, age, person, metadata }).filter(([, value]) => value !== undefined)
  return {
    key: formatKey(key),
    startedAt,
    touchedAt,
    expiresAt: expiresAt === noExpiry ? null : expiresAt,
    messages,
    lastSequence,
    ...(newest !== undefined && { tokens: newest.offset + newest.weight }),
    ...Object.fromEntries(optional),
  }
}

/** A message without the engine's bookkeeping. */
export function messageView({
  kind: _kind,
  offset: _offset,
  lineTokens: _lineTokens,
  tokenizer: _tokenizer,
  weight: _weight,
  packedPayload: _packedPayload,
  ...message
}: Message) {
  return message
}

export function summaryView({ kind: _kind, endOffset: _reach, ...summary }: Summary) {
  return summary
}

export function factView({ kind: _kind, ...fact }: Fact) {
  return fact
}

export function knowledgeView({ kind: _kind, agedAt: _agedAt, ...knowledge }: Knowledge) {
  return knowledge
}

/** A search result's entry; `kind` distinguishes the types. */
export function entryView(entry: Entry) {
  if (entry.kind === 'message') return { kind: entry.kind, ...messageView(entry) }
  return entry.kind === 'summary' ? { kind: entry.kind, ...summaryView(entry) } : entry
}
