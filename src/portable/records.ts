import type { Totals } from '../domain/bundle.ts'
import { type Check, fields, flag, isObject, listOf, number, oneOf, reject, text, whole } from '../domain/checks.ts'
import type {
  About,
  Derived,
  Message,
  Millis,
  Notes,
  Parameters,
  Snapshot,
  Source,
  ToolCall,
  Tuning,
} from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { parseStoredKey } from '../domain/key.ts'
import type { Degradation } from '../domain/ledger.ts'
import type { AuxiliaryRecord } from '../domain/ports.ts'
import type { GraphRow } from '../graph/archive.ts'
import type { EntityRow, RelationshipRow } from '../graph/rows.ts'
import type { Link, Node } from '../graph/types.ts'
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
  | { readonly entry: Derived }
  | { readonly record: AuxiliaryRecord }
  | { readonly graph: GraphRow }
  | { readonly end: Totals }

export function toMessageRecord({ kind: _, id: __, ...message }: Message): MessageRecord {
  return message
}

/** Every field of a type with its check; missing and additional fields are compile errors. */
type Shape<T> = { readonly [K in keyof T & string as object extends Pick<T, K> ? `${K}?` : K]-?: Check }

/** Creates a check for exactly the fields of a type. */
const shaped = <T>(shape: Shape<T>): Check => fields(shape)

/** Accepts any string; `text` rejects empty ones. */
const anyText: Check = (value, at) => {
  if (typeof value !== 'string') reject(at, value, 'text')
}
const json: Check = () => undefined
const key: Check = (value, at) => {
  anyText(value, at)
  parseStoredKey(value as string)
}
const pair: Check = (value, at) => {
  listOf(number, 2)(value, at)
  if ((value as unknown[]).length !== 2) reject(at, value, 'two numbers')
}
const sources = listOf(shaped<Source>({ message: anyText, 'session?': anyText, 'span?': pair }))

const session = shaped<SessionRecord>({
  key,
  startedAt: number,
  touchedAt: number,
  expiresAt: number,
  last: whole(0),
  messages: whole(0),
  entries: whole(0),
})
const message = shaped<MessageRecord>({
  at: number,
  role: oneOf('system', 'user', 'assistant', 'tool'),
  'name?': anyText,
  content: anyText,
  'calls?': listOf(shaped<ToolCall>({ id: anyText, name: anyText, arguments: anyText })),
  'answers?': anyText,
  tokens: number,
  lineTokens: number,
  tokenizer: anyText,
  weight: number,
  sequence: whole(1),
  offset: number,
})
const end = shaped<Totals>({ sessions: whole(0), messages: whole(0), entries: whole(0) })

const runs = listOf(pair)
const parameters = { trigger: number, window: number, minRelevance: number }
const snapshot = shaped<Snapshot>({
  ...parameters,
  at: number,
  tokensBefore: number,
  tokensAfter: number,
  compressed: number,
  dropped: number,
  promoted: number,
})

type DerivedOf<K extends Derived['kind']> = Extract<Derived, { kind: K }>
const base = { id: text, at: number, sources }
const derived: { readonly [K in Derived['kind']]: Check } = {
  summary: shaped<DerivedOf<'summary'>>({
    ...base,
    kind: oneOf('summary'),
    tier: oneOf('progressive', 'hour', 'session', 'batch'),
    text: anyText,
    covers: pair,
    reach: number,
    version: number,
    by: anyText,
    lost: runs,
  }),
  fact: shaped<DerivedOf<'fact'>>({
    ...base,
    kind: oneOf('fact'),
    field: anyText,
    key: anyText,
    value: json,
    importance: number,
    'supersedes?': anyText,
    'until?': number,
  }),
  knowledge: shaped<DerivedOf<'knowledge'>>({
    ...base,
    kind: oneOf('knowledge'),
    category: anyText,
    key: anyText,
    value: json,
    confidence: number,
    usedAt: number,
    'agedAt?': number,
    'told?': listOf(anyText),
    'used?': listOf(anyText),
    'pending?': flag,
  }),
  item: shaped<DerivedOf<'item'>>({
    ...base,
    kind: oneOf('item'),
    category: oneOf('code', 'file', 'data', 'concept', 'task'),
    content: anyText,
    importance: number,
    marked: flag,
  }),
  notes: shaped<DerivedOf<'notes'>>({
    ...base,
    kind: oneOf('notes'),
    'lease?': shaped<NonNullable<Notes['lease']>>({ holder: anyText, until: number }),
    'faults?': listOf(shaped<Degradation>({ step: anyText, why: anyText })),
    'facts?': whole(0),
    'triage?': shaped<NonNullable<Notes['triage']>>({ compressed: runs, dropped: runs, promoted: runs }),
    'tuning?': shaped<Tuning>({
      parameters: shaped<Parameters>(parameters),
      runs: whole(0),
      saved: number,
      snapshots: listOf(snapshot),
    }),
  }),
  about: shaped<DerivedOf<'about'>>({
    ...base,
    kind: oneOf('about'),
    'template?': anyText,
    'idle?': number,
    'age?': number,
    'person?': anyText,
    'metadata?': json,
    'movedTo?': anyText,
    'movedFrom?': anyText,
    'branchOf?': shaped<NonNullable<About['branchOf']>>({ session: anyText, after: whole(0) }),
  }),
  sealed: shaped<DerivedOf<'sealed'>>({ ...base, kind: oneOf('sealed'), box: anyText }),
}
const entry: Check = (value, at) => {
  const kind = isObject(value) ? value.kind : undefined
  oneOf(...Object.keys(derived))(kind, `${at}.kind`)
  derived[kind as Derived['kind']](value, at)
}

const properties: Check = (value, at) => {
  if (!isObject(value)) reject(at, value, 'an object')
}
const origin: Check = (value, at) => {
  listOf(anyText)(value, at)
  if ((value as readonly string[]).length !== 2) reject(at, value, 'a session and a message')
}
const graphFields = { type: text, properties, createdAt: number, updatedAt: number }
const graphRows: Readonly<Record<string, Check>> = {
  entity: shaped<EntityRow>({ ...graphFields, id: text, origins: listOf(origin) }),
  relationship: shaped<RelationshipRow>({ ...graphFields, from: text, to: text, 'session?': anyText }),
  node: shaped<Node>({ name: anyText, entityType: anyText, observations: listOf(anyText) }),
  link: shaped<Link>({ from: anyText, to: anyText, relationType: anyText }),
  adopted: number,
}
const graph: Check = (value, at) => {
  const [kind, ...others] = isObject(value) ? Object.keys(value) : []
  oneOf(...Object.keys(graphRows))(kind, `the kind of ${at}`)
  if (others.length > 0) reject(at, value, 'of one kind')
  graphRows[kind as string]?.((value as Readonly<Record<string, unknown>>)[kind as string], `${at}.${kind}`)
}

const record = shaped<AuxiliaryRecord>({ id: text, at: number, body: text })
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
