import type { BundleTotals } from '../domain/bundle.ts'
import {
  type DerivedEntry,
  isExternalId,
  type Message,
  type Millis,
  maxImportedSequence,
  parseMessageId,
  type Role,
  type SessionMetadata,
  type Source,
  type ToolCall,
  type TuningParameters,
  type TuningRun,
  type TuningState,
  type UpkeepNotes,
} from '../domain/entry.ts'
import {
  type Check,
  fields,
  isObject,
  listOf,
  MemoryError,
  nonEmptyText,
  oneOf,
  rejectField,
  trueOrFalse,
} from '../domain/error.ts'
import { parseStoredKey } from '../domain/key.ts'
import type { Degradation } from '../domain/ledger.ts'
import { type Payload, unpackPayload } from '../domain/payload.ts'
import type { AuxiliaryRecord } from '../domain/ports.ts'
import { noExpiry } from '../domain/session.ts'
import { exceedsDepth } from '../domain/stringify.ts'
import type { EntityRow, GraphLink, GraphNode, GraphRow, RelationshipRow } from '../graph/types.ts'
import { checkMetadataSize } from '../lifecycle/metadata.ts'
import { isKeyEntry } from '../stores/encrypted/keyEntry.ts'
import { damagedBundleError, type LineBody } from './chain.ts'
import { type RowRecord, rowBytes, rowJson, rowName } from './rowRecords.ts'

/** The first line of every bundle. */
export const bundleHeader = { bundle: 'threadkeep', version: 1 } as const

/** A session in a bundle, without what each store decides for itself, such as revision and epoch. */
export type SessionRecord = {
  readonly key: string
  readonly startedAt: Millis
  readonly touchedAt: Millis
  readonly expiresAt: Millis
  /** The sequence number of the newest message ever written; it may be erased. */
  readonly last: number
  /** The numbers of message and entry lines that follow; graph rows count as entries. */
  readonly messages: number
  readonly entries: number
}

/** A message without the fields that follow from its sequence number. */
export type MessageRecord = Omit<Message, 'kind' | 'id'>

/** The contents of a line after the header. */
export type BundleRecord =
  | { readonly session: SessionRecord }
  | { readonly message: MessageRecord }
  | { readonly entry: DerivedEntry }
  | { readonly record: AuxiliaryRecord }
  | { readonly graph: GraphRow }
  | { readonly row: RowRecord }
  | { readonly end: BundleTotals }
  /** HMAC-SHA-256 of the hash of the line before. */
  | { readonly signature: string }

export function toMessageRecord({ kind: _, id: __, ...message }: Message): MessageRecord {
  return message
}

/** Every field of a type with its check; missing and additional fields are compile errors. */
type Shape<T> = { readonly [K in keyof T & string as object extends Pick<T, K> ? `${K}?` : K]-?: Check }

/** Creates a check for exactly the fields of a type. */
const shaped = <T>(shape: Shape<T>): Check => fields(shape)

/** Limits that leave room for all arithmetic on offsets and counts. */
const maxOffset = 2 ** 50
const maxTokens = 2 ** 40
/** Furthest time that a date can express, in ms before and after 1970. */
const maxTime: Millis = 8_640_000_000_000_000
const maxValueDepth = 200
/** Longest time for which upkeep reserves a session. */
const maxLeaseMs: Millis = 86_400_000

/** Accepts any string; `text` rejects empty ones. */
const anyText: Check = (value, at) => {
  if (typeof value !== 'string') rejectField(at, value, 'text')
}
const integerBetween =
  (min: number, max: number): Check =>
  (value, at) => {
    if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max)
      rejectField(at, value, `a whole number from ${min} to ${max}`)
  }
const numberBetween =
  (min: number, max: number): Check =>
  (value, at) => {
    if (typeof value !== 'number' || !(value >= min && value <= max)) rejectField(at, value, `from ${min} to ${max}`)
  }
