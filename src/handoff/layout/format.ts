import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { constants, zstdCompress, zstdDecompress } from 'node:zlib'
import type { Json } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { canonical } from '../../portable/canonical.ts'

/** The version that is written; older ones are migrated, newer ones refused. */
export const version = 1

/** What stands in the folder of a session, besides its metadata. */
export const contents = {
  entities: 'entities.json',
  relationships: 'relationships.json',
  transcript: 'transcript.jsonl',
} as const
export const metadataFile = 'metadata.json'

/** An entity of a session; the properties of a file reference stand in the shared folder, under the hash of their text. */
export type PackedEntity = {
  readonly type: string
  readonly id: string
  readonly properties?: Readonly<Record<string, Json>>
  readonly shared?: string
}
export type PackedRelationship = {
  readonly from: string
  readonly to: string
  readonly type: string
  readonly properties: Readonly<Record<string, Json>>
}
export type PackedMessage = {
  readonly id: string
  readonly at: number
  readonly role: string
  readonly content: string
  readonly name?: string
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly arguments: string }[]
  readonly answers?: string
}

/** What tells a session apart, and whether its folder is whole. */
export type PackedMetadata = {
  readonly format: 'threadkeep-handoff'
  readonly version: number
  readonly session: string
  readonly workspace: string
  readonly created_at: string
  readonly saved_at: string
  readonly messages: number
  /** The hash of each file's text, before it is compressed. */
  readonly hashes: Readonly<Record<keyof typeof contents, string>>
}

/** A session as its folder holds it; `shared` are texts of the shared folder by their hashes. */
export type Packed = {
  readonly metadata: PackedMetadata
  readonly entities: readonly PackedEntity[]
  readonly relationships: readonly PackedRelationship[]
  readonly messages: readonly PackedMessage[]
  readonly shared: ReadonlyMap<string, string>
}

export const hashOf = (text: string): string => hash('sha256', text)

/** A list as JSON with one value a line: the same values give the same text, and a change is one line. */
export const listText = (values: readonly unknown[]): string =>
  values.length === 0 ? '[]\n' : `[\n${values.map(canonical).join(',\n')}\n]\n`
export const linesText = (values: readonly unknown[]): string => values.map((value) => `${canonical(value)}\n`).join('')

/** No file of a session is larger than this, in bytes; one that is, or claims to be, is not read. */
export const largest = 256 * 1_024 * 1_024

export const compressed = (text: string): Promise<Uint8Array> =>
  promisify<Buffer, object, Buffer>(zstdCompress)(Buffer.from(text), {
    params: { [constants.ZSTD_c_compressionLevel]: 9, [constants.ZSTD_c_checksumFlag]: 1 },
  })

export async function uncompressed(bytes: Uint8Array): Promise<string> {
  return decoded(await promisify<Uint8Array, object, Buffer>(zstdDecompress)(bytes, { maxOutputLength: largest }))
}

/** Bytes that are no text are damage, not something to guess at. */
export const decoded = (bytes: Uint8Array): string =>
  new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)

/** For a session that cannot be taken as it is; `why` names it. */
export const damaged = (why: string, cause?: unknown): MemoryError => new MemoryError('bad-bundle', why, { cause })
