import { Agent, type Dispatcher } from 'undici'
import type { Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { estimateSize, stringifyInSteps } from '../../domain/stringify.ts'
import { runInSlices } from '../../domain/work.ts'
import type { Timeouts } from '../../providers/deadline.ts'
import {
  connectionLostError,
  invalidReplyError,
  type SettingNames,
  statusError,
  unreachableError,
} from '../../providers/errors.ts'
import { buildEndpointUrl, stripQuery } from '../../providers/url.ts'
import { yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import {
  buildClientKeyHeaders,
  buildRequestHeaders,
  joinQueries,
  type UpstreamIdentity as KeyOwner,
  pickForwardedResponseHeaders,
  pickResponseHeaders,
  type UpstreamProtocol,
} from '../auth/upstreamHeaders.ts'
import { afterPendingReads } from '../http/body.ts'
import { HttpError } from '../http/httpError.ts'
import type { UpstreamState } from '../observability/readiness.ts'
import type { ForwardRequest, UpstreamCaller, UpstreamRequest, UpstreamResponse } from './backend.ts'
import { type Deadline, dispatchRequest, type RawResponse } from './dispatch.ts'

/** Configuration of a model server. */
export type UpstreamOptions = {
  readonly name: string
  /** Base URL, such as `http://localhost:11434/v1`. */
  readonly base: string
  readonly protocol: UpstreamProtocol
  /** API key, used unless the client brings its own. */
  readonly key?: string | undefined
  /** Models it serves, as names that may end with `*`. Default: every model. */
  readonly models?: readonly string[] | undefined
  /** Maps the client's model names to the names this server uses. Default: unchanged. */
  readonly rename?: Readonly<Record<string, string>> | undefined
}

/** Paths of the endpoints below the base URL. */
const paths: Readonly<Record<UpstreamRequest['endpoint'], string>> = {
  chat: '/chat/completions',
  responses: '/responses',
  messages: '/messages',
  count_tokens: '/messages/count_tokens',
  embeddings: '/embeddings',
}
/** Characters of a request up to which it is written in one turn of the event loop. */
const maxShortBody = 65_536
const noUpstreams: readonly string[] = []
const check: SettingNames = { baseUrl: '--upstream or OPENAI_BASE_URL', apiKey: 'OPENAI_API_KEY' }

/** Resolved URL of an endpoint and its deadline, computed once per endpoint. */
type Target = {
  readonly origin: string
  readonly path: string
  /** Query of the base URL, with `?` unless empty. */
  readonly query: string
  readonly address: string
  readonly deadline: Deadline
}

/** One model server. Sends a request once, without retries, and classifies failures. */
export class Upstream {
  readonly name: string
  readonly base: string
  /** Outcome of the last request. */
  state: UpstreamState = 'ok'
  private readonly options: UpstreamOptions
  private readonly timeouts: Timeouts
  private readonly agent: Agent
  private readonly targets = new Map<string, Target>()
  private readonly keyOwner: KeyOwner

  constructor(options: UpstreamOptions, timeouts: Timeouts) {
    this.options = options
    this.timeouts = timeouts
    this.name = options.name
    const { origin, address } = this.getTarget('/models')
    this.base = address.replace(/\/models$/, '')
    this.keyOwner = { origin, protocol: options.protocol, key: options.key }
    this.agent = new Agent({
      connect: { timeout: 10_000 },
      headersTimeout: timeouts.firstByte,
      bodyTimeout: timeouts.idle,
    })
  }

  get origin(): string {
    return this.keyOwner.origin
  }

  get protocol(): UpstreamProtocol {
    return this.keyOwner.protocol
  }

  get models(): UpstreamOptions['models'] {
    return this.options.models
  }

  async send(request: UpstreamRequest): Promise<UpstreamResponse> {
    const { model } = request.body
    const ownName = typeof model === 'string' ? resolveModelName(this.options, model) : model
    const body = ownName === model ? request.body : { ...request.body, model: ownName }
    const path = paths[request.endpoint]
    const text =
      estimateSize(body, maxShortBody) < maxShortBody
        ? JSON.stringify(body)
        : await runInSlices(stringifyInSteps(body), yieldWhenLong)
    return this.dispatch('POST', path, text, request, upstreamProtocolFor(request.endpoint))
  }

  listModels(caller: UpstreamCaller): Promise<UpstreamResponse> {
    return this.dispatch('GET', '/models', null, caller, this.protocol)
  }

  /**
   * Forwards a request for an unknown endpoint and its response without reading them. Such requests do not change the
   * upstream's state: clients choose them.
   */
  async forward(request: ForwardRequest): Promise<UpstreamResponse> {
    const { protocol, method, body = null, signal, headers: clientHeaders, withholdClientKey } = request
    const base = this.getTarget('')
    const { origin } = base
    const route = joinForwardPath(base, request.path)
    const address = origin + route
    const headers = buildRequestHeaders(this.keyOwner, base, clientHeaders, withholdClientKey, protocol, 'verbatim')
    // Chunked uploads are refused by many servers, so the length is passed on if the client declared it.
    const { 'content-length': length } = clientHeaders
    if (body !== null && length !== undefined) headers['content-length'] = length
    const path = route + joinQueries(base.query, request.query ?? '')
    const options = { origin, path, method: method as Dispatcher.HttpMethod, headers, body }
    const deadline = createDeadline(this.timeouts.total, address)
    let response: RawResponse
    try {
      response = await dispatchRequest(this.agent, options, signal, deadline)
    } catch (error) {
      throw classifyError(error, address, (cause) => unreachableError(address, { cause }, check))
    }
    const error = findForwardError(response, address, this.usesServerKey(request, protocol))
    if (error !== undefined) {
      response.body.discard()
      throw error
    }
    return {
      status: response.status,
      headers: pickForwardedResponseHeaders(response.headers),
      address,
      upstream: this.name,
      retries: 0,
      failedUpstreams: noUpstreams,
      body: response.body,
    }
  }

  close(): Promise<void> {
    return this.agent.close()
  }

  private async dispatch(
    method: 'GET' | 'POST',
    route: string,
    body: string | null,
    caller: UpstreamCaller,
    protocol: UpstreamProtocol,
  ): Promise<UpstreamResponse> {
    const target = this.getTarget(route)
    const { origin, address, deadline } = target
    const path = target.path + joinQueries(target.query, caller.query ?? '')
    const headers = buildRequestHeaders(this.keyOwner, target, caller.headers, caller.withholdClientKey, protocol)
    if (body !== null) headers['content-type'] = 'application/json'
    let response: RawResponse
    try {
      const options = { origin, path, method, headers, body }
      response = rejectUnusable(await dispatchRequest(this.agent, options, caller.signal, deadline), address)
    } catch (error) {
      throw this.recordFailure(error, address)
    }
    const { status } = response
    this.state = status >= 500 ? 'failing' : 'ok'
    if ((status === 401 || status === 403) && this.usesServerKey(caller, protocol)) {
      response.body.discard()
      this.state = 'failing'
      throw createKeyError()
    }
    await afterPendingReads()
    return {
      status,
      headers: pickResponseHeaders(protocol, response.headers),
      address,
      upstream: this.name,
      retries: 0,
      failedUpstreams: noUpstreams,
      body: response.body,
    }
  }

  /** Updates the state and returns the error for the caller. */
  private recordFailure(error: unknown, address: string): unknown {
    const failure = classifyError(error, address, (cause) => unreachableError(address, { cause }, check))
    if (failure instanceof MemoryError) this.state = failure.code === 'timeout' ? 'failing' : 'down'
    return failure
  }

  /** True if the request is not sent with the client's own key. */
  private usesServerKey({ headers, withholdClientKey }: UpstreamCaller, protocol: UpstreamProtocol): boolean {
    if (withholdClientKey) return true
    return (
      this.keyOwner.key !== undefined && buildClientKeyHeaders(this.protocol, headers, false, protocol) === undefined
    )
  }

  private getTarget(route: string): Target {
    const cached = this.targets.get(route)
    if (cached !== undefined) return cached
    const url = this.resolveUrl(route)
    const address = stripQuery(url)
    const target = {
      origin: url.origin,
      path: url.pathname,
      query: url.search,
      address,
      deadline: createDeadline(this.timeouts.total, address),
    }
    this.targets.set(route, target)
    return target
  }

  private resolveUrl(route: string): URL {
    const { base, protocol } = this.options
    try {
      return protocol === 'anthropic' ? buildEndpointUrl(base, `/v1${route}`, '/v1') : buildEndpointUrl(base, route)
    } catch (cause) {
      throw new MemoryError(
        'bad-option',
        'upstream must be an http:// or https:// address without a user name and password, such as http://localhost:11434/v1.',
        { param: 'upstream', cause },
      )
    }
  }
}

const createDeadline = (total: Millis, address: string): Deadline => ({
  total,
  createError: () =>
    new MemoryError(
      'timeout',
      `${address} did not finish its answer in ${total} ms. Ask for less, or allow a longer total time.`,
    ),
  convertError: (error) => classifyError(error, address, (cause) => connectionLostError(address, cause)),
})

/**
 * Creates the error for a rejected operator key. It hides the upstream's message, which may contain the key or the
 * account, and disables client retries, because only the operator can fix the key.
 */
const createKeyError = (): HttpError =>
  new HttpError(
    502,
    'upstream',
    'The upstream rejected the API key of this server. Ask the operator to check it.',
    null,
    { type: 'upstream_error', headers: { 'x-should-retry': 'false' } },
  )

/** Joins a validated path to the base path. Checks the result again, because it decides where the key is sent. */
function joinForwardPath({ origin, path: basePath }: Pick<Target, 'origin' | 'path'>, path: string): string {
  const prefix = `${basePath.replace(/\/$/, '')}/`
  const joined = prefix + path
  const url = new URL(origin + joined)
  if (url.origin === origin && url.pathname === joined && !joined.startsWith('//')) return joined
  throw new HttpError(400, 'invalid_path', 'The path is not a plain path below /v1.')
}

/**
 * Finds the reason why a forwarded response is not relayed. Redirects are not: a client would follow them with its
 * Threadkeep key. Refusals of the operator's key may name the key or the account.
 */
function findForwardError({ status }: RawResponse, address: string, usesServerKey: boolean): Error | undefined {
  if (status >= 300 && status < 400 && status !== 304)
    return statusError(address, { status, errorCode: '', attempts: 1, model: '', settings: check })
  if (!usesServerKey) return undefined
  if (status === 401) return createKeyError()
  if (status !== 403) return undefined
  const message = 'The upstream does not allow this request with the API key of this server. Ask the operator.'
  return new HttpError(403, 'upstream_forbidden', message)
}

/** Returns the response, or discards it and throws if it does not come from a model server. */
function rejectUnusable(response: RawResponse, address: string): RawResponse {
  const error = findResponseError(response, address)
  if (error === undefined) return response
  response.body.discard()
  throw error
}

/** Error responses of the upstream are passed to the client and are not errors here. */
function findResponseError({ status, headers }: RawResponse, address: string): MemoryError | undefined {
  if (status >= 400) return undefined
  if (status >= 300) return statusError(address, { status, errorCode: '', attempts: 1, model: '', settings: check })
  const { 'content-encoding': encoding = '', 'content-type': type = '' } = headers
  if (encoding !== '' && encoding !== 'identity')
    return invalidReplyError(address, 'compressed bytes that were not requested')
  return type.toLowerCase().includes('html') ? invalidReplyError(address, 'a web page') : undefined
}

const timeoutCodes: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Converts a timeout of the connection pool to a `MemoryError`; `convertOther` handles all other connection errors. */
function classifyError(error: unknown, address: string, convertOther: (cause: unknown) => MemoryError): unknown {
  if (error instanceof MemoryError || error instanceof HttpError) return error
  if (error instanceof Error && error.name === 'AbortError') return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return timeoutCodes.has(code)
    ? new MemoryError('timeout', `${address} did not answer in time. Try again, or ask for less.`, { cause: error })
    : convertOther(error)
}

/** Options of a single upstream that is given by its base URL alone. It uses the OpenAI protocol. */
export const createDefaultUpstream = (base: string, key?: string): UpstreamOptions => ({
  name: 'upstream',
  base,
  protocol: 'openai',
  key,
})

type RoutingOptions = Pick<UpstreamOptions, 'protocol' | 'models'>

/** Returns the upstream protocol to which an endpoint belongs. */
export const upstreamProtocolFor = (endpoint: UpstreamRequest['endpoint']): UpstreamProtocol =>
  endpoint === 'messages' || endpoint === 'count_tokens' ? 'anthropic' : 'openai'

/**
 * Lists the upstreams for each protocol, in configured order. Servers of the OpenAI protocol may also serve the
 * Anthropic endpoints. If an Anthropic upstream exists, it comes first, and OpenAI upstreams are used only with an
 * explicit model list.
 *
 * @example
 * groupByProtocol([openai, claude]).anthropic // [claude]
 */
export function groupByProtocol<T extends RoutingOptions>(
  upstreams: readonly T[],
): Readonly<Record<UpstreamProtocol, readonly T[]>> {
  const openai = upstreams.filter(({ protocol }) => protocol === 'openai')
  const anthropic = upstreams.filter(({ protocol }) => protocol === 'anthropic')
  return {
    openai,
    anthropic: anthropic.length === 0 ? openai : [...anthropic, ...openai.filter(({ models }) => models !== undefined)],
  }
}

/** True if the upstream serves this model. Configured names may end with `*`; without a list it serves every model. */
export const servesModel = ({ models }: RoutingOptions, model: string): boolean =>
  models === undefined ||
  models.some((name) => (name.endsWith('*') ? model.startsWith(name.slice(0, -1)) : model === name))

/** Translates the client's model name to the name that the upstream uses. */
export const resolveModelName = ({ rename }: Pick<UpstreamOptions, 'rename'>, model: string): string =>
  // hasOwn: a model may be called `constructor`.
  rename !== undefined && Object.hasOwn(rename, model) ? (rename[model] as string) : model