const time = numberBetween(-maxTime, maxTime)
const duration = numberBetween(1, noExpiry)
const sequenceNumber = integerBetween(0, maxImportedSequence)
const count = integerBetween(0, maxImportedSequence)
const tokenCount = integerBetween(0, maxTokens)
const offset = integerBetween(0, maxOffset)
const json: Check = (value, at) => {
  if (value === undefined) rejectField(at, value, 'JSON')
  if (exceedsDepth(value, maxValueDepth)) rejectField(at, '…', `nested at most ${maxValueDepth} levels deep`)
}
const metadata: Check = (value, at) => {
  json(value, at)
  checkMetadataSize(value, at)
}
const jsonText: Check = (value, at) => {
  nonEmptyText(value, at)
  try {
    json(JSON.parse(value as string), at)
  } catch (error) {
    if (error instanceof MemoryError) throw error
    rejectField(at, value, 'JSON')
  }
}
/** Ids of messages and of the key of an encrypted session cannot name entries. */
const entryId: Check = (value, at) => {
  nonEmptyText(value, at)
  if (parseMessageId(value as string) !== undefined || isKeyEntry({ id: value as string }))
    rejectField(at, value, 'an id that is not reserved')
}
const sessionId: Check = (value, at) => {
  anyText(value, at)
  parseStoredKey(`any:${value}`)
}
const key: Check = (value, at) => {
  anyText(value, at)
  parseStoredKey(value as string)
}
/** Accepts two ordered whole numbers. */
const range: Check = (value, at) => {
  listOf(count, 2)(value, at)
  const [first, last, ...others] = value as readonly number[]
  if (others.length > 0 || (first as number) > (last as number)) rejectField(at, value, 'two numbers in order')
}
const sources = listOf(shaped<Source>({ message: anyText, 'session?': anyText, 'span?': range }))

const externalId: Check = (value, at) => {
  if (!isExternalId(value)) rejectField(at, value, 'a text of 1 to 256 characters without U+0000')
}

const session = shaped<SessionRecord>({
  key,
  startedAt: time,
  touchedAt: time,
  expiresAt: numberBetween(-maxTime, noExpiry),
  last: sequenceNumber,
  messages: count,
  entries: count,
})
const messageFields = shaped<MessageRecord>({
  at: time,
  role: oneOf('system', 'user', 'assistant', 'tool'),
  'name?': anyText,
  content: anyText,
  'toolCalls?': listOf(shaped<ToolCall>({ id: anyText, name: anyText, arguments: anyText })),
  'toolCallId?': anyText,
  'externalId?': externalId,
  'packedPayload?': nonEmptyText,
  'branch?': integerBetween(1, maxImportedSequence),
  tokens: tokenCount,
  lineTokens: tokenCount,
  tokenizer: anyText,
  weight: tokenCount,
  sequence: integerBetween(1, maxImportedSequence),
  offset,
})
const message: Check = (value, at) => {
  messageFields(value, at)
  const { role, toolCalls, toolCallId, packedPayload, content } = value as MessageRecord
  if (toolCalls !== undefined && role !== 'assistant') rejectField(`${at}.toolCalls`, role, 'absent for this role')
  if (toolCallId !== undefined && role !== 'tool') rejectField(`${at}.toolCallId`, toolCallId, 'absent for this role')
  if (packedPayload !== undefined && !fitsMessage(unpackPayload(packedPayload, content), role))
    rejectField(`${at}.packedPayload`, packedPayload, 'the original form of the message')
}
/** Protocols whose requests contain the original form of messages. */
const wireProtocols: readonly string[] = ['chat', 'messages', 'responses']
const instructionRoles: readonly unknown[] = [undefined, 'system', 'developer']
const otherRoles: readonly unknown[] = [undefined, 'user', 'assistant', 'tool', 'function']
/** False for a payload that turns a message into an instruction, or has a role that models refuse. */
function fitsMessage(payload: Payload | undefined, role: Role): boolean {
  if (payload === undefined || !wireProtocols.includes(payload.protocol)) return payload !== undefined
  const roles = role === 'system' ? instructionRoles : otherRoles
  return payload.items.every(
    (item) =>
      !isObject(item) ||
      roles.includes(item.role) ||
      (payload.protocol === 'responses' && isOtherItem(item) && !instructionRoles.includes(item.role)),
  )
}
/** True for an item that is no message, such as reasoning: it may have any fields, and is stored as it was sent. */
const isOtherItem = ({ type }: Readonly<Record<string, unknown>>): boolean =>
  typeof type === 'string' && type !== '' && type !== 'message'
