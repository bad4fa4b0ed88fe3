import type { Attributes, Context, Span, Tracer, TracerProvider } from '@opentelemetry/api'
import { MemoryError } from '../../domain/error.ts'
import { createPseudonymizer, modelName, type Pseudonymize, scopeName } from './log.ts'
import type { TurnRecord } from './usageStats.ts'

type OpenTelemetry = typeof import('@opentelemetry/api')
type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/** Memory operations, named as in OpenTelemetry's GenAI conventions. */
export type MemoryOperation = 'search_memory' | 'create_memory' | 'update_memory' | 'delete_memory'

/** A request to trace; `route` is the template of its path. */
export type TracedRequest = { readonly method: string; readonly route: string; readonly headers: Headers }

/** The trace of one request. */
export interface RequestTrace {
  /** Headers that make the upstream's spans children of this one. */
  readonly headers: Readonly<Record<string, string>>
  /** Records a memory operation on a scope; `count` returns the number of entries in its result. */
  recordOperation<T>(
    operation: MemoryOperation,
    scope: string,
    work: () => Promise<T>,
    count?: (result: T) => number,
  ): Promise<T>
  /** Adds the attributes of a finished turn. */
  setTurn(turn: TurnRecord): void
  /** Sets the response status of a request that is not a turn. */
  setStatus(status: number): void
}

/** Records requests as spans. */
export interface Tracing {
  traceRequest<T>(request: TracedRequest, work: (trace: RequestTrace) => Promise<T>): Promise<T>
}

export type TracingOptions = {
  /** Loads the optional package `@opentelemetry/api`. */
  readonly load?: (() => Promise<OpenTelemetry>) | undefined
  /** Default: the provider that the process has registered. */
  readonly provider?: TracerProvider | undefined
  readonly pseudonym?: Pseudonymize | undefined
}

/**
 * Opens tracing with OpenTelemetry: a span for each request and each memory operation, with ids and numbers only.
 * Without the package `@opentelemetry/api` nothing is recorded, and the client's trace context is passed to the
 * upstream.
 */
export async function openTracing({
  load = () => import('@opentelemetry/api'),
  provider,
  pseudonym = createPseudonymizer(),
}: TracingOptions = {}): Promise<Tracing> {
  let api: OpenTelemetry
  try {
    api = await load()
  } catch {
    return noopTracing
  }
  const tracer = (provider ?? api.trace).getTracer('threadkeep')
  return { traceRequest: (request, work) => recordRequest({ api, tracer, pseudonym }, request, work) }
}

/** Records nothing; passes the client's trace context to the upstream. */
export const noopTracing: Tracing = {
  traceRequest: (request, work) => {
    const parent = readTraceContext(request.headers)
    return work(parent === undefined ? emptyTrace : { ...emptyTrace, headers: traceHeaders(parent) })
  },
}

const emptyTrace: RequestTrace = {
  headers: {},
  recordOperation: (_operation, _scope, work) => work(),
  setTurn: () => undefined,
  setStatus: () => undefined,
}

type Recorder = { readonly api: OpenTelemetry; readonly tracer: Tracer; readonly pseudonym: Pseudonymize }

async function recordRequest<T>(
  recorder: Recorder,
  { method, route, headers }: TracedRequest,
  work: (trace: RequestTrace) => Promise<T>,
): Promise<T> {
  const { api, tracer, pseudonym } = recorder
  const parent = readTraceContext(headers)
  const parentContext =
    parent === undefined ? api.ROOT_CONTEXT : api.trace.setSpanContext(api.ROOT_CONTEXT, toSpanContext(api, parent))
  const attributes = { 'http.request.method': method, 'http.route': route }
  const span = tracer.startSpan(`${method} ${route}`, { kind: api.SpanKind.SERVER, attributes }, parentContext)
  const context = api.trace.setSpan(parentContext, span)
  const setStatus = (status: number): void => {
    span.setAttribute('http.response.status_code', status)
    // By the conventions, a client error is not an error of the server's span.
    if (status >= 500) markFailed(api, span, String(status))
  }
  const trace: RequestTrace = {
    headers: upstreamTraceHeaders(span, parent),
    recordOperation: (operation, scope, run, count) =>
      recordOperation(recorder, context, { operation, scope, count }, run),
    setTurn: (turn) => {
      if (span.isRecording()) span.setAttributes(turnAttributes(turn, pseudonym))
      setStatus(turn.status)
    },
    setStatus,
  }
  return endSpanAfter(api, span, () => api.context.with(context, () => work(trace)))
}

type OperationOptions<T> = {
  readonly operation: MemoryOperation
  readonly scope: string
  readonly count: ((result: T) => number) | undefined
}

