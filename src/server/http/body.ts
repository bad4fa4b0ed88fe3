import type { IncomingMessage } from 'node:http'
import type { Millis } from '../../domain/entry.ts'
import { isObject, shortenText } from '../../domain/error.ts'
import { exceedsDepth } from '../../domain/stringify.ts'
import { runInSlices, type Work } from '../../domain/work.ts'
import {
  findJsonFault,
  findJsonFaultInSteps,
  type JsonFault,
  type JsonLimits,
  maxFieldNames,
  minScannedCharacters,
} from '../../providers/jsonStructure.ts'
import { yieldToEventLoop, yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import { HttpError } from './httpError.ts'
import { isMultipart, parseMultipart, type Upload } from './multipart.ts'

/**
 * Slowest accepted transfer of a body: at least `bytes` in each interval. The server's `requestTimeout` bounds the
 * total.
 */
export type MinTransferRate = {
  readonly intervalMs: Millis
  readonly bytes: number
  /** Starts a timer and returns a function that cancels it. */
  readonly startTimer: (after: Millis, onTimeout: () => void) => () => void
}

const defaultTransferRate: MinTransferRate = { intervalMs: 10_000, bytes: 1000, startTimer }
/** Structure of a model request: room for 10,000 messages, and for the tokens of texts to embed. */
const requestLimits: JsonLimits = { depth: 64, values: 500_000, fields: 100_000 }
/** A body up to this multiple of the limit is read to its end, so that the client sees the error. */
const readLimitFactor = 4
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Reads a JSON object of at most `limit` bytes whose structure is within `limits`. */
export async function readJson(
  request: IncomingMessage,
  limit: number,
  { limits = requestLimits, minRate }: { readonly limits?: JsonLimits; readonly minRate?: MinTransferRate } = {},
): Promise<Record<string, unknown>> {
  // Requiring this type also blocks cross-site forms: browsers do not send it without a preflight.
  if (!/^application\/json\b/i.test(request.headers['content-type'] ?? ''))
    throw new HttpError(
      415,
      'unsupported_media_type',
      'The body must be JSON, sent with the header content-type: application/json.',
    )
  checkEncoding(request)
  await afterPendingReads()
  // Most bodies arrive in one packet with their headers, and need no listeners or timers.
  const chunks = request.complete ? [takeBufferedBody(request, limit)] : await receiveBody(request, limit, minRate)
  const value = isLongBody(chunks) ? await parseLongBody(chunks, limits) : parseJsonBody(joinChunks(chunks), limits)
  if (isObject(value)) return value
  throw new HttpError(
    400,
    'invalid_body',
    'The body must be a JSON object such as { "model": "…", "messages": [ … ] }.',
  )
}

function takeBufferedBody(request: IncomingMessage, limit: number): Buffer {
  const bytes = (request.read() as Buffer | null) ?? Buffer.alloc(0)
  if (bytes.length > limit) throw bodyTooLarge(limit)
  return bytes
}

/**
 * Reads the file of a form of at most `limit` bytes. Web pages can send forms without a preflight, so the request's
 * origin must have been checked.
 */
export async function readUpload(request: IncomingMessage, limit: number, minRate?: MinTransferRate): Promise<Upload> {
  const contentType = request.headers['content-type'] ?? ''
  if (!isMultipart(contentType))
    throw new HttpError(415, 'unsupported_media_type', 'The body must be multipart/form-data with one file.')
  return parseMultipart(await readBytes(request, limit, minRate), contentType)
}

/**
 * Reads a body of at most `limit` bytes. A body somewhat over the limit is read to its end, so that the client receives
 * the error; a much larger or too slow one is left unread, with the connection open for the error response.
 */
export async function readBytes(request: IncomingMessage, limit: number, minRate?: MinTransferRate): Promise<Buffer> {
  checkEncoding(request)
  return joinChunks(await receiveBody(request, limit, minRate))
}

const joinChunks = (chunks: readonly Buffer[]): Buffer => {
  const [first] = chunks
  return chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks)
}

function receiveBody(
  request: IncomingMessage,
  limit: number,
  minRate: MinTransferRate = defaultTransferRate,
): Promise<readonly Buffer[]> {
  return new Promise((resolve, reject) => {
    const maxBytesRead = limit * readLimitFactor
    if (Number(request.headers['content-length'] ?? 0) > maxBytesRead) throw bodyTooLarge(limit)
    const chunks: Buffer[] = []
    let size = 0
    let sizeInInterval = 0
    const stop = (): void => {
      cancelTimer()
      request.off('data', onData).off('end', onEnd).off('close', fail)
    }
    const fail = (error: unknown = new Error('The client disconnected.')): void => {
      stop()
      request.pause()
      reject(error)
    }
    const checkRate = (): void => {
      if (sizeInInterval < minRate.bytes) fail(bodyTooSlow(minRate))
      else cancelTimer = minRate.startTimer(minRate.intervalMs, checkRate)
      sizeInInterval = 0
    }
    let cancelTimer = minRate.startTimer(minRate.intervalMs, checkRate)
    const onData = (chunk: Buffer): void => {
      size += chunk.length
      sizeInInterval += chunk.length
      if (size > maxBytesRead) fail(bodyTooLarge(limit))
      else if (size <= limit) chunks.push(chunk)
    }
    const onEnd = (): void => {
      stop()
      if (size > limit) reject(bodyTooLarge(limit))
      else resolve(chunks)
    }
    // The error listener stays: a later error without one would end the process.
    request.on('data', onData).on('end', onEnd).on('error', fail).on('close', fail)
    // The client may have disconnected before the listeners were added.
    if (request.destroyed) fail()
  })
}

