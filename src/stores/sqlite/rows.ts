import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import {
  type DerivedEntry,
  formatMessageId,
  type Json,
  type Message,
  metadataId,
  type NewMessage,
  type Role,
  type SessionMetadata,
  type ToolCall,
} from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { Gap, SessionListItem } from '../../domain/session.ts'

/** A row of the `session` table. */
export type SessionRow = {
  id: number
  readonly epoch: number
  revision: number
  stamp: number
  removals: number
  /** Number of changes of derived entries; column `learnt`. */
  derivedVersion: number
  readonly startedAt: number
  touchedAt: number
  expiresAt: number
  messageCount: number
  lastSequence: number
  totalWeight: number
  lastUserSequence: number | null
  gaps: readonly Gap[]
}

/** Prefixes columns with a table alias. */
export const qualifyColumns = (table: string, columns: string): string => columns.replaceAll(/"?\w+"?/g, `${table}.$&`)

type Cell = null | number | string | Uint8Array
export type Cells = readonly Cell[]

/** Columns in the order `parseSessionRow` expects. */
export const sessionColumns =
  'id, epoch, revision, stamp, removals, learnt, started, touched, expires, messages, last, weight, asked, gaps'

export function parseSessionRow(cells: Cells): SessionRow {
  const [id, epoch, revision, stamp, removals, learnt, started, touched, expires, messages, last, weight] =
    cells as number[]
  return {
    id,
    epoch,
    revision,
    stamp,
    removals,
    derivedVersion: learnt,
    startedAt: started,
    touchedAt: touched,
    expiresAt: expires,
    messageCount: messages,
    lastSequence: last,
    totalWeight: weight,
    lastUserSequence: cells[12],
    gaps: parseGaps(cells[13]),
  } as SessionRow
}

const noGaps: readonly Gap[] = []

function parseGaps(text: Cell | undefined): readonly Gap[] {
  if (text === '[]') return noGaps
  try {
    return JSON.parse(text as string) as Gap[]
  } catch (error) {
    throw new MemoryError(
      'corrupt',
      'The row of a session is damaged. Run threadkeep doctor --repair to rebuild it from the messages.',
      { cause: error },
    )
  }
}

/** Columns in the order `parseListedRow` expects; the last one is the body of the session's metadata. */
export const listedColumns = `scope, name, started, touched, expires, messages,
  (SELECT body FROM derived WHERE session = session.id AND id = '${metadataId}' AND kind = 'about')`

export function parseListedRow(cells: Cells): SessionListItem {
  const [scope, id, startedAt, touchedAt, expiresAt, messages, body] = cells
  const item = { key: { scope, id }, startedAt, touchedAt, expiresAt, messages } as SessionListItem
  const metadata = typeof body === 'string' ? parseMetadata(body) : undefined
  return metadata === undefined ? item : { ...item, metadata }
}

/** Damaged metadata is missing from the list; reading the session quarantines it. */
function parseMetadata(body: string): Json | undefined {
  try {
    return (JSON.parse(body) as SessionMetadata).metadata
  } catch {
    return undefined
  }
}

/** Columns in the order `parseMessageRow` expects. */
export const messageColumns =
  'sequence, at, role, name, tokens, line_tokens, tokenizer, weight, "offset", calls, answers, content, payload, branch, external_id, sum'

/** Updates all `messageColumns` of the message with a session and a sequence number. */
export const updateMessage = `UPDATE message SET ${messageColumns.replaceAll(/"?\w+"?/g, '$& = ?')} WHERE session = ? AND sequence = ?`

/** Returns the values of `messageColumns`. */
export function toMessageRow(message: NewMessage, sequence: number, offset: number): Cell[] {
  const { at, role, name = null, tokens, lineTokens, tokenizer, weight, toolCallId = null, content } = message
  const { packedPayload = null, branch = null, externalId = null } = message
  const calls = message.toolCalls === undefined ? null : JSON.stringify(message.toolCalls)
  const cells = [sequence, at, role, name, tokens, lineTokens, tokenizer, weight, offset, calls, toolCallId, content]
  const all = [...cells, packedPayload, branch, externalId]
  return [...all, messageChecksum(all)]
}

/** Builds the stored messages of a change from its input and the position of the first one. */
export function buildMessages(append: readonly NewMessage[], first: number, offset: number): readonly Message[] {
  let nextOffset = offset
  return append.map((input, index) => {
    const message: Message = Object.freeze({
      ...input,
      kind: 'message',
      id: formatMessageId(first + index),
      sequence: first + index,
      offset: nextOffset,
    })
    nextOffset += input.weight
    return message
  })
}

type MessageCells = readonly [
  sequence: number,
  at: number,
  role: Role,
  name: string | null,
  tokens: number,
  lineTokens: number,
  tokenizer: string,
  weight: number,
  offset: number,
  calls: string | null,
  answers: string | null,
  content: string,
  payload: string | null,
  branch: number | null,
  externalId: string | null,
  sum: number,
]

/** Parses a message; undefined if the checksum does not match. */
export function parseMessageRow(cells: Cells): Message | undefined {
  const [sequence, at, role, name, tokens, lineTokens, tokenizer, weight, offset, calls, answers, content, ...rest] =
    cells as unknown as MessageCells
  const [payload, branch, externalId, sum] = rest
  if (sum !== messageChecksum(cells.slice(0, -1))) return undefined
  return Object.freeze({
    at,
    role,
    ...(name === null ? {} : { name }),
    content,
    ...(calls === null ? {} : { toolCalls: JSON.parse(calls) as ToolCall[] }),
    ...(answers === null ? {} : { toolCallId: answers }),
    ...(externalId === null ? {} : { externalId }),
    ...(payload === null ? {} : { packedPayload: payload }),
    ...(branch === null ? {} : { branch }),
    tokens,
    lineTokens,
    tokenizer,
    weight,
    kind: 'message',
    id: formatMessageId(sequence),
    sequence,
    offset,
  })
}

/** Leaves out columns of later formats that are null, so that rows without them keep the checksum they had. */
function messageChecksum(cells: Cells): number {
  const [payload, branch, externalId] = cells.slice(-3)
  if (externalId !== null) return checksum(cells)
  return checksum(cells.slice(0, payload === null && branch === null ? -3 : -1))
}

/** Detects rows that a failing disk has changed silently. */
const checksum = (cells: Cells): number => crc32(cells.join(' '))

/** Columns in the order `parseDerivedRow` expects. */
export const derivedColumns = 'id, kind, at, body, sum'

export function toDerivedRow({ id, kind, at, ...rest }: DerivedEntry): Cell[] {
  const body = JSON.stringify(rest)
  return [id, kind, at, body, checksum([id, kind, at, body])]
}

/** Parses a derived entry; undefined if the checksum does not match. */
export function parseDerivedRow(cells: Cells): DerivedEntry | undefined {
  const [id, kind, at, body, sum] = cells
  if (sum !== checksum([id, kind, at, body] as Cells)) return undefined
  return { kind, id, at, ...(JSON.parse(body as string) as object) } as DerivedEntry
}

/** Returns a derived entry as it is read back. */
export const copyDerived = ({ kind, id, at, ...rest }: DerivedEntry): DerivedEntry =>
  ({ kind, id, at, ...(JSON.parse(JSON.stringify(rest)) as object) }) as DerivedEntry

/** SHA-256 of a name that must not be readable in the file. */
export const hashName = (name: string): Uint8Array => createHash('sha256').update(name).digest()
export const hashSessionKey = (key: Key): Uint8Array => hashName(formatKey(key))
