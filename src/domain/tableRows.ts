import { checkOptions, type OptionChecks } from './checkOptions.ts'
import type { Json } from './entry.ts'
import { anyValue, checkOption, MemoryError } from './error.ts'
import type { RowRange, TableKey, TableRow, TableWrite } from './ports.ts'
import { exceedsDepth } from './stringify.ts'

/** Stored form of a row's value: JSON text, or bytes. */
export type PackedValue = string | Uint8Array

/** Largest value that `Memory.table` and imports accept: bytes, or UTF-8 bytes of the JSON. */
export const maxRowValueBytes = 16_000_000
/** Deepest nesting of a value. */
const maxRowValueDepth = 200

/** Returns a copy of a value for storage. Throws `bad-option` for a value that is neither JSON nor bytes. */
export function packValue(value: Json | Uint8Array): PackedValue {
  if (value instanceof Uint8Array) return Uint8Array.from(value)
  const isShallow = !exceedsDepth(value, maxRowValueDepth)
  const packed = isShallow ? JSON.stringify(value) : undefined
  const shown = isShallow ? value : '…'
  checkOption(
    'value',
    shown,
    packed !== undefined,
    `a Uint8Array, or JSON nested at most ${maxRowValueDepth} levels deep`,
  )
  return packed as string
}

export const unpackValue = (value: PackedValue): TableRow['value'] =>
  typeof value === 'string' ? (JSON.parse(value) as Json) : Uint8Array.from(value)

const maxParts = 16
const maxPartCharacters = 256
const maxKeyCharacters = 512

const isText = (value: unknown, maxCharacters: number): value is string =>
  typeof value === 'string' && value !== '' && value.length <= maxCharacters

/** Throws `bad-option` unless a namespace has at most 16 parts of 1 to 256 characters without U+0000. */
const checkNamespace = (namespace: readonly string[], param = 'namespace'): void =>
  checkOption(
    param,
    namespace,
    Array.isArray(namespace) &&
      namespace.length <= maxParts &&
      namespace.every((part) => isText(part, maxPartCharacters) && !part.includes('\0')),
    `a list of at most ${maxParts} texts of 1 to ${maxPartCharacters} characters without U+0000`,
  )

/** Throws `bad-option` unless a row can have this name. */
export function checkTableKey({ namespace, key }: TableKey): void {
  checkNamespace(namespace)
  checkOption('key', key, isText(key, maxKeyCharacters), `a text of 1 to ${maxKeyCharacters} characters`)
}

const writeChecks: OptionChecks<TableWrite> = {
  namespace: anyValue,
  key: anyValue,
  value: anyValue,
  expected: anyValue,
  createdAt: anyValue,
}
const rangeChecks: OptionChecks<RowRange> = { prefix: anyValue, after: anyValue, limit: anyValue }

/** Throws `bad-option` for unknown fields and invalid names, and for a row that is written twice. */
export function checkTableWrites(writes: readonly TableWrite[]): void {
  const names = new Set<string>()
  for (const write of writes) {
    checkOptions('writeRows', write, writeChecks)
    checkTableKey(write)
    names.add(formatTableKey(write))
  }
  checkOption('writes', writes.length, names.size === writes.length, 'writes of different rows')
}

/** Throws `bad-option` for unknown options and invalid names. */
export function checkRowRange(range: RowRange): void {
  checkOptions('listRows', range, rangeChecks)
  checkNamespace(range.prefix, 'prefix')
  if (range.after !== undefined) checkTableKey(range.after)
}

/** Throws `conflict` unless a row has the expected revision; 0 is the revision of a row that does not exist. */
export function checkExpectedRevision(write: TableWrite, revision: number): void {
  const { expected } = write
  if (expected === undefined || expected === revision) return
  throw new MemoryError(
    'conflict',
    `Row ${describeTableKey(write)} is at revision ${revision}, not ${expected}; nothing was written. Read it again and retry.`,
  )
}

/**
 * Formats the name of a row so that names sort by UTF-16 code units as rows do: each part of the namespace ends with
 * U+0000, and an empty part precedes the key.
 */
export const formatTableKey = ({ namespace, key }: TableKey): string => `${formatNamespace(namespace)}\0${key}`

/** Returns the text that the formatted names of all rows begin with whose namespace begins with `prefix`. */
export const formatNamespace = (prefix: readonly string[]): string => prefix.map((part) => `${part}\0`).join('')

/** Formats the name of a row for people and bundles, as a JSON list of the parts of the namespace and the key. */
export const describeTableKey = ({ namespace, key }: TableKey): string => JSON.stringify([...namespace, key])

/** Parses the result of `describeTableKey`. */
export function parseDescribedKey(text: string): TableKey {
  const parts = JSON.parse(text) as string[]
  return { namespace: parts.slice(0, -1), key: parts.at(-1) as string }
}

/** Parses the result of `formatTableKey`. */
export function parseTableKey(name: string): TableKey {
  const parts = name.split('\0')
  const end = parts.indexOf('')
  return { namespace: parts.slice(0, end), key: parts.slice(end + 1).join('\0') }
}

/** Returns the smallest text above all formatted names that begin with `formatNamespace(prefix)`. */
export const endOfNamespace = (prefix: readonly string[]): string =>
  prefix.length === 0 ? '\uffff'.repeat(maxPartCharacters + 1) : `${formatNamespace(prefix).slice(0, -1)}\u0001`