/** Refuses compressed bodies: their size is known only after unpacking. */
function checkEncoding({ headers }: IncomingMessage): void {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? ''
  if (encoding === '' || encoding === 'identity') return
  const message = `The body has content-encoding: ${shortenText(encoding, 40)}. Send it uncompressed.`
  throw new HttpError(415, 'unsupported_media_type', message, null, { headers: { 'accept-encoding': 'identity' } })
}

/** The rest of the body stays unread, so the connection cannot be reused. */
const closeConnection = { headers: { connection: 'close' } }

const bodyTooLarge = (limit: number): HttpError =>
  new HttpError(413, 'body_too_large', `The body is larger than ${limit} bytes.`, null, closeConnection)

const bodyTooSlow = ({ bytes, intervalMs }: MinTransferRate): HttpError =>
  new HttpError(
    408,
    'request_timeout',
    `The body arrived too slowly: less than ${bytes} bytes in ${intervalMs / 1000} seconds. Try again.`,
    null,
    closeConnection,
  )

function startTimer(after: Millis, onTimeout: () => void): () => void {
  const timer = setTimeout(onTimeout, after)
  return () => clearTimeout(timer)
}

function parseJsonBody(bytes: Uint8Array, limits: JsonLimits): unknown {
  const text = decodePart(bytes, true)
  const fault = findJsonFault(text, limits)
  if (fault !== undefined) throw structureError(fault, limits)
  const value = parseJsonText(text)
  if (text.length <= minScannedCharacters && exceedsDepth(value, limits.depth)) throw structureError('depth', limits)
  return value
}

/** Larger bodies are decoded, scanned and parsed in separate turns of the event loop. */
const maxShortBodyBytes = 524_288

const isLongBody = (chunks: readonly Buffer[]): boolean =>
  chunks.reduce((size, chunk) => size + chunk.length, 0) > maxShortBodyBytes

async function parseLongBody(chunks: readonly Buffer[], limits: JsonLimits): Promise<unknown> {
  await yieldToEventLoop()
  const text = await runInSlices(decodeInSteps(chunks), yieldWhenLong)
  await yieldToEventLoop()
  const fault = await runInSlices(findJsonFaultInSteps(text, limits), yieldWhenLong)
  if (fault !== undefined) throw structureError(fault, limits)
  await yieldToEventLoop()
  const value = parseJsonText(text)
  await yieldToEventLoop()
  return value
}

/** Bytes decoded in a step. */
const stepBytes = 1_048_576
/** A byte order mark is only one at the start of the body. */
const utf8Rest = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes UTF-8 in steps, without a copy of the whole body. */
function* decodeInSteps(chunks: readonly Buffer[]): Work<string> {
  const texts: string[] = []
  let pending: Buffer[] = []
  let size = 0
  for (const chunk of chunks) {
    pending.push(chunk)
    size += chunk.length
    if (size < stepBytes) continue
    const bytes = joinChunks(pending)
    const end = startOfLastCharacter(bytes)
    texts.push(decodePart(bytes.subarray(0, end), texts.length === 0))
    pending = [bytes.subarray(end)]
    size = bytes.length - end
    yield Number.POSITIVE_INFINITY
  }
  texts.push(decodePart(joinChunks(pending), texts.length === 0))
  yield Number.POSITIVE_INFINITY
  return texts.join('')
}

const decodePart = (bytes: Uint8Array, isFirst: boolean): string =>
  orInvalidJson(() => (isFirst ? utf8 : utf8Rest).decode(bytes))

/** Start of the last character, which may continue in the next chunk. Characters have up to 4 bytes. */
function startOfLastCharacter(bytes: Uint8Array): number {
  let start = bytes.length - 1
  while (start > bytes.length - 4 && ((bytes[start] as number) & 0xc0) === 0x80) start--
  return start
}

const parseJsonText = (text: string): unknown => orInvalidJson(() => JSON.parse(text))

/** The platform's message would quote the body. */
function orInvalidJson<T>(parse: () => T): T {
  try {
    return parse()
  } catch {
    throw new HttpError(400, 'invalid_json', 'The body is not valid JSON in UTF-8.')
  }
}

function structureError(fault: JsonFault, { depth, values, fields }: JsonLimits): HttpError {
  if (fault === 'depth')
    return new HttpError(400, 'too_deep', `The body is nested deeper than ${depth} levels. Send deep data as text.`)
  if (fault === 'digits')
    return new HttpError(400, 'invalid_number', 'The body contains a number of thousands of digits. Send it as text.')
  if (fault === 'names')
    return new HttpError(
      413,
      'too_many_values',
      `The body contains more than ${maxFieldNames} different field names. Send names as values, or large data as text.`,
    )
  return new HttpError(
    413,
    'too_many_values',
    `The body contains more than ${values} values or ${fields} fields. Send less at once, or large data as text.`,
  )
}

/**
 * Resolves once the event loop has processed all input that has arrived by now; concurrent callers share one promise.
 * Requests and stream chunks that arrived together then run through each step together, which keeps code and data in
 * the processor's caches: a fifth less CPU per request at 32 connections, no difference at one. A request with less
 * work may overtake one that arrived with it.
 */
export function afterPendingReads(): Promise<void> {
  pendingReads ??= new Promise((resolve) => {
    setImmediate(() => {
      pendingReads = undefined
      resolve()
    })
  })
  return pendingReads
}

let pendingReads: Promise<void> | undefined

/** A Buffer over the same memory. */
export const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
