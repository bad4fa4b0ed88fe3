import type { IncomingMessage } from 'node:http'
import { isObject } from '../../domain/checks.ts'
import type { Millis } from '../../domain/entry.ts'
import { Refusal } from './httpError.ts'
import { isMultipart, parseMultipart, type Upload } from './multipart.ts'
import { roundOver } from './pendingReads.ts'

/**
 * How slowly a body may come: in each stretch of time at least so many bytes. How long it may take altogether is the
 * server's `requestTimeout`. `alarm` rings after a while unless it is called off.
 */
export type Pace = {
  readonly stretch: Millis
  readonly bytes: number
  readonly alarm: (after: Millis, ring: () => void) => () => void
}

const usualPace: Pace = { stretch: 10_000, bytes: 1000, alarm: ringAfter }
/** No client nests deeper; code that follows nested values could be made to run out of stack. */
const deepest = 64
/** No conversation has more; to make so many of nothing but brackets and commas takes seconds, in which nobody else is served. */
const most = { values: 1_000_000, fields: 200_000 }
/** A body so small cannot hold so much, and to look at every byte of it would take as long as to parse it. */
const small = 65_536
const utf8 = new TextDecoder('utf-8', { fatal: true })
const [quote, comma, colon, backslash] = [0x22, 0x2c, 0x3a, 0x5c]
const [openBrace, openBracket, closeBrace, closeBracket] = [0x7b, 0x5b, 0x7d, 0x5d]

/** The JSON object a request carries, of at most `limit` bytes. */
export async function readJson(request: IncomingMessage, limit: number, pace?: Pace): Promise<Record<string, unknown>> {
  // Asking for this type also keeps web pages out: a browser lets no foreign page send it unasked.
  if (!/^application\/json\b/i.test(request.headers['content-type'] ?? ''))
    throw new Refusal(
      415,
      'unsupported_media_type',
      'The body must be JSON, sent with the header content-type: application/json.',
    )
  checkEncoding(request)
  // Nearly always the body comes in one piece with its head: to listen for it, against a clock, would take longer than all else before it is parsed.
  await roundOver()
  return objectIn(request.complete ? bytesAtHand(request, limit) : await received(request, limit, pace))
}

function bytesAtHand(request: IncomingMessage, limit: number): Buffer {
  const bytes = (request.read() as Buffer | null) ?? Buffer.alloc(0)
  if (bytes.length > limit) throw tooLarge(limit)
  return bytes
}

function objectIn(bytes: Buffer): Record<string, unknown> {
  const value = parsed(bytes)
  if (!isObject(value))
    throw new Refusal(
      400,
      'invalid_body',
      'The body must be a JSON object such as { "model": "…", "messages": [ … ] }.',
    )
  return value
}

/**
 * The file a form carries, of at most `limit` bytes with all that is around it. Web pages can send forms unasked: the
 * request's origin must have been checked.
 */
export async function readUpload(request: IncomingMessage, limit: number, pace?: Pace): Promise<Upload> {
  const contentType = request.headers['content-type'] ?? ''
  if (!isMultipart(contentType))
    throw new Refusal(415, 'unsupported_media_type', 'The body must be multipart/form-data with one file.')
  return parseMultipart(await readBytes(request, limit, pace), contentType)
}

/**
 * The bytes a request carries. A body that is somewhat too large is read to its end, so that the client hears why; one far
 * too large is not. When the client dawdles, too, the rest is left unread, and the connection open for an answer.
 */
export async function readBytes(request: IncomingMessage, limit: number, pace?: Pace): Promise<Buffer> {
  checkEncoding(request)
  return received(request, limit, pace)
}

