import type { IncomingMessage } from 'node:http'
import { isObject } from '../domain/checks.ts'
import { Refusal } from './problem.ts'

/** The JSON object a request carries, of at most `limit` bytes. */
export async function readJson(request: IncomingMessage, limit: number): Promise<Record<string, unknown>> {
  // Asking for this type also keeps web pages out: a browser lets no foreign page send it unasked.
  if (!/^application\/json\b/i.test(request.headers['content-type'] ?? '')) {
    throw new Refusal(415, 'unsupported_media_type', 'The body must be JSON, sent with the header content-type: application/json.')
  }
  const value = parsed(await readBytes(request, limit))
  if (!isObject(value)) throw new Refusal(400, 'invalid_body', 'The body must be a JSON object such as { "model": "…", "messages": [ … ] }.')
  return value
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    // The platform's own message would quote the body.
    throw new Refusal(400, 'invalid_json', 'The body is not valid JSON in UTF-8.')
  }
}

/** A body that is somewhat too large is read to its end, so that the client hears why; one far too large is not. */
async function readBytes(request: IncomingMessage, limit: number): Promise<Uint8Array> {
  const most = limit * 4
  const tooLarge = new Refusal(413, 'body_too_large', `The body is larger than ${limit} bytes.`)
  if (Number(request.headers['content-length'] ?? 0) > most) throw tooLarge
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > most) throw tooLarge
    if (size <= limit) chunks.push(chunk)
  }
  if (size > limit) throw tooLarge
  return Buffer.concat(chunks)
}
