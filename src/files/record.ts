import { type DerivedEntry, formatMessageId, type Item, type Millis, type SequenceRange } from '../domain/entry.ts'
import {
  anyText,
  type Check,
  fields,
  finiteNumber,
  integerAtLeast,
  listOf,
  MemoryError,
  oneOf,
  optional,
  rejectField,
  trueOrFalse,
} from '../domain/error.ts'
import { countExisting, type SessionHead } from '../domain/session.ts'

/** A file as listed by the API. */
export type FileInfo = {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly bytes: number
  readonly characters: number
  /** The number of chunks; an estimate while the file is being indexed. */
  readonly chunks: number
  readonly sha256: string
  readonly at: Millis
  readonly status: 'indexing' | 'ready' | 'failed'
  /** The number of chunks stored so far. */
  readonly done: number
  /** The error, when the status is `failed`. */
  readonly why?: string
}

/** Stored metadata of a file; its chunks are messages of the same session. */
export type FileRecord = {
  readonly info: FileInfo
  /** Increases with each upload; the sort key of listings. */
  readonly order: number
  /** Ranges of the chunks' sequence numbers. Several, because files that are indexed concurrently interleave. */
  readonly runs: readonly SequenceRange[]
  /** The number of leading chunks that are stored without a location line. */
  readonly unlabelledChunks: number
  /** The process that indexes the file, and when others may consider it dead. */
  readonly lease?: { readonly holder: string; readonly until: Millis }
  /** Set while the file is being deleted; it is hidden from listings. */
  readonly isDeleting?: true
}

const recordIdPrefix = 'file:'
/** More chunks than the longest text of a file has. */
const maxChunks = 100_000

/** Returns the id of the entry that stores a file's record. */
export const recordId = (id: string): string => `${recordIdPrefix}${id}`

/** Converts a record to an entry of the session that holds the chunks. */
export const toItem = (record: FileRecord): Item => ({
  kind: 'item',
  id: recordId(record.info.id),
  at: record.info.at,
  category: 'file',
  content: JSON.stringify(record),
  importance: 0,
  marked: false,
  sources: [],
})

const count = integerAtLeast(0)
/** Accepts ranges of sequence numbers in order. */
const runs: Check = (value, path) => {
  listOf(listOf(integerAtLeast(1)))(value, path)
  const numbers = (value as readonly (readonly number[])[]).map(([first = 0, last = 0]) => [first, last] as const)
  const chunks = numbers.reduce((sum, [first, last]) => sum + last - first + 1, 0)
  const isOrdered = numbers.every(([first, last], at) => first <= last && first > (numbers[at - 1]?.[1] ?? 0))
  if (!isOrdered || chunks > maxChunks) rejectField(path, value, `at most ${maxChunks} chunks in order`)
}
const checkRecord = fields<FileRecord>({
  info: fields<FileInfo>({
    id: anyText,
    name: anyText,
    type: anyText,
    bytes: count,
    characters: count,
    chunks: count,
    sha256: anyText,
    at: finiteNumber,
    status: oneOf('indexing', 'ready', 'failed'),
    done: count,
    why: optional(anyText),
  }),
  order: count,
  runs,
  unlabelledChunks: count,
  lease: optional(fields<NonNullable<FileRecord['lease']>>({ holder: anyText, until: finiteNumber })),
  isDeleting: optional(trueOrFalse),
})

/**
 * Reads the records of a tenant's files in order of upload. Entries that are not records are left out: a bundle may
 * contain any text.
 */
export const readRecords = ({ derived }: SessionHead): readonly FileRecord[] =>
  derived.flatMap((entry) => parseRecord(entry) ?? []).sort((left, right) => left.order - right.order)

function parseRecord(entry: DerivedEntry): FileRecord | undefined {
  if (entry.kind !== 'item' || entry.category !== 'file' || !entry.id.startsWith(recordIdPrefix)) return undefined
  try {
    const record: unknown = JSON.parse(entry.content)
    checkRecord(record, 'record')
    return recordId((record as FileRecord).info.id) === entry.id ? (record as FileRecord) : undefined
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof MemoryError) return undefined
    throw error
  }
}

export const findRecord = (head: SessionHead, id: string): FileRecord | undefined =>
  readRecords(head).find(({ info }) => info.id === id)

/** Yields the sequence numbers of a file's chunks in order. */
export function* chunkSequences({ runs }: FileRecord): Generator<number> {
  for (const [first, last] of runs) for (let sequence = first; sequence <= last; sequence++) yield sequence
}

export const chunkIds = (record: FileRecord): readonly string[] => [...chunkSequences(record)].map(formatMessageId)

/** Appends the chunks `first` to `last` to the runs of a file. */
export function appendRun(runs: readonly SequenceRange[], first: number, last: number): readonly SequenceRange[] {
  const previous = runs.at(-1)
  return previous !== undefined && previous[1] === first - 1
    ? [...runs.slice(0, -1), [previous[0], last]]
    : [...runs, [first, last]]
}

/** Checks that a file is indexed and that none of its chunks were erased since. */
export const isComplete = ({ info, runs }: FileRecord, { gaps }: SessionHead): boolean =>
  info.status === 'ready' &&
  runs.reduce((sum, [first, last]) => sum + countExisting(gaps, first, last), 0) === info.chunks

/** Checks that a process holds a valid lease on a file. */
export const isBeingIndexed = ({ info, lease, isDeleting }: FileRecord, now: Millis): boolean =>
  info.status === 'indexing' && isDeleting !== true && (lease?.until ?? 0) > now

/** Checks for a record or chunks that no live process will finish or clean up. */
export const isAbandoned = (record: FileRecord, now: Millis): boolean =>
  record.isDeleting === true ||
  (record.info.status === 'indexing' && !isBeingIndexed(record, now)) ||
  (record.info.status === 'failed' && record.runs.length > 0)
