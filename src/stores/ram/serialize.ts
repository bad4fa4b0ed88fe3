import type { DerivedEntry, Message, NewMessage } from '../../domain/entry.ts'
import type { Gap } from '../../domain/session.ts'
import { type Compressor, compressText, decompressText } from './compression.ts'
import { addExternalId, createMessage, isVisibleUserMessage, type SessionContent } from './session.ts'

/** Fields that few messages have. */
type OptionalFields = Pick<NewMessage, 'name' | 'toolCalls' | 'toolCallId' | 'externalId' | 'packedPayload' | 'branch'>

/** A message as a tuple, without field names and without the id, which follows from the sequence number. */
type MessageRow = readonly [
  sequence: number,
  offset: number,
  at: number,
  role: NewMessage['role'],
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
  derived: readonly DerivedEntry[],
  appliedChanges: readonly (readonly [id: string, run: readonly [first: number, last: number]])[],
]

/** Serializes and compresses a session. */
export function serialize({ messages, gaps, derived, appliedChanges }: SessionContent, compressor: Compressor): string {
  const session: SerializedSession = [
    messages.map(toRow),
    gaps,
    [...(derived?.values() ?? [])],
    [...(appliedChanges ?? [])],
  ]
  return compressText(JSON.stringify(session), compressor)
}

/** Restores the session that `serialize` was given. */
export function deserialize(text: string, compressor: Compressor): SessionContent {
  const [rows, gaps, derived, appliedChanges] = JSON.parse(decompressText(text, compressor)) as SerializedSession
  const messages = rows.map(fromRow)
  const index: Pick<SessionContent, 'externalIds'> = { externalIds: undefined }
  for (const message of messages) addExternalId(index, message)
  return {
    messages,
    ...index,
    gaps,
    lastUserMessage: messages.findLast(isVisibleUserMessage),
    derived: derived.length === 0 ? undefined : new Map(derived.map((entry) => [entry.id, entry])),
    appliedChanges: appliedChanges.length === 0 ? undefined : new Map(appliedChanges),
  }
}

function toRow(message: Message): MessageRow {
  const { sequence, offset, at, role, content, tokens, lineTokens, tokenizer, weight } = message
  const { name, toolCalls, toolCallId, externalId, packedPayload, branch } = message
  const row = [sequence, offset, at, role, content, tokens, lineTokens, tokenizer, weight] as const
  // JSON omits undefined fields.
  return (name ?? toolCalls ?? toolCallId ?? externalId ?? packedPayload ?? branch) === undefined
    ? row
    : [...row, { name, toolCalls, toolCallId, externalId, packedPayload, branch } as OptionalFields]
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
