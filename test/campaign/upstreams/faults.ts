import { gzipSync } from 'node:zlib'
import { createResponse, encodeEventStream, encodeJsonReply } from '../../providers/protocols.ts'
import { hostileText } from '../hostile.ts'
import type { Random } from '../random.ts'

export type Protocol = 'chat' | 'responses' | 'messages'

/** The bytes of an upstream's response, one per character, and the way in which it ends. */
export type UpstreamFault = {
  readonly protocol: Protocol
  readonly isStream: boolean
  readonly bytes: string
  /** Offset after which the upstream pauses, if any. */
  readonly pauseAt?: number
  readonly ending: 'close' | 'reset' | 'hang' | 'keep'
}

const pieces = ['Once ', 'upon ', 'a time.']

/** A valid body of the protocol. */
function bodyOf(protocol: Protocol, isStream: boolean, texts: readonly string[]): string {
  if (protocol === 'responses') return isStream ? responseEvents(texts) : JSON.stringify(createResponse(texts.join('')))
  const name = protocol === 'chat' ? 'openai' : 'anthropic'
  return isStream ? encodeEventStream(name, texts, true) : encodeJsonReply(name, texts)
}

function responseEvents(texts: readonly string[]): string {
  const [item] = createResponse(texts.join('')).output
  const at = { item_id: 'msg_1', output_index: 0, content_index: 0 }
  const events = [
    { type: 'response.created', response: { ...createResponse(''), status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, content: [], status: 'in_progress' } },
    { type: 'response.content_part.added', ...at, part: { type: 'output_text', text: '', annotations: [] } },
    ...texts.map((delta) => ({ type: 'response.output_text.delta', ...at, delta })),
    { type: 'response.output_text.done', ...at, text: texts.join('') },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: createResponse(texts.join('')) },
  ]
  return events
    .map(
      (event, sequence) => `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number: sequence })}\n\n`,
    )
    .join('')
}

const toBytes = (text: string): string => Buffer.from(text).toString('latin1')
const chunk = (bytes: string): string => `${bytes.length.toString(16)}\r\n${bytes}\r\n`

/** A complete response with this body. */
export function respond(
  protocol: Protocol,
  isStream: boolean,
  { status = '200 OK', headers = '', body = toBytes(bodyOf(protocol, isStream, pieces)) } = {},
): string {
  const type = isStream ? 'text/event-stream' : 'application/json'
  const contentType = /content-type/i.test(headers) ? '' : `content-type: ${type}\r\n`
  const start = `HTTP/1.1 ${status}\r\n${contentType}${headers}`
  if (/content-length|transfer-encoding/i.test(headers)) return `${start}\r\n${body}`
  return isStream
    ? `${start}transfer-encoding: chunked\r\n\r\n${chunk(body)}0\r\n\r\n`
    : `${start}content-length: ${body.length}\r\n\r\n${body}`
}

