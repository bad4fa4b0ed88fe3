import type { Derived, Message, Said } from '../../domain/entry.ts'
import type { Gap } from '../../domain/session.ts'
import { compressText, decompressText, type Pack } from './compression.ts'
import { createMessage, isVisibleUserMessage, type SessionContent } from './session.ts'

/** Fields that few messages have. */
type OptionalFields = Pick<Said, 'name' | 'calls' | 'answers'>

/** A message as a tuple, without field names and without the id, which follows from the sequence number. */
type MessageRow = readonly [
  sequence: number,
  offset: number,
  at: number,
  role: Said['role'],
  content: string,
  tokens: number,
  lineTokens: number,
  tokenizer: string,
  weight: number,
  optional?: OptionalFields,
]

type SerializedSession = readonly [
  messages: readonly MessageRow[],
  gaps: readonly Gap[],
  derived: readonly Derived[],
  appliedChanges: readonly (readonly [id: string, run: readonly [first: number, last: number]])[],
]

/** Serializes and compresses a session. */
export function serialize({ messages, gaps, derived, appliedChanges }: SessionContent, compressor: Pack): string {
  const session: SerializedSession = [
    messages.map(toRow),
    gaps,
    [...(derived?.values() ?? [])],
    [...(appliedChanges ?? [])],
  ]
  return compressText(JSON.stringify(session), compressor)
}

/** Restores the session that `serialize` was given. */
export function deserialize(text: string, compressor: Pack): SessionContent {
  const [rows, gaps, derived, appliedChanges] = JSON.parse(decompressText(text, compressor)) as SerializedSession
  const messages = rows.map(fromRow)
  return {
    messages,
    gaps,
    lastUserMessage: messages.findLast(isVisibleUserMessage),
    derived: derived.length === 0 ? undefined : new Map(derived.map((entry) => [entry.id, entry])),
    appliedChanges: appliedChanges.length === 0 ? undefined : new Map(appliedChanges),
  }
}

function toRow(message: Message): MessageRow {
  const { sequence, offset, at, role, content, tokens, lineTokens, tokenizer, weight, name, calls, answers } = message
  const row = [sequence, offset, at, role, content, tokens, lineTokens, tokenizer, weight] as const
  // JSON omits undefined fields.
  return (name ?? calls ?? answers) === undefined ? row : [...row, { name, calls, answers } as OptionalFields]
}

const fromRow = ([
  sequence,
  offset,
  at,
  role,
  content,
  tokens,
  lineTokens,
  tokenizer,
  weight,
  optional,
]: MessageRow): Message =>
  createMessage({ at, role, content, tokens, lineTokens, tokenizer, weight, ...optional }, sequence, offset)
