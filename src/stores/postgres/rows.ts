import { createHash } from 'node:crypto'
import {
  type DerivedEntry,
  formatMessageId,
  isBlank,
  type Message,
  type Millis,
  metadataId,
  type NewMessage,
  type Role,
  type SessionMetadata,
  type Tokens,
  type ToolCall,
} from '../../domain/entry.ts'
import { isObject } from '../../domain/error.ts'
import type { Key } from '../../domain/key.ts'
import type { Gap, SessionChange, SessionListItem } from '../../domain/session.ts'
import { escapeText, unescapeText } from './text.ts'

/** State of a session. */
export type SessionRow = {
  readonly id: number
  readonly epoch: number
  readonly revision: number
  /** Number of changes after which indexes and caches start again. */
  readonly removals: number
  /** Number of changes of derived entries. */
  readonly derivedVersion: number
  readonly startedAt: Millis
  readonly touchedAt: Millis
  readonly expiresAt: Millis
  readonly messageCount: number
  readonly lastSequence: number
  readonly totalWeight: Tokens
  readonly lastUserSequence: number | null
  readonly gaps: readonly Gap[]
}

/** Values of the SQL function `session_json`. */
export type SessionCells = readonly [
  id: number,
  epoch: number,
  revision: number,
  removals: number,
  derivedVersion: number,
  started: Millis,
  touched: Millis,
  expires: Millis,
  messages: number,
  last: number,
  weight: Tokens,
  lastUser: number | null,
  gaps: readonly Gap[],
]

export function parseSessionRow(cells: SessionCells): SessionRow {
  const [id, epoch, revision, removals, derivedVersion, startedAt, touchedAt, expiresAt, ...rest] = cells
  const [messageCount, lastSequence, totalWeight, lastUserSequence, gaps] = rest
  return {
    id,
    epoch,
    revision,
    removals,
    derivedVersion,
    startedAt,
    touchedAt,
    expiresAt,
    messageCount,
    lastSequence,
    totalWeight,
    lastUserSequence,
    gaps,
  }
}

/** Values of the SQL of `messageJson`. */
export type MessageCells = readonly [
  sequence: number,
  at: Millis,
  role: Role,
  name: string | null,
  tokens: Tokens,
  lineTokens: Tokens,
  tokenizer: string,
  weight: Tokens,
  offset: Tokens,
  calls: string | null,
  answers: string | null,
  content: string,
  payload: string | null,
  branch: number | null,
  externalId: string | null,
]

export function parseMessage(cells: MessageCells): Message {
  const [sequence, at, role, name, tokens, lineTokens, tokenizer, weight, offset, calls, answers, content, ...rest] =
    cells
  const [payload, branch, externalId] = rest
  return Object.freeze({
    at,
    role,
    ...(name === null ? {} : { name: unescapeText(name) }),
    content: unescapeText(content),
    ...(calls === null ? {} : { toolCalls: JSON.parse(calls) as ToolCall[] }),
    ...(answers === null ? {} : { toolCallId: unescapeText(answers) }),
    ...(externalId === null ? {} : { externalId: unescapeText(externalId) }),
    ...(payload === null ? {} : { packedPayload: unescapeText(payload) }),
    ...(branch === null ? {} : { branch }),
    tokens,
    lineTokens,
    tokenizer: unescapeText(tokenizer),
    weight,
    kind: 'message',
    id: formatMessageId(sequence),
    sequence,
    offset,
  })
}

export type DerivedCells = readonly [id: string, kind: DerivedEntry['kind'], at: Millis, body: string]

export const parseDerived = ([id, kind, at, body]: DerivedCells): DerivedEntry =>
  ({ kind, id: unescapeText(id), at, ...(JSON.parse(body) as object) }) as DerivedEntry

/** Returns the stored body of a derived entry. JSON escapes every character that PostgreSQL cannot store. */
export function formatBody({ id: _, kind: __, at: ___, ...rest }: DerivedEntry): string {
  return JSON.stringify(rest)
}

