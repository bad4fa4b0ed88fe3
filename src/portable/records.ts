import type { Totals } from '../domain/bundle.ts'
import { type Check, flag, isObject, listOf, number, oneOf, reject, text, whole } from '../domain/checks.ts'
import type { About, Derived, Message, Millis, Notes, Source, ToolCall } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { parseStoredKey } from '../domain/key.ts'
import type { Degradation } from '../domain/ledger.ts'
import type { Parameters, Snapshot, Tuning } from '../domain/tuning.ts'
import type { GraphRow } from '../graph/archive.ts'
import { type Body, damaged } from './chain.ts'
import { graphRow } from './graph/record.ts'
import { anyText, shaped } from './shape.ts'

/** How every bundle begins. */
export const marked = { bundle: 'threadkeep', version: 1 } as const

/** A session as a bundle tells it: what its store decides for itself, such as revision and epoch, stays behind. */
export type SessionRecord = {
  readonly key: string
  readonly startedAt: Millis
  readonly touchedAt: Millis
  readonly expiresAt: Millis
  /** The sequence number of the newest message ever written, which may be gone. */
  readonly last: number
  /** How many of each follow; the rows of a graph count as entries. */
  readonly messages: number
  readonly entries: number
}

/** A message without what its sequence number already says. */
export type MessageRecord = Omit<Message, 'kind' | 'id'>

/** What stands on a line, after the header. */
export type BundleRecord =
  | { readonly session: SessionRecord }
  | { readonly message: MessageRecord }
  | { readonly entry: Derived }
  | { readonly graph: GraphRow }
  | { readonly end: Totals }

export function recordOf({ kind: _, id: __, ...message }: Message): MessageRecord {
  return message
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

type Of<K extends Derived['kind']> = Extract<Derived, { kind: K }>
const base = { id: text, at: number, sources }
const derived: { readonly [K in Derived['kind']]: Check } = {
  summary: shaped<Of<'summary'>>({
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
  fact: shaped<Of<'fact'>>({
    ...base,
    kind: oneOf('fact'),
    field: anyText,
    key: anyText,
    value: json,
    importance: number,
    'supersedes?': anyText,
    'until?': number,
  }),
  knowledge: shaped<Of<'knowledge'>>({
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
  item: shaped<Of<'item'>>({
    ...base,
    kind: oneOf('item'),
    category: oneOf('code', 'file', 'data', 'concept', 'task'),
    content: anyText,
    importance: number,
    marked: flag,
  }),
  notes: shaped<Of<'notes'>>({
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
  about: shaped<Of<'about'>>({
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
  sealed: shaped<Of<'sealed'>>({ ...base, kind: oneOf('sealed'), box: anyText }),
}
const entry: Check = (value, at) => {
  const kind = isObject(value) ? value.kind : undefined
  oneOf(...Object.keys(derived))(kind, `${at}.kind`)
  derived[kind as Derived['kind']](value, at)
}

const kinds: Readonly<Record<string, Check>> = { session, message, entry, graph: graphRow, end }

/** Checks what stands on a line; inside, its type carries the proof. */
export function parseRecord(body: Body, line: number): BundleRecord {
  const [kind = '', ...others] = Object.keys(body)
  const check = Object.hasOwn(kinds, kind) && others.length === 0 ? kinds[kind] : undefined
  if (check === undefined) throw damaged(line, `must hold one of ${Object.keys(kinds).join(', ')}`)
  checkedAt(line, check, body[kind], kind)
  return body as BundleRecord
}

/** A fault that a check finds, told as the fault of a line. */
export function checkedAt(line: number, check: Check, value: unknown, at: string): void {
  try {
    check(value, at)
  } catch (cause) {
    if (!(cause instanceof MemoryError)) throw cause
    throw damaged(line, `cannot be read: ${cause.message.replace(/\.$/, '')}`)
  }
}