/** A response that is cut off, damaged, mislabelled, huge, redirected or slow. */
export function createFault(random: Random): UpstreamFault {
  const protocol = random.pick(['chat', 'responses', 'messages'] as const)
  const isStream = random.chance(0.6)
  const make = (change: Parameters<typeof respond>[2] = {}): string => respond(protocol, isStream, change)
  const body = toBytes(
    bodyOf(protocol, isStream, random.chance(0.5) ? pieces : [hostileText(random, random.int(1, 2_000))]),
  )
  const valid = make({ body })
  const at = random.int(0, valid.length)
  const bytes = random.weighted<() => string>([
    [4, () => valid.slice(0, at)],
    [3, () => valid.slice(0, at) + garbage(random) + valid.slice(at)],
    [3, () => valid.slice(0, at) + garbage(random)],
    [3, () => flipBytes(valid, random)],
    [2, () => make({ body: changeEvents(body, random) })],
    [
      1,
      () =>
        make({
          body,
          headers: `content-length: ${random.pick([0, 1, body.length - 1, body.length + 50, 2 ** 40, -1])}\r\n`,
        }),
    ],
    [
      1,
      () =>
        make({
          body,
          headers: `content-type: ${random.pick(['text/html', 'text/plain', 'image/png', '', 'application/x-ndjson', '\x7f'])}\r\n`,
        }),
    ],
    [
      1,
      () =>
        make({
          body: gzipSync(Buffer.alloc(random.pick([10, 50_000_000]), 'a')).toString('latin1'),
          headers: 'content-encoding: gzip\r\n',
        }),
    ],
    [
      0.5,
      () =>
        make({ body, headers: `content-encoding: ${random.pick(['gzip', 'br', 'zstd', 'nope', 'gzip, gzip'])}\r\n` }),
    ],
    [
      1,
      () =>
        make({
          body,
          status: random.pick(['204 No Content', '206 Partial', '201 Created', '299 x', '304 Not Modified']),
        }),
    ],
    [
      1,
      () =>
        make({
          body,
          status: random.pick(['301 Moved', '302 Found', '307 Temporary', '308 Permanent']),
          headers: `location: ${random.pick(['/v1/x', 'http://127.0.0.1:9/', 'file:///etc/passwd', ''])}\r\n`,
        }),
    ],
    [
      1,
      () =>
        make({
          body: '{"error":{"message":"no"}}',
          status: random.pick(['400 x', '401 x', '404 x', '429 x', '500 x', '503 x', '529 x', '999 x']),
        }),
    ],
    [
      1,
      () =>
        `HTTP/1.1 ${random.pick(['100 Continue', '102 Processing', '103 Early Hints'])}\r\n\r\n`.repeat(
          random.int(1, 20),
        ) + valid,
    ],
    [0.5, () => make({ body: toBytes(`data: ${'x'.repeat(random.int(1_000_000, 3_000_000))}`) })],
    [0.5, () => make({ body: `${'['.repeat(random.int(100, 100_000))}` })],
    [0.5, () => make({ headers: `x-a: ${'a'.repeat(random.int(1, 100_000))}\r\n`, body })],
    [1, () => ''],
    [1, () => valid],
  ])()
  return {
    protocol,
    isStream,
    bytes,
    ...(random.chance(0.2) && { pauseAt: random.int(0, bytes.length) }),
    ending: random.weighted([
      [6, 'close'],
      [2, 'reset'],
      [1, 'hang'],
      [3, 'keep'],
    ] as const),
  }
}

const garbage = (random: Random): string =>
  random.pick([
    () => String.fromCharCode(...random.list(1, 60, () => random.int(0, 255))),
    () => '\r\n\r\n',
    () => 'data: {"choices":[{"delta":{"content":null}}]}\n\n',
    () => 'data: [DONE]\n\n',
    () => 'data: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n',
    () => 'event: \ndata\ndata:\nid: \0\nretry: x\n\n',
    () => '0\r\n\r\n',
    () => 'ffffffff\r\n',
  ])()

function flipBytes(text: string, random: Random): string {
  const bytes = Buffer.from(text, 'latin1')
  for (let count = random.int(1, 8); count > 0; count--) bytes[random.int(0, bytes.length - 1)] = random.int(0, 255)
  return bytes.toString('latin1')
}

/** Drops, repeats or reorders the events of a stream, or parts of a document. */
function changeEvents(body: string, random: Random): string {
  const separator = body.includes('\n\n') ? '\n\n' : ','
  const events = body.split(separator)
  return random
    .pick([
      () => events.filter(() => random.chance(0.7)),
      () => events.flatMap((event) => (random.chance(0.3) ? [event, event] : [event])),
      () => [...events].reverse(),
      () => events.map((event) => (random.chance(0.2) ? event.replace(/:.*/, ':{}') : event)),
      () => events.map((event) => event.replaceAll('\n', random.pick(['\r\n', '\r', '\n']))),
    ])()
    .join(separator)
}
