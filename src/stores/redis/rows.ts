import {
  type DerivedEntry,
  isBlank,
  type Message,
  metadataId,
  type NewMessage,
  parseMessageId,
} from '../../domain/entry.ts'
import { type Gap, noExpiry, type SessionChange } from '../../domain/session.ts'
import { createMessage } from '../ram/session.ts'
import type { Reply } from './transport.ts'

/** Row of a session: its head without messages and derived entries. */
export type SessionRow = {
  readonly epoch: number
  readonly revision: number
  readonly stamp: number
  /** Number of changes that removed or replaced entries, or filled a gap before the newest message. */
  readonly removals: number
  readonly startedAt: number
  readonly touchedAt: number
  readonly expiresAt: number
  readonly messageCount: number
  readonly lastSequence: number
  /** Sequence number of the newest user message with visible text; -1 if there is none. */
  readonly lastUserSequence: number
  readonly gaps: readonly Gap[]
  /** Grows with every change of a derived entry. */
  readonly derivedVersion: number
}

/** Parses the columns that scripts return, in the order of `rowColumns`. */
export function parseRow(values: readonly Reply[]): SessionRow {
  const [epoch, revision, stamp, removals, started, touched, expires, messages, last, , user, gaps, derived] = values
  return {
    epoch: Number(epoch),
    revision: Number(revision),
    stamp: Number(stamp),
    removals: Number(removals),
    startedAt: Number(started),
    touchedAt: Number(touched),
    expiresAt: Number(expires),
    messageCount: Number(messages),
    lastSequence: Number(last),
    lastUserSequence: Number(user),
    gaps: parseGaps(String(gaps)),
    derivedVersion: Number(derived),
  }
}

export const parseGaps = (text: string): readonly Gap[] =>
  text === ''
    ? []
    : text.split(',').map((range) => {
        const [first, last] = range.split('-')
        return [Number(first), Number(last)] as const
      })

const isVisibleUser = ({ role, content }: NewMessage): boolean => role === 'user' && !isBlank(content)

/** Formats a message for a script: whether it is a visible user message, weight, external id, JSON. */
function formatMessage(message: NewMessage): readonly string[] {
  const { kind: _, id: __, sequence: ___, offset: ____, ...fields } = createMessage(message, 1, 0)
  const { externalId } = fields
  return [
    isVisibleUser(message) ? '1' : '0',
    String(message.weight),
    externalId === undefined ? '' : formatExternalId(externalId),
    JSON.stringify(fields),
  ]
}

/** Field of an external id in its hash, which has fields for sequence numbers too. */
export const formatExternalId = (externalId: string): string => `e${formatName(externalId)}`

/** Formats a name so that lone surrogates, which UTF-8 has no form for, stay distinct. */
export const formatName = (name: string): string => JSON.stringify(name).slice(1, -1)
export const parseName = (name: string): string => JSON.parse(`"${name}"`) as string

/** Parses a stored message: SEQUENCE:OFFSET:WEIGHT:IS_VISIBLE_USER:JSON. */
export function parseMessage(stored: string): Message {
  const first = stored.indexOf(':')
  const second = stored.indexOf(':', first + 1)
  const start = stored.indexOf(':', stored.indexOf(':', second + 1) + 1) + 1
  const fields = JSON.parse(stored.slice(start)) as NewMessage
  return createMessage(fields, Number(stored.slice(0, first)), Number(stored.slice(first + 1, second)))
}

/** Parses a stored derived entry: PLACE:JSON. */
const parseDerived = (stored: string): { readonly place: number; readonly entry: DerivedEntry } => {
  const colon = stored.indexOf(':')
  return { place: Number(stored.slice(0, colon)), entry: JSON.parse(stored.slice(colon + 1)) as DerivedEntry }
}

export const parseDerivedEntry = (stored: string): DerivedEntry => parseDerived(stored).entry

/** Parses names and values of the hash of derived entries, and sorts them by the time they were first put. */
export function parseDerivedEntries(flat: readonly Reply[]): readonly DerivedEntry[] {
  const stored = flat.filter((_, index) => index % 2 === 1).map((value) => parseDerived(String(value)))
  return stored.sort((a, b) => a.place - b.place).map(({ entry }) => entry)
}

/** Recognised repetitions per session. */
const maxRememberedChanges = 1_000

/** Formats the arguments of the commit script. `token` identifies this call of `commit`, which may be sent twice. */
export function formatChange(change: SessionChange, token: string, ttlMs: string): readonly string[] {
  const { key, id, epoch, base, at, expiresAt, from, replace = [], append, put, drop } = change
  const about = put.findLast((entry) => entry.id === metadataId)
  return [
    key.id,
    id === undefined ? '' : `=${formatName(id)}`,
    token,
    String(epoch),
    base === undefined ? '' : String(base),
    String(at),
    String(expiresAt),
    ttlMs,
    from === undefined ? '' : String(from.sequence),
    from?.offset === undefined ? '' : String(from.offset),
    about === undefined ? '' : formatMetadata(about),
    ...[replace, append, put, drop].map(({ length }) => String(length)),
    String(maxRememberedChanges),
    String(noExpiry),
    ...replace.flatMap(({ id: replaced, message }) => [formatSequence(replaced), ...formatMessage(message)]),
    ...append.flatMap(formatMessage),
    ...put.flatMap((entry) => [formatName(entry.id), JSON.stringify(entry)]),
    ...formatEntryIds(drop),
  ]
}

/** Formats the metadata that `list` returns: `=` and JSON, or `-` without any. */
const formatMetadata = (entry: DerivedEntry): string =>
  entry.kind === 'about' && entry.metadata !== undefined ? `=${JSON.stringify(entry.metadata)}` : '-'

/** Formats ids as pairs of an id and the sequence number of a message, which is empty for a derived entry. */
export const formatEntryIds = (ids: readonly string[]): readonly string[] =>
  ids.flatMap((id) => [formatName(id), formatSequence(id)])

const formatSequence = (id: string): string => String(parseMessageId(id) ?? '')
