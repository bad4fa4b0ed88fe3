import {
  type Entry,
  formatMessageId,
  getEntryText,
  internalKinds,
  type Millis,
  parseMessageId,
} from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import type { EntryVector, SearchTarget, StoredVector, UnembeddedPage } from '../../domain/ports.ts'
import type { IndexedVector } from '../../search/vectorIndex.ts'
import type { Database } from './database.ts'
import type { BatchReader } from './reader.ts'
import { type DerivedCells, formatBody, parseDerived } from './rows.ts'
import { escapeText, unescapeText } from './text.ts'

type VectorsAnswer = {
  readonly next: number
  readonly vectors: readonly (readonly [name: string, id: string, kind: Entry['kind'], at: Millis, data: string])[]
}

/** Reads vectors that were stored after a stamp. */
export async function listVectors(
  reader: BatchReader,
  { scope, id }: SearchTarget,
  { model, after, limit }: { readonly model: string; readonly after: number; readonly limit: number },
): Promise<{ readonly vectors: readonly IndexedVector[]; readonly next: number }> {
  const request = { read: 'vectors', model: escapeText(model), after, limit, ...(id !== undefined && { name: id }) }
  const { next, vectors } = await reader.read<VectorsAnswer>(scope, request)
  return {
    next,
    vectors: vectors.map(([name, entry, kind, at, data]) => ({
      key: { scope, id: name } as Key,
      id: unescapeText(entry),
      kind,
      at,
      values: toFloats(data),
    })),
  }
}

export async function readVector(
  reader: BatchReader,
  { scope, id: name }: Key,
  id: string,
): Promise<StoredVector | undefined> {
  const request = { read: 'vector', name, id: escapeText(id) }
  const row = await reader.read<readonly [model: string, data: string] | null>(scope, request)
  return row === null ? undefined : { model: unescapeText(row[0]), values: toFloats(row[1]) }
}

/** Stores vectors of entries that still have the same text. Resolves to their number. */
export async function storeVectors(
  database: Database,
  reader: BatchReader,
  model: string,
  vectors: readonly EntryVector[],
): Promise<number> {
  const inputs = await Promise.all(vectors.map((vector) => describeVector(reader, vector)))
  const valid = inputs.filter((input) => input !== undefined)
  if (valid.length === 0) return 0
  return database.call<number>('store_vectors', [escapeText(model), JSON.stringify(valid)], 'always')
}

/**
 * The database compares the text of a message itself. The text of a derived entry is computed here, and the database
 * compares its body. Undefined if the text has changed.
 */
async function describeVector(reader: BatchReader, vector: EntryVector): Promise<object | undefined> {
  const { key, id, epoch, text, values } = vector
  const data = Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString('base64')
  const input = { scope: key.scope, name: key.id, epoch, id: escapeText(id), dimensions: values.length, data }
  if (parseMessageId(id) !== undefined) return { ...input, content: escapeText(text) }
  const request = { read: 'entries', entries: [[key.id, escapeText(id)]] }
  const [answer] = await reader.read<readonly ({ readonly derived?: DerivedCells } | null)[]>(key.scope, request)
  const entry = answer?.derived && parseDerived(answer.derived)
  return entry !== undefined && getEntryText(entry) === text ? { ...input, body: formatBody(entry) } : undefined
}

type UnembeddedCells = readonly [
  scope: string,
  name: string,
  epoch: number,
  session: number,
  place: number,
  ...entry: readonly [content: string] | DerivedCells,
]
type Position = {
  readonly in: 'message' | 'derived'
  readonly scope: string
  readonly session: number
  readonly place: number
}

/** Lists messages first, then derived entries. A cursor is the JSON of a position. */
export async function listUnembedded(
  database: Database,
  model: string,
  after: string,
  limit: number,
): Promise<UnembeddedPage> {
  const position = after === '' ? startOf('message') : (JSON.parse(after) as Position)
  const request = JSON.stringify({ ...position, limit, hidden: internalKinds })
  const rows = await database.call<readonly UnembeddedCells[]>(
    'list_unembedded',
    [escapeText(model), request],
    'always',
  )
  const isMessage = position.in === 'message'
  const entries = rows.map(([scope, name, epoch, , place, ...cells]) => ({
    key: { scope, id: name } as Key,
    epoch,
    ...(isMessage
      ? { id: formatMessageId(place), text: unescapeText(cells[0]) }
      : describeDerived(cells as unknown as DerivedCells)),
  }))
  const last = rows.at(-1)
  if (last === undefined || rows.length < limit)
    return { entries, next: isMessage ? JSON.stringify(startOf('derived')) : undefined }
  const [scope, , , session, place] = last
  return { entries, next: JSON.stringify({ in: position.in, scope, session, place } satisfies Position) }
}

const startOf = (table: Position['in']): Position => ({ in: table, scope: '', session: 0, place: 0 })

function describeDerived(cells: DerivedCells): { readonly id: string; readonly text: string } {
  const entry = parseDerived(cells)
  return { id: entry.id, text: getEntryText(entry) }
}

export const countVectors = (database: Database, model: string): Promise<{ done: number; total: number }> =>
  database.call('count_vectors', [escapeText(model), JSON.stringify(internalKinds)], 'always')

function toFloats(base64: string): Float32Array {
  // A copy of its own is aligned.
  const bytes = Uint8Array.from(Buffer.from(base64, 'base64'))
  return new Float32Array(bytes.buffer, 0, bytes.byteLength >> 2)
}