const end = shaped<BundleTotals>({ sessions: count, messages: count, entries: count, 'rows?': count })

const runs = listOf(range)
const parameters = {
  trigger: numberBetween(0, 1),
  window: integerBetween(0, maxImportedSequence),
  minRelevance: numberBetween(0, 1),
}
const snapshot = shaped<TuningRun>({
  ...parameters,
  at: time,
  tokensBefore: tokenCount,
  tokensAfter: tokenCount,
  compressed: count,
  dropped: count,
  promoted: count,
})

type DerivedOf<K extends DerivedEntry['kind']> = Extract<DerivedEntry, { kind: K }>
const base = { id: entryId, at: time, sources }
const derived: { readonly [K in DerivedEntry['kind']]: Check } = {
  summary: shaped<DerivedOf<'summary'>>({
    ...base,
    kind: oneOf('summary'),
    tier: oneOf('progressive', 'hour', 'session', 'batch'),
    text: anyText,
    covers: range,
    endOffset: offset,
    version: count,
    by: anyText,
    lossyRanges: runs,
  }),
  fact: shaped<DerivedOf<'fact'>>({
    ...base,
    kind: oneOf('fact'),
    field: anyText,
    key: anyText,
    value: json,
    importance: numberBetween(0, 10),
    'supersedes?': anyText,
    'until?': time,
  }),
  knowledge: shaped<DerivedOf<'knowledge'>>({
    ...base,
    kind: oneOf('knowledge'),
    category: anyText,
    key: anyText,
    value: json,
    confidence: numberBetween(0, 1),
    usedAt: time,
    'agedAt?': time,
    'statedBy?': listOf(anyText),
    'usedBy?': listOf(anyText),
    'pending?': trueOrFalse,
    'origin?': oneOf('operator', 'learned'),
    'archived?': trueOrFalse,
  }),
  item: shaped<DerivedOf<'item'>>({
    ...base,
    kind: oneOf('item'),
    category: oneOf('code', 'file', 'data', 'concept', 'task'),
    content: anyText,
    importance: numberBetween(0, 10),
    marked: trueOrFalse,
  }),
  notes: shaped<DerivedOf<'notes'>>({
    ...base,
    kind: oneOf('notes'),
    'lease?': shaped<NonNullable<UpkeepNotes['lease']>>({ holder: anyText, until: time }),
    'faults?': listOf(shaped<Degradation>({ step: anyText, why: anyText })),
    'facts?': count,
    'learned?': sequenceNumber,
    'triage?': shaped<NonNullable<UpkeepNotes['triage']>>({ compressed: runs, dropped: runs, promoted: runs }),
    'tuning?': shaped<TuningState>({
      parameters: shaped<TuningParameters>(parameters),
      runs: count,
      saved: integerBetween(-maxOffset, maxOffset),
      snapshots: listOf(snapshot),
    }),
  }),
  about: shaped<DerivedOf<'about'>>({
    ...base,
    kind: oneOf('about'),
    'template?': anyText,
    'idle?': duration,
    'age?': duration,
    'person?': anyText,
    'metadata?': metadata,
    'movedTo?': sessionId,
    'movedFrom?': sessionId,
    'branchOf?': shaped<NonNullable<SessionMetadata['branchOf']>>({ session: sessionId, after: sequenceNumber }),
  }),
  encrypted: shaped<DerivedOf<'encrypted'>>({ ...base, kind: oneOf('encrypted'), ciphertext: anyText }),
}
const entry: Check = (value, at) => {
  const kind = isObject(value) ? value.kind : undefined
  oneOf(...Object.keys(derived))(kind, `${at}.kind`)
  derived[kind as DerivedEntry['kind']](value, at)
  const { at: writtenAt, lease } = value as DerivedEntry & Pick<UpkeepNotes, 'lease'>
  if (lease !== undefined && lease.until - writtenAt > maxLeaseMs)
    rejectField(`${at}.lease.until`, lease.until, 'at most a day after the entry')
}

