import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { type Derived, type Message, messageId, type Role, type Said, type ToolCall } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { Gap, Listed } from '../../domain/session.ts'

/** A session as its table holds it. */
export type SessionRow = {
  id: number
  readonly epoch: number
  revision: number
  stamp: number
  removals: number
  /** How often derived entries changed. */
  learnt: number
  readonly started: number
  touched: number
  expires: number
  messages: number
  last: number
  weight: number
  asked: number | null
  gaps: readonly Gap[]
}

/** Columns with the short name of their table. */
export const columnsOf = (table: string, columns: string): string => columns.replaceAll(/"?\w+"?/g, `${table}.$&`)

type Cell = null | number | string | Uint8Array
export type Cells = readonly Cell[]

/** The columns of a session in the order `sessionOf` takes them. */
export const sessionColumns =
  'id, epoch, revision, stamp, removals, learnt, started, touched, expires, messages, last, weight, asked, gaps'

export function sessionOf(cells: Cells): SessionRow {
  const [id, epoch, revision, stamp, removals, learnt, started, touched, expires, messages, last, weight] =
    cells as number[]
  return {
    id,
    epoch,
    revision,
    stamp,
    removals,
    learnt,
    started,
    touched,
    expires,
    messages,
    last,
    weight,
    asked: cells[12],
    gaps: gapsOf(cells[13]),
  } as SessionRow
}

const none: readonly Gap[] = []

function gapsOf(text: Cell | undefined): readonly Gap[] {
  if (text === '[]') return none
  try {
    return JSON.parse(text as string) as Gap[]
  } catch (error) {
    throw new MemoryError(
      'corrupt',
      'What is kept of a session beside its messages is damaged. threadkeep doctor --repair makes it anew from them.',
      {
        cause: error,
      },
    )
  }
}

/** What a list shows of a session, in the order `listedOf` takes it after the key. */
export const listedColumns = 'scope, name, started, touched, expires, messages'

export function listedOf(cells: Cells): Listed {
  const [scope, id, startedAt, touchedAt, expiresAt, messages] = cells
  return { key: { scope, id }, startedAt, touchedAt, expiresAt, messages } as Listed
}

/** The columns of a message in the order `messageOf` takes them. */
export const messageColumns =
  'sequence, at, role, name, tokens, line_tokens, tokenizer, weight, "offset", calls, answers, content, sum'

/** A message as its row, from the sequence number on. */
export function messageCells(said: Said, sequence: number, offset: number): Cell[] {
  const { at, role, name = null, tokens, lineTokens, tokenizer, weight, answers = null, content } = said
  const calls = said.calls === undefined ? null : JSON.stringify(said.calls)
  const cells = [sequence, at, role, name, tokens, lineTokens, tokenizer, weight, offset, calls, answers, content]
  return [...cells, sumOf(cells)]
}

/** The message behind a row; undefined if the row is not what was once written. */
export function messageOf(cells: Cells): Message | undefined {
  const [sequence, at, role, name, tokens, lineTokens, tokenizer, weight, offset, calls, answers, content, sum] =
    cells as [
      ...[
        number,
        number,
        Role,
        string | null,
        number,
        number,
        string,
        number,
        number,
        string | null,
        string | null,
        string,
        number,
      ],
    ]
  if (sum !== sumOf(cells.slice(0, -1))) return undefined
  return Object.freeze({
    at,
    role,
    ...(name === null ? {} : { name }),
    content,
    ...(calls === null ? {} : { calls: JSON.parse(calls) as ToolCall[] }),
    ...(answers === null ? {} : { answers }),
    tokens,
    lineTokens,
    tokenizer,
    weight,
    kind: 'message',
    id: messageId(sequence),
    sequence,
    offset,
  })
}

/** A checksum of what a row says: a disk may give back other bytes than it was given, without a word. */
const sumOf = (cells: Cells): number => crc32(cells.join(' '))

/** The columns of a derived entry in the order `derivedOf` takes them. */
export const derivedColumns = 'id, kind, at, body, sum'

export function derivedCells({ id, kind, at, ...rest }: Derived): Cell[] {
  const body = JSON.stringify(rest)
  return [id, kind, at, body, sumOf([id, kind, at, body])]
}

/** The derived entry behind a row; undefined if the row is not what was once written. */
export function derivedOf(cells: Cells): Derived | undefined {
  const [id, kind, at, body, sum] = cells
  if (sum !== sumOf([id, kind, at, body] as Cells)) return undefined
  return { kind, id, at, ...(JSON.parse(body as string) as object) } as Derived
}

/** What is kept of a name once it must not be readable any more. */
export const digestOf = (name: string): Uint8Array => createHash('sha256').update(name).digest()
export const digestOfKey = (key: Key): Uint8Array => digestOf(formatKey(key))
