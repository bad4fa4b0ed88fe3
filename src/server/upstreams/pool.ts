import type { Millis } from '../../domain/entry.ts'
import { MemoryError, shortenText } from '../../domain/error.ts'
import { parseRetryAfter, type RetryPolicy, retryDelay } from '../../domain/retry.ts'
import type { Timeouts } from '../../providers/deadline.ts'
import { detectProtocol, type UpstreamProtocol } from '../auth/upstreamHeaders.ts'
import { HttpError } from '../http/httpError.ts'
import { type Backend, notForwarded, type UpstreamRequest, type UpstreamResponse } from './backend.ts'
import { groupByProtocol, servesModel, Upstream, type UpstreamOptions, upstreamProtocolFor } from './upstream.ts'

/** Upstreams for unknown endpoints. */
export type ForwardSetting = readonly string[] | false

export type PoolOptions = {
  readonly upstreams: readonly UpstreamOptions[]
  readonly timeouts: Timeouts
  /** For the last upstream. */
  readonly retryPolicy: RetryPolicy
  /** Names of the upstreams that receive requests for unknown endpoints, or false for none. Default: all. */
  readonly forward?: ForwardSetting | undefined
  /** Resolves after the given time; rejects when the signal aborts. */
  readonly sleep: (time: Millis, signal: AbortSignal) => Promise<void>
  /** Source of the jitter between retries. Default: `Math.random`. */
  readonly random?: () => number
}

/**
 * Creates a backend over several upstreams. A request goes to the first upstream that serves its model. If that one is
 * overloaded or down, the next one is tried; the last one is retried. After the first byte of a response there are no
 * retries. Throws a `MemoryError` without upstreams.
 */
export function createUpstreamPool(options: PoolOptions): Backend {
  const upstreams = options.upstreams.map((upstream) => new Upstream(upstream, options.timeouts))
  const [first] = upstreams
  if (first === undefined)
    throw new MemoryError('bad-option', 'upstreams is empty. Configure at least one upstream.', { param: 'upstreams' })
  const byProtocol = groupByProtocol(upstreams)
  const forwardTargets = selectForwardTargets(upstreams, options.forward)
  return {
    name: upstreams.map(({ base }) => base).join(', '),
    send: (request) => sendWithFailover(selectUpstreams(byProtocol, request), request, options),
    listModels: (request) => (byProtocol[detectProtocol(request.headers)][0] ?? first).listModels(request),
    forward: async (request) => {
      const upstream = forwardTargets?.[request.protocol]
      if (upstream !== undefined) return upstream.forward(request)
      throw notForwarded(request, 'Set forward in the configuration to forward other URLs to an upstream.')
    },
    getHealth: () => upstreams.map(({ name, state }) => ({ name, state })),
    close: async () => void (await Promise.all(upstreams.map((upstream) => upstream.close()))),
  }
}

/** The upstream for unknown endpoints of each protocol: the first one that speaks it, else the first. */
function selectForwardTargets(
  upstreams: readonly Upstream[],
  forward: ForwardSetting | undefined,
): Readonly<Record<UpstreamProtocol, Upstream | undefined>> | undefined {
  if (forward === false) return undefined
  const allowed = forward === undefined ? upstreams : upstreams.filter(({ name }) => forward.includes(name))
  const { openai, anthropic } = groupByProtocol(allowed)
  return { openai: openai[0] ?? allowed[0], anthropic: anthropic[0] }
}

function selectUpstreams(
  byProtocol: ReturnType<typeof groupByProtocol<Upstream>>,
  { endpoint, body }: UpstreamRequest,
): readonly Upstream[] {
  const model = typeof body.model === 'string' ? body.model : ''
  const upstreams = byProtocol[upstreamProtocolFor(endpoint)].filter((upstream) => servesModel(upstream, model))
  if (upstreams.length > 0) return upstreams
  throw new HttpError(
    404,
    'model_not_found',
    `No upstream is configured for the model ${JSON.stringify(shortenText(model, 80))} in this protocol.`,
    'model',
  )
}

/** Tries each upstream once and only the last one repeatedly: failing over is faster than waiting. */
async function sendWithFailover(
  upstreams: readonly Upstream[],
  request: UpstreamRequest,
  options: PoolOptions,
): Promise<UpstreamResponse> {
  const failedUpstreams: string[] = []
  let retries = 0
  for (let index = 0; index < upstreams.length; index++) {
    const upstream = upstreams[index] as Upstream
    const isLast = index === upstreams.length - 1
    // The client's own key is meant for the first upstream; other origins never receive it.
    const ownRequest: UpstreamRequest =
      upstream.origin === upstreams[0]?.origin ? request : { ...request, withholdClientKey: true }
    for (let attempt = 1; ; attempt++) {
      let response: UpstreamResponse | undefined
      let error: unknown
      try {
        response = await upstream.send(ownRequest)
      } catch (thrown) {
        error = thrown
      }
      const delay = isRetryable(response, error, isLast) ? nextDelay(response, attempt, isLast, options) : undefined
      if (delay === undefined && response === undefined) throw error
      if (delay === undefined)
        return retries === 0
          ? (response as UpstreamResponse)
          : { ...(response as UpstreamResponse), retries, failedUpstreams }
      await discardBody(response)
      retries++
      if (!isLast) {
        failedUpstreams.push(upstream.name)
        break
      }
      await options.sleep(delay, request.signal)
    }
  }
  throw new MemoryError('upstream', 'No upstream has answered.')
}

const retryableStatuses: ReadonlySet<number> = new Set([408, 409, 429, 500, 502, 503, 504, 529])

/** True if another attempt or another upstream may succeed. The last upstream is not retried after a timeout. */
function isRetryable(response: UpstreamResponse | undefined, error: unknown, isLast: boolean): boolean {
  if (response !== undefined)
    return retryableStatuses.has(response.status) && response.headers['x-should-retry'] !== 'false'
  return error instanceof MemoryError && (error.code === 'upstream' || (error.code === 'timeout' && !isLast))
}

/** Delay before the next attempt, or none before the next upstream; undefined when there should be no attempt. */
function nextDelay(
  response: UpstreamResponse | undefined,
  attempt: number,
  isLast: boolean,
  { retryPolicy, random = Math.random }: PoolOptions,
): Millis | undefined {
  if (!isLast) return 0
  const retryAfter = parseRetryAfter((name) => response?.headers[name], Date.now())
  return retryDelay(attempt, retryPolicy, retryAfter, random)
}

/**
 * Discards an unused response. Its connection is reused if the body has arrived completely, else closed without
 * waiting.
 */
const discardBody = async (response: UpstreamResponse | undefined): Promise<unknown> =>
  response?.body[Symbol.asyncIterator]().return?.()
