import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import {
  openTracing,
  type RequestTrace,
  type TracedRequest,
  type Tracing,
} from '../../../src/server/observability/tracing.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createTurnRecord } from './turnRecord.ts'

const route = '/v1/{key}/chat/completions'
const requestWith = (headers: TracedRequest['headers'] = {}): TracedRequest => ({ method: 'POST', route, headers })
const parent = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'vendor=1' }

/** Opens tracing with an in-memory exporter. */
async function openTestTracing() {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const tracing = await openTracing({ provider, pseudonym: (key) => `<${key.length}>` })
  return { tracing, spans: () => exporter.getFinishedSpans() }
}

/** Kind 0 is internal, 1 is a server's; status 2 is an error. */
const summarize = ({ name, kind, status, attributes }: ReadableSpan) => ({
  name,
  kind,
  status: status.code,
  attributes,
})
const headersFor = (tracing: Tracing, headers: TracedRequest['headers']) =>
  tracing.traceRequest(requestWith(headers), async (trace: RequestTrace) => trace.headers)

describe('openTracing', () => {
  verifies('S-07', 'records a span per request with the GenAI conventions', async () => {
    const { tracing, spans } = await openTestTracing()
    const reply = await tracing.traceRequest(requestWith(), async (trace) => {
      trace.setTurn(createTurnRecord({ isStreaming: true, degraded: [{ code: 'budget', message: 'No room.' }] }))
      return 'a reply'
    })
    expect(reply).toBe('a reply')
    expect(spans().map(summarize)).toEqual([
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

  verifies('S-07', 'records memory operations as children of the request', async () => {
    const { tracing, spans } = await openTestTracing()
    await tracing.traceRequest(requestWith(), async (trace) => {
      await trace.recordOperation(
        'search_memory',
        'acme',
        async () => ['m1', 'm2'],
        (found) => found.length,
      )
      await trace.recordOperation('create_memory', 'acme', async () => undefined)
    })
    const [search, create, request] = spans()
    expect([search, create].map((span) => summarize(span as ReadableSpan))).toEqual([
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

  verifies('S-07', "continues the client's trace and passes it to the upstream", async () => {
    const { tracing, spans } = await openTestTracing()
    const headers = await headersFor(tracing, parent)
    const [span] = spans()
    expect(span?.parentSpanContext).toMatchObject({ spanId: 'b7ad6b7169203331', isRemote: true })
    expect(headers).toEqual({
      traceparent: `00-0af7651916cd43dd8448eb211c80319c-${span?.spanContext().spanId}-01`,
      tracestate: 'vendor=1',
    })
  })

  it('without a valid traceparent starts a new trace', async () => {
    const { tracing, spans } = await openTestTracing()
    const zeros = `00-${'0'.repeat(32)}-b7ad6b7169203331-01`
    const invalid = [
      undefined,
      '',
      'x',
      zeros,
      parent.traceparent.toUpperCase(),
      `${parent.traceparent}-more`,
      parent.traceparent.replace('00-', 'ff-'),
    ]
    for (const traceparent of invalid) await headersFor(tracing, { traceparent })
    expect(spans().map((span) => span.parentSpanContext)).toEqual(invalid.map(() => undefined))
    expect(new Set(spans().map((span) => span.spanContext().traceId)).size).toBe(invalid.length)
  })

  it('records the type of an error, but not its message', async () => {
    const { tracing, spans } = await openTestTracing()
    const failing = (error: unknown) =>
      tracing
        .traceRequest(requestWith(), (trace) =>
          trace.recordOperation('delete_memory', 'acme', () => Promise.reject(error)),
        )
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

  it('marks server errors as failed, but not client errors', async () => {
    const { tracing, spans } = await openTestTracing()
    for (const status of [404, 500]) await tracing.traceRequest(requestWith(), async (trace) => trace.setStatus(status))
    await tracing.traceRequest(requestWith(), async (trace) =>
      trace.setTurn(createTurnRecord({ protocol: 'messages', status: 502 })),
    )
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

  it('replaces a model name that does not look like one', async () => {
    const { tracing, spans } = await openTestTracing()
    await tracing.traceRequest(requestWith(), async (trace) =>
      trace.setTurn(createTurnRecord({ model: 'My cat is called Miso.' })),
    )
    expect(spans()[0]?.attributes['gen_ai.request.model']).toBe('other')
  })
})

describe('openTracing without a recorder', () => {
  const withoutPackage = () =>
    openTracing({ load: () => Promise.reject(new Error("Cannot find package '@opentelemetry/api'")) })
  const withoutProvider = () => openTracing()

  for (const [missing, open] of [
    ['the package', withoutPackage],
    ['a provider', withoutProvider],
  ] as const) {
    it(`runs the work without ${missing}`, async () => {
      const work = async (trace: RequestTrace): Promise<string[]> => {
        trace.setTurn(createTurnRecord())
        trace.setStatus(200)
        return trace.recordOperation('search_memory', 'acme', async () => ['found'])
      }
      expect(await (await open()).traceRequest(requestWith(), work)).toEqual(['found'])
    })

    it(`passes the client's trace to the upstream without ${missing}`, async () => {
      const tracing = await open()
      expect(await headersFor(tracing, parent)).toEqual(parent)
      expect(await headersFor(tracing, { traceparent: 'x', tracestate: 'vendor=1' })).toEqual({})
      expect(await headersFor(tracing, {})).toEqual({})
    })
  }
})
