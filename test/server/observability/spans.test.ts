import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import { type Incoming, openTracing, type Traced, type Tracing } from '../../../src/server/observability/spans.ts'
import { verifies } from '../../requirements/verifies.ts'
import { turnOf } from './turns.ts'

const route = '/v1/{key}/chat/completions'
const incoming = (headers: Incoming['headers'] = {}): Incoming => ({ method: 'POST', route, headers })
const parent = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'vendor=1' }

/** Tracing whose spans are kept. */
async function recording() {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const tracing = await openTracing({ provider, pseudonym: (key) => `<${key.length}>` })
  return { tracing, spans: () => exporter.getFinishedSpans() }
}

/** Kinds by their numbers: 0 is internal, 1 a server's. Status 2 is an error. */
const told = ({ name, kind, status, attributes }: ReadableSpan) => ({ name, kind, status: status.code, attributes })
const headersFor = (tracing: Tracing, headers: Incoming['headers']) =>
  tracing.request(incoming(headers), async (traced: Traced) => traced.headers)

describe('spans', () => {
  verifies('S-07', 'tell of each request by the conventions for GenAI', async () => {
    const { tracing, spans } = await recording()
    const reply = await tracing.request(incoming(), async (traced) => {
      traced.turn(turnOf({ streamed: true, degraded: ['budget'] }))
      return 'a reply'
    })
    expect(reply).toBe('a reply')
    expect(spans().map(told)).toEqual([
      {
        name: `POST ${route}`,
        kind: 1,
        status: 0,
        attributes: {
          'http.request.method': 'POST',
          'http.route': route,
          'http.response.status_code': 200,
          'gen_ai.operation.name': 'chat',
          'gen_ai.provider.name': 'openai',
          'gen_ai.request.model': 'gpt-5.4-mini',
          'gen_ai.request.stream': true,
          'gen_ai.conversation.id': '<8>',
          'gen_ai.usage.input_tokens': 410,
          'gen_ai.usage.output_tokens': 20,
          'gen_ai.usage.cache_read.input_tokens': 256,
          'gen_ai.response.time_to_first_chunk': 0.3,
          'threadkeep.scope': 'acme',
          'threadkeep.profile': 'support',
          'threadkeep.upstream': 'openai',
          'threadkeep.memory.seconds': 0.002,
          'threadkeep.tokens.shown': 400,
          'threadkeep.tokens.history': 1_000,
          'threadkeep.tokens.saved': 600,
          'threadkeep.tokens.cacheable': 300,
          'threadkeep.retries': 0,
          'threadkeep.aborted': false,
          'threadkeep.stored': true,
          'threadkeep.degraded': ['budget'],
        },
      },
    ])
  })

  verifies('S-07', 'tell of what memory does as children of the request', async () => {
    const { tracing, spans } = await recording()
    await tracing.request(incoming(), async (traced) => {
      await traced.memory(
        'search_memory',
        'acme',
        async () => ['m1', 'm2'],
        (found) => found.length,
      )
      await traced.memory('create_memory', 'acme', async () => undefined)
    })
    const [search, create, request] = spans()
    expect([search, create].map((span) => told(span as ReadableSpan))).toEqual([
      {
        name: 'search_memory',
        kind: 0,
        status: 0,
        attributes: {
          'gen_ai.operation.name': 'search_memory',
          'gen_ai.memory.store.id': 'acme',
          'gen_ai.memory.record.count': 2,
        },
      },
      {
        name: 'create_memory',
        kind: 0,
        status: 0,
        attributes: { 'gen_ai.operation.name': 'create_memory', 'gen_ai.memory.store.id': 'acme' },
      },
    ])
    expect([search, create].map((span) => span?.parentSpanContext?.spanId)).toEqual(
      Array(2).fill(request?.spanContext().spanId),
    )
  })

  verifies('S-07', 'go on with the trace of the client, and the upstream with theirs', async () => {
    const { tracing, spans } = await recording()
    const headers = await headersFor(tracing, parent)
    const [span] = spans()
    expect(span?.parentSpanContext).toMatchObject({ spanId: 'b7ad6b7169203331', isRemote: true })
    expect(headers).toEqual({
      traceparent: `00-0af7651916cd43dd8448eb211c80319c-${span?.spanContext().spanId}-01`,
      tracestate: 'vendor=1',
    })
  })

  it('begin a trace where the client has none, or one nobody can read', async () => {
    const { tracing, spans } = await recording()
    const zeros = `00-${'0'.repeat(32)}-b7ad6b7169203331-01`
    const wrong = [
      undefined,
      '',
      'x',
      zeros,
      parent.traceparent.toUpperCase(),
      `${parent.traceparent}-more`,
      parent.traceparent.replace('00-', 'ff-'),
    ]
    for (const traceparent of wrong) await headersFor(tracing, { traceparent })
    expect(spans().map((span) => span.parentSpanContext)).toEqual(wrong.map(() => undefined))
    expect(new Set(spans().map((span) => span.spanContext().traceId)).size).toBe(wrong.length)
  })

  it('tell the kind of an error and nothing of its message', async () => {
    const { tracing, spans } = await recording()
    const failing = (error: unknown) =>
      tracing
        .request(incoming(), (traced) => traced.memory('delete_memory', 'acme', () => Promise.reject(error)))
        .catch((reason: unknown) => reason)
    const errors = [
      new MemoryError('conflict', 'My cat is called Miso.'),
      new TypeError('My cat is called Miso.'),
      'My cat is called Miso.',
    ]
    for (const error of errors) expect(await failing(error)).toBe(error)
    expect(
      spans().map(({ name, status, attributes, events }) => [name, status, attributes['error.type'], events]),
    ).toEqual(
      ['conflict', 'TypeError', '_OTHER'].flatMap((kind) => [
        ['delete_memory', { code: 2 }, kind, []],
        [`POST ${route}`, { code: 2 }, kind, []],
      ]),
    )
  })

  it('are errors when the server fails, not when the client is wrong', async () => {
    const { tracing, spans } = await recording()
    for (const status of [404, 500]) await tracing.request(incoming(), async (traced) => traced.answered(status))
    await tracing.request(incoming(), async (traced) => traced.turn(turnOf({ protocol: 'messages', status: 502 })))
    expect(
      spans().map(({ status, attributes }) => [
        attributes['http.response.status_code'],
        status.code,
        attributes['error.type'],
      ]),
    ).toEqual([
      [404, 0, undefined],
      [500, 2, '500'],
      [502, 2, '502'],
    ])
    expect(spans().at(-1)?.attributes['gen_ai.provider.name']).toBe('anthropic')
  })

  it('hold no name of a model that is none', async () => {
    const { tracing, spans } = await recording()
    await tracing.request(incoming(), async (traced) => traced.turn(turnOf({ model: 'My cat is called Miso.' })))
    expect(spans()[0]?.attributes['gen_ai.request.model']).toBe('other')
  })
})

describe('without anybody to record', () => {
  const absent = () =>
    openTracing({ load: () => Promise.reject(new Error("Cannot find package '@opentelemetry/api'")) })
  const unheard = () => openTracing()

  for (const [when, open] of [
    ['the package', absent],
    ['anything registered', unheard],
  ] as const) {
    it(`work goes on without ${when}`, async () => {
      const work = async (traced: Traced): Promise<string[]> => {
        traced.turn(turnOf())
        traced.answered(200)
        return traced.memory('search_memory', 'acme', async () => ['found'])
      }
      expect(await (await open()).request(incoming(), work)).toEqual(['found'])
    })

    it(`the client's trace goes to the upstream without ${when}`, async () => {
      const tracing = await open()
      expect(await headersFor(tracing, parent)).toEqual(parent)
      expect(await headersFor(tracing, { traceparent: 'x', tracestate: 'vendor=1' })).toEqual({})
      expect(await headersFor(tracing, {})).toEqual({})
    })
  }
})
