import type { BundleTotals } from '../domain/bundle.ts'
import type {
  DerivedEntry,
  Message,
  Millis,
  SessionMetadata,
  Source,
  ToolCall,
  TuningParameters,
  TuningRun,
  TuningState,
  UpkeepNotes,
} from '../domain/entry.ts'
import {
  type Check,
  fields,
  finiteNumber,
  integerAtLeast,
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
import type { AuxiliaryRecord } from '../domain/ports.ts'
import type { GraphRow } from '../graph/archive.ts'
import type { EntityRow, RelationshipRow } from '../graph/rows.ts'
import type { GraphLink, GraphNode } from '../graph/types.ts'
import { damagedBundleError, type LineBody } from './chain.ts'

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
  | { readonly end: BundleTotals }

export function toMessageRecord({ kind: _, id: __, ...message }: Message): MessageRecord {
  return message
}

/** Every field of a type with its check; missing and additional fields are compile errors. */
type Shape<T> = { readonly [K in keyof T & string as object extends Pick<T, K> ? `${K}?` : K]-?: Check }

/** Creates a check for exactly the fields of a type. */
const shaped = <T>(shape: Shape<T>): Check => fields(shape)

/** Accepts any string; `text` rejects empty ones. */
const anyText: Check = (value, at) => {
  if (typeof value !== 'string') rejectField(at, value, 'text')
}
const json: Check = () => undefined
const key: Check = (value, at) => {
  anyText(value, at)
  parseStoredKey(value as string)
}
const pair: Check = (value, at) => {
  listOf(finiteNumber, 2)(value, at)
  if ((value as unknown[]).length !== 2) rejectField(at, value, 'two numbers')
}
const sources = listOf(shaped<Source>({ message: anyText, 'session?': anyText, 'span?': pair }))

const session = shaped<SessionRecord>({
  key,
  startedAt: finiteNumber,
  touchedAt: finiteNumber,
  expiresAt: finiteNumber,
  last: integerAtLeast(0),
  messages: integerAtLeast(0),
  entries: integerAtLeast(0),
})
const message = shaped<MessageRecord>({
  at: finiteNumber,
  role: oneOf('system', 'user', 'assistant', 'tool'),
  'name?': anyText,
  content: anyText,
  'toolCalls?': listOf(shaped<ToolCall>({ id: anyText, name: anyText, arguments: anyText })),
  'toolCallId?': anyText,
  'packedPayload?': nonEmptyText,
  'branch?': integerAtLeast(1),
  tokens: finiteNumber,
  lineTokens: finiteNumber,
  tokenizer: anyText,
  weight: finiteNumber,
  sequence: integerAtLeast(1),
  offset: finiteNumber,
})
const end = shaped<BundleTotals>({
  sessions: integerAtLeast(0),
  messages: integerAtLeast(0),
  entries: integerAtLeast(0),
})

const runs = listOf(pair)
const parameters = { trigger: finiteNumber, window: finiteNumber, minRelevance: finiteNumber }
const snapshot = shaped<TuningRun>({
  ...parameters,
  at: finiteNumber,
  tokensBefore: finiteNumber,
  tokensAfter: finiteNumber,
  compressed: finiteNumber,
  dropped: finiteNumber,
  promoted: finiteNumber,
})

type DerivedOf<K extends DerivedEntry['kind']> = Extract<DerivedEntry, { kind: K }>
const base = { id: nonEmptyText, at: finiteNumber, sources }
const derived: { readonly [K in DerivedEntry['kind']]: Check } = {
  summary: shaped<DerivedOf<'summary'>>({
    ...base,
    kind: oneOf('summary'),
    tier: oneOf('progressive', 'hour', 'session', 'batch'),
    text: anyText,
    covers: pair,
    endOffset: finiteNumber,
    version: finiteNumber,
    by: anyText,
    lossyRanges: runs,
  }),
  fact: shaped<DerivedOf<'fact'>>({
    ...base,
    kind: oneOf('fact'),
    field: anyText,
    key: anyText,
    value: json,
    importance: finiteNumber,
    'supersedes?': anyText,
    'until?': finiteNumber,
  }),
  knowledge: shaped<DerivedOf<'knowledge'>>({
    ...base,
    kind: oneOf('knowledge'),
    category: anyText,
    key: anyText,
    value: json,
    confidence: finiteNumber,
    usedAt: finiteNumber,
    'agedAt?': finiteNumber,
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
    importance: finiteNumber,
    marked: trueOrFalse,
  }),
  notes: shaped<DerivedOf<'notes'>>({
    ...base,
    kind: oneOf('notes'),
    'lease?': shaped<NonNullable<UpkeepNotes['lease']>>({ holder: anyText, until: finiteNumber }),
    'faults?': listOf(shaped<Degradation>({ step: anyText, why: anyText })),
    'facts?': integerAtLeast(0),
    'learned?': integerAtLeast(0),
    'triage?': shaped<NonNullable<UpkeepNotes['triage']>>({ compressed: runs, dropped: runs, promoted: runs }),
    'tuning?': shaped<TuningState>({
      parameters: shaped<TuningParameters>(parameters),
      runs: integerAtLeast(0),
      saved: finiteNumber,
      snapshots: listOf(snapshot),
    }),
  }),
  about: shaped<DerivedOf<'about'>>({
    ...base,
    kind: oneOf('about'),
    'template?': anyText,
    'idle?': finiteNumber,
    'age?': finiteNumber,
    'person?': anyText,
    'metadata?': json,
    'movedTo?': anyText,
    'movedFrom?': anyText,
    'branchOf?': shaped<NonNullable<SessionMetadata['branchOf']>>({ session: anyText, after: integerAtLeast(0) }),
  }),
  encrypted: shaped<DerivedOf<'encrypted'>>({ ...base, kind: oneOf('encrypted'), ciphertext: anyText }),
}
const entry: Check = (value, at) => {
  const kind = isObject(value) ? value.kind : undefined
  oneOf(...Object.keys(derived))(kind, `${at}.kind`)
  derived[kind as DerivedEntry['kind']](value, at)
}

const properties: Check = (value, at) => {
  if (!isObject(value)) rejectField(at, value, 'an object')
}
const origin: Check = (value, at) => {
  listOf(anyText)(value, at)
  if ((value as readonly string[]).length !== 2) rejectField(at, value, 'a session and a message')
}
const graphFields = { type: nonEmptyText, properties, createdAt: finiteNumber, updatedAt: finiteNumber }
const graphRows: Readonly<Record<string, Check>> = {
  entity: shaped<EntityRow>({ ...graphFields, id: nonEmptyText, origins: listOf(origin) }),
  relationship: shaped<RelationshipRow>({ ...graphFields, from: nonEmptyText, to: nonEmptyText, 'session?': anyText }),
  node: shaped<GraphNode>({ name: anyText, entityType: anyText, observations: listOf(anyText) }),
  link: shaped<GraphLink>({ from: anyText, to: anyText, relationType: anyText }),
  adopted: finiteNumber,
}
const graph: Check = (value, at) => {
  const [kind, ...others] = isObject(value) ? Object.keys(value) : []
  oneOf(...Object.keys(graphRows))(kind, `the kind of ${at}`)
  if (others.length > 0) rejectField(at, value, 'of one kind')
  graphRows[kind as string]?.((value as Readonly<Record<string, unknown>>)[kind as string], `${at}.${kind}`)
}

const record = shaped<AuxiliaryRecord>({ id: nonEmptyText, at: finiteNumber, body: nonEmptyText })
const records: Readonly<Record<string, Check>> = { session, message, entry, record, graph, end }

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
