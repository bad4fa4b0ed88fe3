import { type Item, type Millis, messageId, type Run } from '../domain/entry.ts'
import { countBetween, type Head } from '../domain/session.ts'

/** A file as it is listed. While it is being indexed, `chunks` is how many there will be, as far as that can be told, and `done` how many there are. */
export type FileInfo = {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly bytes: number
  readonly characters: number
  readonly chunks: number
  readonly sha256: string
  readonly at: Millis
  readonly status: 'indexing' | 'ready' | 'failed'
  readonly done: number
  /** Why it failed. */
  readonly why?: string
}

/** What is kept of a file beside its chunks. */
export type FileRecord = {
  readonly info: FileInfo
  /** Grows from file to file. */
  readonly place: number
  /** The sequence numbers of its chunks; files that are indexed at the same time lie between each other. */
  readonly runs: readonly Run[]
  /** So many chunks, the first ones, do not begin with a line that tells where they stand. */
  readonly bare: number
  /** Who is indexing it, and until when nobody else should take it for abandoned. */
  readonly lease?: { readonly holder: string; readonly until: Millis }
  /** It is being removed: nobody sees it any more. */
  readonly isGoing?: true
}

const prefix = 'file:'

/** The id of the entry a file's record is kept as. */
export const recordId = (id: string): string => `${prefix}${id}`

/** A record as an entry of the session that holds the chunks. */
export const itemOf = (record: FileRecord): Item => ({
  kind: 'item',
  id: recordId(record.info.id),
  at: record.info.at,
  category: 'file',
  content: JSON.stringify(record),
  importance: 0,
  marked: false,
  sources: [],
})

/** The records of a tenant's files, in order of upload. */
export const recordsOf = ({ derived }: Head): readonly FileRecord[] =>
  derived
    .flatMap((entry) =>
      entry.kind === 'item' && entry.category === 'file' && entry.id.startsWith(prefix)
        ? [JSON.parse(entry.content) as FileRecord]
        : [],
    )
    .sort((left, right) => left.place - right.place)

export const recordIn = (head: Head, id: string): FileRecord | undefined =>
  recordsOf(head).find(({ info }) => info.id === id)

/** The sequence numbers of a file's chunks, in order. */
export function* sequencesOf({ runs }: FileRecord): Generator<number> {
  for (const [first, last] of runs) for (let sequence = first; sequence <= last; sequence++) yield sequence
}

export const chunkIds = (record: FileRecord): readonly string[] => [...sequencesOf(record)].map(messageId)

/** The runs of a file with the chunks `first`…`last` after them. */
export function withRun(runs: readonly Run[], first: number, last: number): readonly Run[] {
  const before = runs.at(-1)
  return before !== undefined && before[1] === first - 1
    ? [...runs.slice(0, -1), [before[0], last]]
    : [...runs, [first, last]]
}

/** Whether a file can be found with all that was in it: something may have been forgotten since. */
export const isWhole = ({ info, runs }: FileRecord, { gaps }: Head): boolean =>
  info.status === 'ready' &&
  runs.reduce((sum, [first, last]) => sum + countBetween(gaps, first, last), 0) === info.chunks

/** Whether somebody is at work on a file. */
export const isUnderWay = ({ info, lease, isGoing }: FileRecord, now: Millis): boolean =>
  info.status === 'indexing' && isGoing !== true && (lease?.until ?? 0) > now

/** Whether there is something left of a file that nobody will finish or clean up. */
export const isLeftOver = (record: FileRecord, now: Millis): boolean =>
  record.isGoing === true ||
  (record.info.status === 'indexing' && !isUnderWay(record, now)) ||
  (record.info.status === 'failed' && record.runs.length > 0)