export type ListedCells = readonly [
  scope: string,
  name: string,
  started: Millis,
  touched: Millis,
  expires: Millis,
  messages: number,
  metadata: string | null,
]

export function parseListed([
  scope,
  id,
  startedAt,
  touchedAt,
  expiresAt,
  messages,
  body,
]: ListedCells): SessionListItem {
  const item = { key: { scope, id } as Key, startedAt, touchedAt, expiresAt, messages }
  const metadata = body === null ? undefined : (JSON.parse(body) as SessionMetadata).metadata
  return metadata === undefined ? item : { ...item, metadata }
}

/** Formats a field of metadata for the column `fields`, which filters compare. */
export const formatField = (name: string, value: unknown): string => JSON.stringify([name, value])

/** Formats a change for the SQL function `commit_change`. */
export function formatChange(change: SessionChange, operation: string): string {
  const { at, epoch, base, from, replace = [], append, put, drop, expiresAt } = change
  const externalIds = [...replace.map(({ message }) => message), ...append].flatMap(({ externalId = [] }) => externalId)
  return JSON.stringify({
    id: hashOperation(operation),
    at,
    epoch,
    base,
    from,
    expiresAt,
    append: append.map(formatMessage),
    ...(replace.length > 0 && {
      replace: replace.map(({ id, message }) => ({ id: escapeText(id), ...formatMessage(message) })),
    }),
    ...(externalIds.length > 0 && { externalIds: externalIds.map(escapeText) }),
    ...(put.length > 0 && { put: put.map(formatDerived) }),
    ...(drop.length > 0 && { drop: drop.map(escapeText) }),
  })
}

/** Ids of operations may be longer than an index allows. */
const hashOperation = (id: string): string =>
  createHash('sha256').update(id, 'utf16le').digest('base64url').slice(0, 22)

function formatMessage(message: NewMessage): object {
  const { at, role, name, tokens, lineTokens, tokenizer, weight, toolCalls, toolCallId, content } = message
  const { packedPayload, branch, externalId } = message
  return {
    at,
    role,
    name: escapeOptional(name),
    tokens,
    lineTokens,
    tokenizer: escapeText(tokenizer),
    weight,
    calls: toolCalls === undefined ? undefined : JSON.stringify(toolCalls),
    answers: escapeOptional(toolCallId),
    content: escapeText(content),
    payload: escapeOptional(packedPayload),
    branch,
    externalId: escapeOptional(externalId),
    blank: isBlank(content),
  }
}

function formatDerived(entry: DerivedEntry): object {
  const { id, kind, at } = entry
  const isMetadata = id === metadataId && kind === 'about'
  return {
    id: escapeText(id),
    kind,
    at,
    body: formatBody(entry),
    ...(isMetadata && { fields: listFields(entry.metadata) }),
  }
}

/** A field with an array or an object never equals the value of a filter. */
const listFields = (metadata: SessionMetadata['metadata']): readonly string[] | undefined =>
  isObject(metadata)
    ? Object.entries(metadata).flatMap(([name, value]) =>
        typeof value === 'object' && value !== null ? [] : [formatField(name, value)],
      )
    : undefined

const escapeOptional = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : escapeText(text)

/** Reason for which the SQL function `commit_change` has not applied a change. */
export type CommitConflict =
  | { readonly conflict: 'epoch' }
  | { readonly conflict: 'revision'; readonly revision: number }
  | { readonly conflict: 'position'; readonly lastSequence: number; readonly gaps: readonly Gap[] }
  | {
      readonly conflict: 'ids'
      /** Ids of the messages to replace that exist. */
      readonly existing: readonly string[]
      /** Ids of messages by external id. */
      readonly owners: Readonly<Record<string, string>>
    }

/** Result of `commit_change`: `applied` are the messages of a change that had been applied before. */
export type CommitAnswer =
  | CommitConflict
  | { readonly applied: readonly MessageCells[] }
  | { readonly first: number; readonly offset: number; readonly session: SessionCells }