const properties: Check = (value, at) => {
  if (!isObject(value)) rejectField(at, value, 'an object')
  json(value, at)
}
const origin: Check = (value, at) => {
  listOf(anyText)(value, at)
  if ((value as readonly string[]).length !== 2) rejectField(at, value, 'a session and a message')
}
const graphFields = { type: nonEmptyText, properties, createdAt: time, updatedAt: time }
const graphRows: Readonly<Record<string, Check>> = {
  entity: shaped<EntityRow>({ ...graphFields, id: nonEmptyText, origins: listOf(origin) }),
  relationship: shaped<RelationshipRow>({ ...graphFields, from: nonEmptyText, to: nonEmptyText, 'session?': anyText }),
  node: shaped<GraphNode>({ name: anyText, entityType: anyText, observations: listOf(anyText) }),
  link: shaped<GraphLink>({ from: anyText, to: anyText, relationType: anyText }),
  adopted: time,
}
const graph: Check = (value, at) => {
  const [kind, ...others] = isObject(value) ? Object.keys(value) : []
  oneOf(...Object.keys(graphRows))(kind, `the kind of ${at}`)
  if (others.length > 0) rejectField(at, value, 'of one kind')
  graphRows[kind as string]?.((value as Readonly<Record<string, unknown>>)[kind as string], `${at}.${kind}`)
}

const record = shaped<AuxiliaryRecord>({ id: nonEmptyText, at: time, body: jsonText })
const signature: Check = (value, at) => {
  if (typeof value !== 'string' || !/^[0-9a-f]{64}$/.test(value)) rejectField(at, value, 'an HMAC-SHA-256')
}
const scope: Check = (value, at) => {
  anyText(value, at)
  if (parseStoredKey(value as string).id !== '') rejectField(at, value, 'a scope')
}
const rowFields = shaped<RowRecord>({
  scope,
  name: rowName,
  createdAt: time,
  updatedAt: time,
  'json?': rowJson,
  'bytes?': rowBytes,
})
const row: Check = (value, at) => {
  rowFields(value, at)
  const { json: text, bytes } = value as RowRecord
  if (text === undefined && bytes === undefined) rejectField(`${at}.json`, text, 'JSON, unless there are bytes')
  if (text !== undefined && bytes !== undefined) rejectField(`${at}.bytes`, bytes, 'absent beside JSON')
}
const records: Readonly<Record<string, Check>> = { session, message, entry, record, graph, row, end, signature }

/** Validates the body of a line. */
export function parseRecord(body: LineBody, lineNumber: number): BundleRecord {
  const [kind = '', ...others] = Object.keys(body)
  const check = Object.hasOwn(records, kind) && others.length === 0 ? records[kind] : undefined
  if (check === undefined) throw damagedBundleError(lineNumber, `must hold one of ${Object.keys(records).join(', ')}`)
  checkAtLine(lineNumber, check, body[kind], kind)
  return body as BundleRecord
}

/** Runs a check and reports its error as damage of a line. */
export function checkAtLine(lineNumber: number, check: Check, value: unknown, at: string): void {
  try {
    check(value, at)
  } catch (cause) {
    if (!(cause instanceof MemoryError)) throw cause
    throw damagedBundleError(lineNumber, `cannot be read: ${cause.message.replace(/\.$/, '')}`)
  }
}
