import { hash } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import type { Json } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'

/** Version written by this release. Older versions are migrated, newer ones are rejected. */
export const formatVersion = 1

/** Files in the folder of a session, besides its metadata. */
export const contentFiles = {
  entities: 'entities.json',
  relationships: 'relationships.json',
  transcript: 'transcript.jsonl',
} as const
export type ContentFile = keyof typeof contentFiles
export const metadataFile = 'metadata.json'

export const sessionFolder = (directory: string, workspace: string, session: string): string =>
  join(directory, 'sessions', workspace, session)
export const sharedFile = (directory: string, contentHash: string): string =>
  join(directory, 'shared', 'file_references', `${contentHash}.json`)

/** Entity of a session. The properties of a file reference are in the shared folder, under the hash of their text. */
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

/** Content of `metadata.json`. */
export type PackedMetadata = {
  readonly format: 'threadkeep-handoff'
  readonly version: number
  readonly session: string
  readonly workspace: string
  readonly created_at: string
  readonly saved_at: string
  readonly messages: number
  /** SHA-256 of each file's text before compression. */
  readonly hashes: Readonly<Record<ContentFile, string>>
}

/** Content of a session folder; `shared` maps hashes to the texts of shared files. */
export type PackedSession = {
  readonly metadata: PackedMetadata
  readonly entities: readonly PackedEntity[]
  readonly relationships: readonly PackedRelationship[]
  readonly messages: readonly PackedMessage[]
  readonly shared: ReadonlyMap<string, string>
}

export const hashText = (text: string): string => hash('sha256', text)

/** Larger files, compressed or not, are not read. */
export const maxFileBytes = 256 * 1_024 * 1_024

export const compressText = (text: string): Promise<Uint8Array> =>
  promisify<Buffer, object, Buffer>(zlib.zstdCompress)(Buffer.from(text), {
    params: { [zlib.constants.ZSTD_c_compressionLevel]: 9, [zlib.constants.ZSTD_c_checksumFlag]: 1 },
  })

export async function decompressText(bytes: Uint8Array): Promise<string> {
  return decodeText(
    await promisify<Uint8Array, object, Buffer>(zlib.zstdDecompress)(bytes, { maxOutputLength: maxFileBytes }),
  )
}

/** Decodes UTF-8. Throws on invalid bytes. */
export const decodeText = (bytes: Uint8Array): string =>
  new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)

/** Error for a session that cannot be imported; `reason` is shown beside the session's name. */
export const damagedError = (reason: string, cause?: unknown): MemoryError =>
  new MemoryError('bad-bundle', reason, { cause })