function received(request: IncomingMessage, limit: number, pace: Pace = usualPace): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const most = limit * 4
    // What need not be read to be refused.
    if (Number(request.headers['content-length'] ?? 0) > most) throw tooLarge(limit)
    const chunks: Buffer[] = []
    let [size, fresh] = [0, 0]
    const leave = (): void => {
      callOff()
      request.off('data', onData).off('end', onEnd).off('close', fail)
    }
    const fail = (error: unknown = new Error('The client hung up.')): void => {
      leave()
      request.pause()
      reject(error)
    }
    const look = (): void => {
      if (fresh < pace.bytes) fail(tooSlow(pace))
      else callOff = pace.alarm(pace.stretch, look)
      fresh = 0
    }
    let callOff = pace.alarm(pace.stretch, look)
    const onData = (chunk: Buffer): void => {
      size += chunk.length
      fresh += chunk.length
      if (size > most) fail(tooLarge(limit))
      else if (size <= limit) chunks.push(chunk)
    }
    const onEnd = (): void => {
      leave()
      if (size > limit) reject(tooLarge(limit))
      else resolve(joined(chunks))
    }
    // The listener for errors stays: one that comes later must not end the process.
    request.on('data', onData).on('end', onEnd).on('error', fail).on('close', fail)
    // Gone before anybody listened.
    if (request.destroyed) fail()
  })
}

const joined = (chunks: readonly Buffer[]): Buffer =>
  chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)

/** How large a compressed body is, one learns by unpacking it. */
function checkEncoding({ headers }: IncomingMessage): void {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? ''
  if (encoding === '' || encoding === 'identity') return
  const message = `The body is sent with content-encoding: ${encoding.slice(0, 40)}. Send it as it is, not compressed.`
  throw new Refusal(415, 'unsupported_media_type', message, null, { headers: { 'accept-encoding': 'identity' } })
}

/** There may be no end to what follows, and nobody reads it. */
const goodbye = { headers: { connection: 'close' } }

const tooLarge = (limit: number): Refusal =>
  new Refusal(413, 'body_too_large', `The body is larger than ${limit} bytes.`, null, goodbye)

const tooSlow = ({ bytes, stretch }: Pace): Refusal =>
  new Refusal(
    408,
    'request_timeout',
    `The body came too slowly: less than ${bytes} bytes in ${stretch / 1000} seconds. Try again.`,
    null,
    goodbye,
  )

function ringAfter(after: Millis, ring: () => void): () => void {
  const timer = setTimeout(ring, after)
  return () => clearTimeout(timer)
}

function parsed(bytes: Uint8Array): unknown {
  if (bytes.length > small) checkShape(bytes)
  const value = jsonIn(bytes)
  if (bytes.length <= small && valueNests(value, deepest)) throw tooDeep()
  return value
}

function jsonIn(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch {
    // The platform's own message would quote the body.
    throw new Refusal(400, 'invalid_json', 'The body is not valid JSON in UTF-8.')
  }
}

const tooDeep = (): Refusal =>
  new Refusal(400, 'too_deep', `The body is nested deeper than ${deepest} levels. Send deep data as text.`)

const tooMany = (): Refusal =>
  new Refusal(
    413,
    'too_many_values',
    `The body holds more than ${most.values} values or ${most.fields} fields. Send less at once, or large data as text.`,
  )

/** Refuses JSON text that nests too deep or holds too much, without parsing it: brackets, commas and colons are counted, except in strings. */
function checkShape(bytes: Uint8Array): void {
  let [depth, values, fields] = [0, 0, 0]
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) at = endOfString(bytes, at + 1)
    else if (byte === openBrace || byte === openBracket) {
      if (++depth > deepest) throw tooDeep()
      values++
    } else if (byte === closeBrace || byte === closeBracket) depth--
    else if (byte === comma) values++
    else if (byte === colon) fields++
    if (values > most.values || fields > most.fields) throw tooMany()
  }
}

/** The place of the quote that ends a string, or the end of it all. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start
  // What follows a backslash, a quote above all, belongs to the string.
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
  return at
}

function valueNests(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  if (Array.isArray(value)) {
    for (const inner of value) if (valueNests(inner, levels - 1)) return true
    return false
  }
  // Every message of a history comes by here: a list of its fields would be made for nothing.
  for (const name in value) if (valueNests(value[name as keyof typeof value], levels - 1)) return true
  return false
}
