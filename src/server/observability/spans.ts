import type { Attributes, Context, Span, Tracer, TracerProvider } from '@opentelemetry/api'
import { MemoryError } from '../../domain/error.ts'
import { type Pseudonym, pseudonyms } from './pseudonym.ts'
import { requestAttributes, turnAttributes } from './spanAttributes.ts'
import { readTrace, type TracePlace, writeTrace } from './traceparent.ts'
import type { Turn } from './turn.ts'

type Api = typeof import('@opentelemetry/api')

/** What memory does for a request, by the names that OpenTelemetry's conventions for GenAI have for it. */
export type MemoryOperation = 'search_memory' | 'create_memory' | 'update_memory' | 'delete_memory'

/** A request as it comes in; `route` is the template of its address. */
export type Incoming = {
  readonly method: string
  readonly route: string
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

/** A request under way, as it is traced. */
export interface Traced {
  /** What to tell the upstream, so that its spans become children of this one. */
  readonly headers: Readonly<Record<string, string>>
  /** One operation of memory on a scope; `count` tells of its result how many entries it was about. */
  memory<T>(
    operation: MemoryOperation,
    scope: string,
    work: () => Promise<T>,
    count?: (result: T) => number,
  ): Promise<T>
  /** What is known of the request once it is over. */
  turn(turn: Turn): void
  /** The status it was answered with, for requests that are no turns. */
  answered(status: number): void
}

/** Records requests as spans. */
export interface Tracing {
  request<T>(incoming: Incoming, work: (traced: Traced) => Promise<T>): Promise<T>
}

export type TracingOptions = {
  /** Loads OpenTelemetry's API, which is an optional package. */
  readonly load?: (() => Promise<Api>) | undefined
  /** Who records; what the process has registered when left out. */
  readonly provider?: TracerProvider | undefined
  readonly pseudonym?: Pseudonym | undefined
}

/**
 * Opens tracing with OpenTelemetry: a span for each request and one for each thing memory does for it, in ids and
 * numbers. Without the package `@opentelemetry/api` nothing is recorded, and the client's trace goes on to the upstream.
 */
export async function openTracing({
  load = () => import('@opentelemetry/api'),
  provider,
  pseudonym = pseudonyms(),
}: TracingOptions = {}): Promise<Tracing> {
  let api: Api
  try {
    api = await load()
  } catch {
    return untraced
  }
  const tracer = (provider ?? api.trace).getTracer('threadkeep')
  return { request: (incoming, work) => recorded({ api, tracer, pseudonym }, incoming, work) }
}

/** Records nothing. */
export const untraced: Tracing = {
  request: (incoming, work) => {
    const place = readTrace(incoming.headers)
    return work(place === undefined ? unrecorded : { ...unrecorded, headers: writeTrace(place) })
  },
}

const unrecorded: Traced = {
  headers: {},
  memory: (_operation, _scope, done) => done(),
  turn: () => undefined,
  answered: () => undefined,
}

type Recorder = { readonly api: Api; readonly tracer: Tracer; readonly pseudonym: Pseudonym }

async function recorded<T>(recorder: Recorder, incoming: Incoming, work: (traced: Traced) => Promise<T>): Promise<T> {
  const { api, tracer, pseudonym } = recorder
  const place = readTrace(incoming.headers)
  const above = place === undefined ? api.ROOT_CONTEXT : api.trace.setSpanContext(api.ROOT_CONTEXT, remote(api, place))
  const options = { kind: api.SpanKind.SERVER, attributes: requestAttributes(incoming.method, incoming.route) }
  const span = tracer.startSpan(`${incoming.method} ${incoming.route}`, options, above)
  const here = api.trace.setSpan(above, span)
  const answered = (status: number): void => {
    span.setAttribute('http.response.status_code', status)
    // For a server, what the client did wrong is no error of its own.
    if (status >= 500) failed(api, span, String(status))
  }
  const traced: Traced = {
    headers: headersOf(span, place),
    memory: (operation, scope, done, count) => remembered(recorder, here, { operation, scope, count }, done),
    turn: (turn) => {
      if (span.isRecording()) span.setAttributes(turnAttributes(turn, pseudonym))
      answered(turn.status)
    },
    answered,
  }
  return ended(api, span, () => api.context.with(here, () => work(traced)))
}

type Remembering<T> = {
  readonly operation: MemoryOperation
  readonly scope: string
  readonly count: ((result: T) => number) | undefined
}

function remembered<T>(
  { api, tracer }: Recorder,
  here: Context,
  { operation, scope, count }: Remembering<T>,
  work: () => Promise<T>,
): Promise<T> {
  const attributes: Attributes = { 'gen_ai.operation.name': operation, 'gen_ai.memory.store.id': scope }
  const span = tracer.startSpan(operation, { kind: api.SpanKind.INTERNAL, attributes }, here)
  return ended(api, span, async () => {
    const result = await api.context.with(api.trace.setSpan(here, span), work)
    if (count !== undefined) span.setAttribute('gen_ai.memory.record.count', count(result))
    return result
  })
}

/** Ends the span whatever happens. Of an error its kind is told, never its message: that may quote what was said. */
async function ended<T>(api: Api, span: Span, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    failed(api, span, error instanceof MemoryError ? error.code : error instanceof Error ? error.name : '_OTHER')
    throw error
  } finally {
    span.end()
  }
}

function failed(api: Api, span: Span, kind: string): void {
  span.setAttribute('error.type', kind)
  span.setStatus({ code: api.SpanStatusCode.ERROR })
}

function remote(api: Api, { traceId, spanId, flags, state }: TracePlace) {
  return {
    traceId,
    spanId,
    traceFlags: flags,
    isRemote: true,
    ...(state === undefined ? {} : { traceState: api.createTraceState(state) }),
  }
}

/** With nobody to record, the span is none, and the client's own place goes on. */
function headersOf(span: Span, place: TracePlace | undefined): Record<string, string> {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext()
  if (/^0*$/.test(traceId)) return place === undefined ? {} : writeTrace(place)
  return writeTrace({ traceId, spanId, flags: traceFlags, state: traceState?.serialize() || undefined })
}
