import { replaceLoneSurrogates } from '../domain/chat.ts'
import { MemoryError } from '../domain/error.ts'
import type { Embedder } from '../domain/ports.ts'
import { clip } from '../text/clip.ts'
import { getArray, getPath, parseJson } from '../text/json.ts'
import { upperBound } from '../text/upperBound.ts'
import { findReportedError, type SettingNames } from './errors.ts'
import type { ModelOptions } from './openai.ts'
import { type ModelResponse, post, readText } from './request.ts'
import { buildEndpointUrl } from './url.ts'

/** Connection to an embedding model. */
export type EmbedderOptions = ModelOptions & {
  /** Requests vectors of this length, for models that support it. Default: the model's own length. */
  readonly dimensions?: number | undefined
}

/** OpenAI's models reject texts of more than 8,192 tokens. */
const maxTextTokens = 8_000
/** Limit of the response per requested vector; far more than any model needs. */
const maxBytesPerVector = 1_048_576
/** Length difference at which the search for the cut stops: counting tokens costs more than a few characters gain. */
const cutPrecisionChars = 64
const settings: SettingNames = { baseUrl: 'baseUrl', apiKey: 'apiKey' }

/**
 * Creates an embedder that uses OpenAI's embeddings API, at OpenAI or at a compatible server such as Ollama, llama.cpp
 * or vLLM. Texts of more than 8,000 tokens are cut.
 *
 * @throws MemoryError `bad-option` for invalid `dimensions` or `baseUrl`. `embed` throws `upstream`, `timeout` or
 * `aborted`.
 *
 * @example
 * const memory = await openMemory({ embedder: openaiEmbedder({ apiKey, model: 'text-embedding-3-small' }) })
 */
export function openaiEmbedder(options: EmbedderOptions): Embedder {
  const { model, dimensions } = options
  if (dimensions !== undefined && !(Number.isSafeInteger(dimensions) && dimensions >= 1)) {
    throw new MemoryError('bad-option', `dimensions is ${dimensions}; it must be a whole number, 1 or more.`, {
      param: 'dimensions',
    })
  }
  const url = buildEndpointUrl(options.baseUrl ?? 'https://api.openai.com/v1', '/embeddings')
  const apiKey = options.apiKey?.trim() ?? ''
  const headers = {
    accept: 'application/json',
    ...(apiKey === '' ? {} : { authorization: `Bearer ${apiKey}` }),
    ...options.headers,
  }
  return {
    name: dimensions === undefined ? model : `${model}@${dimensions}`,
    async embed(texts, signal) {
      if (texts.length === 0) return []
      const body = { model, input: texts.map((text) => cutToLimit(replaceLoneSurrogates(text))), dimensions }
      const response = await post(url, { ...options, headers, body, settings, signal })
      return parseVectors(await readJson(response, texts.length), texts.length, dimensions, response.url)
    },
  }
}

/** Cuts a text to the token limit without splitting a character. */
function cutToLimit(text: string): string {
  const fits = (part: string): boolean => upperBound.count(part) <= maxTextTokens
  if (fits(text)) return text
  let fitting = 0
  let tooLong = text.length
  while (tooLong - fitting > cutPrecisionChars) {
    const middle = (fitting + tooLong) >> 1
    if (fits(clip(text, middle, ''))) fitting = middle
    else tooLong = middle
  }
  return clip(text, fitting, '')
}

async function readJson({ url, body }: ModelResponse, count: number): Promise<unknown> {
  const maxBytes = count * maxBytesPerVector
  const text = await readText(body, maxBytes)
  if (text === undefined) throw invalidVectorsError(url, `more than ${maxBytes} bytes`)
  const json = parseJson(text)
  if (json === undefined) throw invalidVectorsError(url, 'something that is not JSON')
  const error = findReportedError(url, json)
  if (error !== undefined) throw error
  return json
}

/** Returns the vectors in the order of their texts; servers may send them in another order. */
function parseVectors(
  json: unknown,
  count: number,
  dimensions: number | undefined,
  url: string,
): readonly Float32Array[] {
  const items = getArray(json, 'data')
  const vectors = new Map(
    items.map((item, index) => [getPath(item, 'index') ?? index, parseVector(getPath(item, 'embedding'))]),
  )
  if (items.length !== count) throw invalidVectorsError(url, `${items.length} vectors for ${count} texts`)
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