function recordOperation<T>(
  { api, tracer }: Recorder,
  context: Context,
  { operation, scope, count }: OperationOptions<T>,
  work: () => Promise<T>,
): Promise<T> {
  const attributes: Attributes = { 'gen_ai.operation.name': operation, 'gen_ai.memory.store.id': scopeName(scope) }
  const span = tracer.startSpan(operation, { kind: api.SpanKind.INTERNAL, attributes }, context)
  return endSpanAfter(api, span, async () => {
    const result = await api.context.with(api.trace.setSpan(context, span), work)
    if (count !== undefined) span.setAttribute('gen_ai.memory.record.count', count(result))
    return result
  })
}

/** Ends the span when the work settles. Records the kind of an error, never its message, which may quote messages. */
async function endSpanAfter<T>(api: OpenTelemetry, span: Span, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    markFailed(api, span, error instanceof MemoryError ? error.code : error instanceof Error ? error.name : '_OTHER')
    throw error
  } finally {
    span.end()
  }
}

function markFailed(api: OpenTelemetry, span: Span, errorType: string): void {
  span.setAttribute('error.type', errorType)
  span.setStatus({ code: api.SpanStatusCode.ERROR })
}

/**
 * Span attributes of a turn, with OpenTelemetry's names for HTTP and GenAI where they exist. Attributes with message
 * text (`gen_ai.input.messages`, `gen_ai.memory.query.text` and similar) are never set.
 */
function turnAttributes(turn: TurnRecord, pseudonym: Pseudonymize): Attributes {
  const { key, scope, protocol, tokens, durationMs } = turn
  return omitUndefined({
    'gen_ai.operation.name': 'chat',
    // The request format: the actual provider behind an upstream's address is unknown.
    'gen_ai.provider.name': protocol === 'messages' ? 'anthropic' : 'openai',
    'gen_ai.request.model': modelName(turn.model),
    // By the conventions, set for streams only.
    'gen_ai.request.stream': turn.isStreaming ? true : undefined,
    'gen_ai.conversation.id': key === undefined ? undefined : pseudonym(key),
    'gen_ai.usage.input_tokens': tokens.prompt,
    'gen_ai.usage.output_tokens': tokens.completion,
    'gen_ai.usage.cache_read.input_tokens': tokens.cached,
    'gen_ai.response.time_to_first_chunk':
      turn.isStreaming && durationMs.firstByte !== undefined ? durationMs.firstByte / 1_000 : undefined,
    'threadkeep.scope': scope === undefined ? undefined : scopeName(scope),
    'threadkeep.profile': turn.profile,
    'threadkeep.upstream': turn.upstream,
    'threadkeep.memory.seconds': durationMs.memory / 1_000,
    'threadkeep.tokens.shown': tokens.shown,
    'threadkeep.tokens.history': tokens.history,
    'threadkeep.tokens.saved': tokens.saved,
    'threadkeep.tokens.cacheable': tokens.cacheable,
    'threadkeep.retries': turn.retries,
    'threadkeep.aborted': turn.isAborted,
    'threadkeep.stored': turn.isStored,
    'threadkeep.degraded': turn.degraded.map(({ code }) => code),
  })
}

const omitUndefined = (attributes: Attributes): Attributes =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))

/** A position in a trace, from the headers `traceparent` and `tracestate`. */
type TraceContext = {
  readonly traceId: string
  readonly spanId: string
  readonly flags: number
  readonly state?: string | undefined
}

const traceparentPattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Reads the client's trace context; undefined without one, or with headers that W3C Trace Context says to ignore. */
function readTraceContext({ traceparent, tracestate }: Headers): TraceContext | undefined {
  if (typeof traceparent !== 'string') return undefined
  const [, version, traceId = '', spanId = '', flags = '', extra] = traceparentPattern.exec(traceparent) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && extra !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  const state = isTracestate(tracestate) ? { state: tracestate } : {}
  return { traceId, spanId, flags: Number.parseInt(flags, 16), ...state }
}

const isTracestate = (value: Headers[string]): value is string =>
  typeof value === 'string' && /^[\x20-\x7e]{1,512}$/.test(value)

function traceHeaders({ traceId, spanId, flags, state }: TraceContext): Record<string, string> {
  // Only the two flags that are defined; unknown ones must be cleared.
  const knownFlags = (flags & 0b11).toString(16).padStart(2, '0')
  return { traceparent: `00-${traceId}-${spanId}-${knownFlags}`, ...(state === undefined ? {} : { tracestate: state }) }
}

function toSpanContext(api: OpenTelemetry, { traceId, spanId, flags, state }: TraceContext) {
  const traceState = state === undefined ? {} : { traceState: api.createTraceState(state) }
  return { traceId, spanId, traceFlags: flags, isRemote: true, ...traceState }
}

/** Headers for the upstream: those of our span, or the client's own when no provider records spans. */
function upstreamTraceHeaders(span: Span, parent: TraceContext | undefined): Record<string, string> {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext()
  if (/^0*$/.test(traceId)) return parent === undefined ? {} : traceHeaders(parent)
  return traceHeaders({ traceId, spanId, flags: traceFlags, state: traceState?.serialize() || undefined })
}
