/** Where in a trace a request stands, as the headers `traceparent` and `tracestate` tell it. */
export type TracePlace = {
  readonly traceId: string
  readonly spanId: string
  readonly flags: number
  readonly state?: string | undefined
}

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

const wellFormed = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Reads where the client's trace stands; undefined when it has none, or headers that W3C's Trace Context says to ignore. */
export function readTrace(headers: Headers): TracePlace | undefined {
  const { traceparent, tracestate } = headers
  if (typeof traceparent !== 'string') return undefined
  const [, version, traceId = '', spanId = '', flags = '', more] = wellFormed.exec(traceparent) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, flags: Number.parseInt(flags, 16), ...(isState(tracestate) ? { state: tracestate } : {}) }
}

/** The headers that tell an upstream where it stands. */
export function writeTrace({ traceId, spanId, flags, state }: TracePlace): Record<string, string> {
  // Of the flags only these are known; whoever does not know one has to leave it out.
  const known = (flags & 0b11).toString(16).padStart(2, '0')
  return { traceparent: `00-${traceId}-${spanId}-${known}`, ...(state === undefined ? {} : { tracestate: state }) }
}

const isState = (value: Headers[string]): value is string =>
  typeof value === 'string' && /^[\x20-\x7e]{1,512}$/.test(value)
