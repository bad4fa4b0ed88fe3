import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { measureMessage } from '../context/measureMessage.ts'
import type { NewMessage } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import type { Clock, Tokenizer } from '../domain/ports.ts'
import { runInSlices } from '../domain/work.ts'
import type { SecretMasker } from '../memory/secretMasker.ts'
import type { ChunkBatch, FileCatalog } from './catalog.ts'
import { type Chunk, ChunkBuilder, formatChunk } from './chunk.ts'
import { FileFields } from './fields.ts'
import { decodeTextInSteps, type FileKind, parseCharset, type Upload } from './kind.ts'
import type { Reader } from './reader.ts'
import type { SegmentBatch } from './readerProcess.ts'
import type { FileInfo } from './record.ts'

type IndexerDeps = {
  readonly catalog: FileCatalog
  readonly reader: Reader
  readonly tokenizer: Tokenizer
  readonly secretMasker: SecretMasker | undefined
  readonly clock: Clock
}

/** A registered file to be indexed. */
export type IndexJob = {
  readonly key: Key
  readonly id: string
  readonly name: string
  readonly kind: FileKind
  readonly upload: Upload
}

/** Parses files and stores their text in chunks. */
export class Indexer {
  private readonly deps: IndexerDeps

  constructor(deps: IndexerDeps) {
    this.deps = deps
  }

  /** Indexes a file. On failure its chunks are erased and its record names the error. */
  async index(job: IndexJob, onProgress: (info: FileInfo) => void): Promise<FileInfo> {
    const { catalog, secretMasker } = this.deps
    const { key, id } = job
    try {
      return await this.storeChunks(job, onProgress)
    } catch (error) {
      const why = error instanceof MemoryError ? error.message : 'The file could not be stored. Upload it again.'
      // If the store fails here too, a later cleanUp marks the file as failed.
      await catalog.fail(key, id, why).catch(() => undefined)
      throw error
    } finally {
      // Secrets of files are never revealed, so their values need not be kept.
      secretMasker?.drop(key.scope, key.id)
    }
  }

  private async storeChunks(
    { key, id, name, kind, upload }: IndexJob,
    onProgress: (info: FileInfo) => void,
  ): Promise<FileInfo> {
    const { catalog, reader, tokenizer } = this.deps
    if ((await catalog.claim(key, id)) === undefined) throw removedError()
    const source = await this.maskSource(key, kind, upload)
    // Renewed, because masking may have taken as long as reading.
    let info = await catalog.claim(key, id)
    if (info === undefined) throw removedError()
    const builder = new ChunkBuilder((text) => tokenizer.count(text))
    let charsRead = 0
    for await (const batch of reader.read(kind, source)) {
      const chunks: NewMessage[] = []
      let unlabelled = 0
      for (const chunk of buildChunks(builder, batch)) {
        chunks.push(await this.toMessage(key, name, chunk, batch.hasFields))
        if (chunk.location === '') unlabelled++
        charsRead += chunk.body.length
        await yieldToEventLoop()
      }
      const progress = progressAfter(batch, info.done + chunks.length, charsRead)
      info = await catalog.appendChunks(key, id, { chunks, unlabelled, progress })
      if (info === undefined) throw removedError()
      onProgress(info)
    }
    return info
  }

  /**
   * Masks JSON and tables before they are parsed: quotes, names of outer fields and column names mark secrets, and the
   * parsed lines lack them. The file is read once before, so that the limits apply first.
   */
  private async maskSource(key: Key, kind: FileKind, upload: Upload): Promise<Upload> {
    const { secretMasker } = this.deps
    if (secretMasker === undefined || (kind !== 'json' && kind !== 'csv')) return upload
    const hasFields = await this.readHasFields(kind, upload)
    const text = await runInSlices(decodeTextInSteps(upload.bytes, parseCharset(upload.type)), yieldToEventLoop)
    const masked = hasFields
      ? await secretMasker.maskDocument(key, text, await runInSlices(FileFields.locate(kind, text), yieldToEventLoop))
      : await secretMasker.maskText(key, text)
    return masked === text ? upload : { name: upload.name, bytes: new TextEncoder().encode(masked) }
  }

  /** Reads a file up to its first batch. */
  private async readHasFields(kind: FileKind, upload: Upload): Promise<boolean> {
    for await (const { hasFields } of this.deps.reader.read(kind, upload)) return hasFields
    return false
  }

  /** Converts a chunk to a message with masked secrets. */
  private async toMessage(key: Key, name: string, chunk: Chunk, hasFields: boolean): Promise<NewMessage> {
    const { secretMasker, tokenizer, clock } = this.deps
    const mask = async (text: string): Promise<string> => (await secretMasker?.maskText(key, text)) ?? text
    const maskLines = async (text: string): Promise<string> => (await secretMasker?.maskLines(key, text)) ?? text
    // Masked separately: a heading does not label the first words below it, nor a field those of the next one.
    const body = hasFields ? await maskLines(chunk.body) : await mask(chunk.body)
    const content = formatChunk({ location: await mask(chunk.location), body })
    return measureMessage(tokenizer, { at: clock(), role: 'tool', name, content })
  }
}

/** Yields the chunks that a batch completes. */
function* buildChunks(builder: ChunkBuilder, { segments, isLast }: SegmentBatch): Generator<Chunk> {
  for (const segment of segments) yield* builder.add(segment)
  if (isLast) yield* builder.flush()
}

/** Estimates the total number of chunks from those built so far. */
function progressAfter({ characters, isLast }: SegmentBatch, done: number, charsRead: number): ChunkBatch['progress'] {
  return {
    characters,
    chunks: isLast || charsRead === 0 ? done : Math.ceil((done * characters) / charsRead),
    status: isLast ? 'ready' : 'indexing',
  }
}

const removedError = (): MemoryError =>
  new MemoryError('erased', 'The file was removed while it was being indexed. Upload it again if you still need it.')
