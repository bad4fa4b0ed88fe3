import { MemoryError } from '../domain/error.ts'
import { parseJson } from '../text/json.ts'
import { findReportedError } from './errors.ts'
import { findJsonFault, replyLimits } from './jsonStructure.ts'
import type { ModelOptions } from './openai.ts'
import { type ModelResponse, readText } from './request.ts'

/** Limit of the response per requested vector; far more than any model needs. */
const maxBytesPerVector = 1_048_576

const maxValuesPerVector = 65_536

/** Throws `bad-option` unless a requested vector length is valid. */
export function checkDimensions(dimensions: number | undefined): void {
  if (dimensions === undefined || (Number.isSafeInteger(dimensions) && dimensions >= 1)) return
  throw new MemoryError('bad-option', `dimensions is ${dimensions}; it must be a whole number, 1 or more.`, {
    param: 'dimensions',
  })
}

/** Reads the JSON of a response that holds `count` vectors. */
export async function readVectorJson({ url, body }: ModelResponse, count: number): Promise<unknown> {
  const maxBytes = count * maxBytesPerVector
  const text = await readText(body, maxBytes)
  if (text === undefined) throw invalidVectorsError(url, `more than ${maxBytes} bytes`)
  if (findJsonFault(text, { ...replyLimits, values: count * maxValuesPerVector }) !== undefined)
    throw invalidVectorsError(url, 'JSON that is nested too deeply or has too many values')
  const json = parseJson(text)
  if (json === undefined) throw invalidVectorsError(url, 'something that is not JSON')
  const error = findReportedError(url, json)
  if (error !== undefined) throw error
  return json
}

/**
 * Parses the vectors of texts 0 to `count - 1`, which a server may have sent in another order. All must have the same
 * length: `dimensions`, if given.
 */
export function parseVectors(
  embeddings: readonly (readonly [index: unknown, embedding: unknown])[],
  { count, dimensions, url }: { readonly count: number; readonly dimensions: number | undefined; readonly url: string },
): readonly Float32Array[] {
  const vectors = new Map(embeddings.map(([index, embedding]) => [index, parseVector(embedding)]))
  if (embeddings.length !== count) throw invalidVectorsError(url, `${embeddings.length} vectors for ${count} texts`)
  const length = dimensions ?? vectors.get(0)?.length
  return Array.from({ length: count }, (_, index) => {
    const vector = vectors.get(index)
    if (vector === undefined) throw invalidVectorsError(url, `no vector of finite numbers for text ${index}`)
    if (vector.length !== length)
      throw invalidVectorsError(url, `a vector of ${vector.length} numbers where ${length} were expected`)
    return vector
  })
}

/** Parses a vector sent as a list of numbers or as 32-bit floats in base64; returns undefined for anything else. */
function parseVector(embedding: unknown): Float32Array | undefined {
  const vector =
    typeof embedding === 'string'
      ? decodeBase64Floats(embedding)
      : Array.isArray(embedding)
        ? Float32Array.from(embedding, toNumber)
        : undefined
  return vector !== undefined && vector.length > 0 && vector.every(Number.isFinite) ? vector : undefined
}

const toNumber = (value: unknown): number => (typeof value === 'number' ? value : Number.NaN)

/** Decodes little-endian floats, independent of the byte order of this machine. */
function decodeBase64Floats(text: string): Float32Array {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.byteLength % 4 !== 0) return new Float32Array(0)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Float32Array.from({ length: bytes.byteLength / 4 }, (_, index) => view.getFloat32(index * 4, true))
}

const invalidVectorsError = (url: string, received: string): MemoryError =>
  new MemoryError('upstream', `${url} sent ${received}. Check that the address and the model are those of an embedder.`)

/** Headers of a request to an embedding server. */
export function createHeaders({
  apiKey = '',
  headers,
}: Pick<ModelOptions, 'apiKey' | 'headers'>): Readonly<Record<string, string>> {
  const key = apiKey.trim()
  return { accept: 'application/json', ...(key === '' ? {} : { authorization: `Bearer ${key}` }), ...headers }
}
