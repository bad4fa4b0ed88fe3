import { wellFormed } from '../domain/chat.ts'
import { MemoryError } from '../domain/error.ts'
import type { Embedder } from '../domain/ports.ts'
import { clip } from '../text/clip.ts'
import { upperBound } from '../text/upperBound.ts'
import { endpoint } from './address.ts'
import { readText } from './body.ts'
import { reported } from './failure.ts'
import { at, listAt, parseJson } from './json.ts'
import type { Access } from './openai.ts'
import { type Answer, post } from './request.ts'

/** How to reach an embedding model; `dimensions` asks for shorter vectors than it makes by itself, where it can. */
export type EmbedderAccess = Access & { readonly dimensions?: number | undefined }

/** OpenAI's models refuse texts of more than 8,192 tokens. */
const mostTokens = 8_000
/** The most one vector may take in an answer: far more than any model's. */
const mostBytes = 1_048_576
const check = { address: 'baseUrl', key: 'apiKey' }

/**
 * An embedder behind OpenAI's embeddings, or behind any server that speaks them, such as Ollama, llama.cpp or vLLM. Of a
 * text of more than 8,000 tokens its beginning is embedded.
 *
 * @example
 * const memory = await openMemory({ embedder: openaiEmbedder({ apiKey, model: 'text-embedding-3-small' }) })
 */
export function openaiEmbedder(access: EmbedderAccess): Embedder {
  const { model, dimensions, timeouts, wait } = access
  if (dimensions !== undefined && !(Number.isSafeInteger(dimensions) && dimensions >= 1)) {
    throw new MemoryError('bad-option', `dimensions is ${dimensions}; it must be a whole number, 1 or more.`, {
      param: 'dimensions',
    })
  }
  const url = endpoint(access.baseUrl ?? 'https://api.openai.com/v1', '/embeddings')
  const key = access.apiKey?.trim() ?? ''
  const headers = {
    accept: 'application/json',
    ...(key === '' ? {} : { authorization: `Bearer ${key}` }),
    ...access.headers,
  }
  return {
    name: dimensions === undefined ? model : `${model}@${dimensions}`,
    async embed(texts, signal) {
      if (texts.length === 0) return []
      const body = { model, input: texts.map((text) => beginning(wellFormed(text))), dimensions }
      const answer = await post(url, { headers, body, model, check, signal, timeouts, wait })
      return vectorsIn(await jsonIn(answer, texts.length), texts.length, dimensions, answer.where)
    },
  }
}

/** The text, or as much of its beginning as is sure to be taken; where it is cut no character is split. */
function beginning(text: string): string {
  const isTaken = (part: string): boolean => upperBound.count(part) <= mostTokens
  if (isTaken(text)) return text
  let [taken, refused] = [0, text.length]
  // A little less than could be had does no harm; counting is what takes time.
  while (refused - taken > 64) {
    const middle = (taken + refused) >> 1
    if (isTaken(clip(text, middle, ''))) taken = middle
    else refused = middle
  }
  return clip(text, taken, '')
}

async function jsonIn({ where, body }: Answer, count: number): Promise<unknown> {
  const text = await readText(body, count * mostBytes)
  if (text === undefined) throw notVectors(where, `more than ${count * mostBytes} bytes`)
  const json = parseJson(text)
  if (json === undefined) throw notVectors(where, 'something that is not JSON')
  const failure = reported(where, json)
  if (failure !== undefined) throw failure
  return json
}

/** The vectors in the order of their texts, which servers that work on several at once may not keep. */
function vectorsIn(
  json: unknown,
  count: number,
  dimensions: number | undefined,
  where: string,
): readonly Float32Array[] {
  const items = listAt(json, 'data')
  const vectors = new Map(items.map((item, place) => [at(item, 'index') ?? place, valuesOf(at(item, 'embedding'))]))
  if (items.length !== count) throw notVectors(where, `${items.length} vectors for ${count} texts`)
  const length = dimensions ?? vectors.get(0)?.length
  return Array.from({ length: count }, (_, place) => {
    const values = vectors.get(place)
    if (values === undefined) throw notVectors(where, `no vector of finite numbers for text ${place}`)
    if (values.length !== length)
      throw notVectors(where, `a vector of ${values.length} numbers where ${length} were expected`)
    return values
  })
}

/** A vector as numbers or, as some servers prefer, as the bytes of 32-bit ones in base64; undefined for anything else. */
function valuesOf(embedding: unknown): Float32Array | undefined {
  const values =
    typeof embedding === 'string'
      ? fromBase64(embedding)
      : Array.isArray(embedding)
        ? Float32Array.from(embedding, asNumber)
        : undefined
  return values !== undefined && values.length > 0 && values.every(Number.isFinite) ? values : undefined
}

const asNumber = (value: unknown): number => (typeof value === 'number' ? value : Number.NaN)

function fromBase64(text: string): Float32Array {
  const bytes = Buffer.from(text, 'base64')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  // The bytes are the lower ones first, whatever this machine's are.
  return bytes.byteLength % 4 === 0
    ? Float32Array.from({ length: bytes.byteLength / 4 }, (_, place) => view.getFloat32(place * 4, true))
    : new Float32Array(0)
}

const notVectors = (where: string, what: string): MemoryError =>
  new MemoryError('upstream', `${where} sent ${what}. Check that the address and the model are those of an embedder.`)
