import { Agent } from 'undici'
import type { Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { endpoint, shownAddress } from '../../providers/address.ts'
import { brokenOff, type Check, notAReply, refused, unreachable } from '../../providers/failure.ts'
import {
  type Upstream as Holder,
  ownKeyHeaders,
  type Protocol,
  requestHeaders,
  returnedHeaders,
} from '../auth/headers.ts'
import { Refusal } from '../http/httpError.ts'
import { roundOver } from '../http/pendingReads.ts'
import type { UpstreamState } from '../observability/ready.ts'
import type { Answer, Call } from './backend.ts'
import { modelFor, protocolOf } from './choice.ts'
import { type Begun, exchange, type Terms } from './exchange.ts'

/** How long a model server may take: to begin its answer, between two pieces of it, and in all. */
export type Patience = { readonly first: Millis; readonly idle: Millis; readonly total: Millis }

/** A model server as it is configured. */
export type UpstreamOptions = {
  readonly name: string
  /** Such as `http://localhost:11434/v1`. */
  readonly base: string
  readonly protocol: Protocol
  readonly key?: string | undefined
  /** The models it has, as names that may end with `*`; any, when left out. */
  readonly models?: readonly string[] | undefined
  /** The model it is asked for in place of the one a client names, if that differs. */
  readonly rename?: Readonly<Record<string, string>> | undefined
}

/** Where each thing is asked for, below the base address. */
const paths: Readonly<Record<Call['dialect'], string>> = {
  chat: '/chat/completions',
  responses: '/responses',
  messages: '/messages',
  count_tokens: '/messages/count_tokens',
  embeddings: '/embeddings',
}
const none: readonly string[] = []
const check: Check = { address: '--upstream or OPENAI_BASE_URL', key: 'OPENAI_API_KEY' }

/** What tells whose key a request is made with, and when nobody wants it any more. */
type Asker = Pick<Call, 'headers' | 'isGuarded' | 'signal'>

/** Where something is asked for, as requests and errors name it, worked out once. */
type Target = { readonly origin: string; readonly path: string; readonly where: string; readonly terms: Terms }

/** One model server: sends a request once and tells apart what can go wrong. */
export class Upstream {
  readonly name: string
  readonly base: string
  /** How it did when it was last asked. */
  state: UpstreamState = 'ok'
  private readonly options: UpstreamOptions
  private readonly patience: Patience
  private readonly agent: Agent
  private readonly targets = new Map<string, Target>()
  private readonly holder: Holder

  constructor(options: UpstreamOptions, patience: Patience) {
    this.options = options
    this.patience = patience
    this.name = options.name
    const { origin, where } = this.target('/models')
    this.base = where.replace(/\/models$/, '')
    this.holder = { origin, protocol: options.protocol, key: options.key }
    this.agent = new Agent({ connect: { timeout: 10_000 }, headersTimeout: patience.first, bodyTimeout: patience.idle })
  }

  get origin(): string {
    return this.holder.origin
  }

  get protocol(): Protocol {
    return this.holder.protocol
  }

  get models(): UpstreamOptions['models'] {
    return this.options.models
  }

  ask(call: Call): Promise<Answer> {
    const { model } = call.body
    const known = typeof model === 'string' ? modelFor(this.options, model) : model
    const body = known === model ? call.body : { ...call.body, model: known }
    return this.send('POST', paths[call.dialect], JSON.stringify(body), call, protocolOf(call.dialect))
  }

  /** The list of its models. */
  list(asker: Asker): Promise<Answer> {
    return this.send('GET', '/models', null, asker, this.protocol)
  }

  close(): Promise<void> {
    return this.agent.close()
  }

  private async send(
    method: 'GET' | 'POST',
    route: string,
    body: string | null,
    asker: Asker,
    spoken: Protocol,
  ): Promise<Answer> {
    const target = this.target(route)
    const { origin, path, where, terms } = target
    const headers = requestHeaders(this.holder, target, asker.headers, asker.isGuarded, spoken)
    if (body !== null) headers['content-type'] = 'application/json'
    let begun: Begun
    try {
      begun = sound(await exchange(this.agent, { origin, path, method, headers, body }, asker.signal, terms), where)
    } catch (error) {
      throw this.failedBy(error, where)
    }
    const { status } = begun
    this.state = status >= 500 ? 'failing' : 'ok'
    if ((status === 401 || status === 403) && this.isHouseKey(asker, spoken)) {
      begun.body.dump()
      this.state = 'failing'
      throw keyRefused()
    }
    await roundOver()
    return {
      status,
      headers: returnedHeaders(spoken, begun.headers),
      where,
      from: this.name,
      retries: 0,
      passedOver: none,
      body: begun.body,
    }
  }

  /** Why there is no answer; how it did is noted. */
  private failedBy(error: unknown, where: string): unknown {
    const failure = failureOf(error, where, (cause) => unreachable(where, { cause }, check))
    if (failure instanceof MemoryError) this.state = failure.code === 'timeout' ? 'failing' : 'down'
    return failure
  }

  /** Whether a request is not made with a key of the client's own. */
  private isHouseKey({ headers, isGuarded }: Asker, spoken: Protocol): boolean {
    return (
      isGuarded ||
      (this.holder.key !== undefined && ownKeyHeaders(this.protocol, headers, isGuarded, spoken) === undefined)
    )
  }

  private target(route: string): Target {
    const known = this.targets.get(route)
    if (known !== undefined) return known
    const url = this.url(route)
    const target = {
      origin: url.origin,
      path: url.pathname + url.search,
      where: shownAddress(url),
      terms: termsOf(this.patience.total, shownAddress(url)),
    }
    this.targets.set(route, target)
    return target
  }

  private url(route: string): URL {
    const { base, protocol } = this.options
    try {
      return protocol === 'anthropic' ? endpoint(base, `/v1${route}`, '/v1') : endpoint(base, route)
    } catch (cause) {
      throw new MemoryError(
        'bad-option',
        'upstream must be an http:// or https:// address without a user name and password, such as http://localhost:11434/v1.',
        { param: 'upstream', cause },
      )
    }
  }
}

const termsOf = (total: Millis, where: string): Terms => ({
  total,
  late: () =>
    new MemoryError(
      'timeout',
      `${where} did not finish its answer in ${total} ms. Ask for less, or allow a longer total time.`,
    ),
  explain: (error) => failureOf(error, where, (cause) => brokenOff(where, cause)),
})

/** What a server says of the operator's key may name it, or the account behind it, and is no business of clients; nor can they mend it by asking again. */
const keyRefused = (): Refusal =>
  new Refusal(502, 'upstream', 'The upstream refused the key it was given.', null, {
    type: 'upstream_error',
    headers: { 'x-should-retry': 'false' },
  })

/** An answer as it has begun, unless it is no answer of a model server. */
function sound(begun: Begun, where: string): Begun {
  const fault = faultOf(begun, where)
  if (fault === undefined) return begun
  begun.body.dump()
  throw fault
}

/** Errors of the upstream go to the client as they are; what is no answer of a model server does not. */
function faultOf({ status, headers }: Begun, where: string): MemoryError | undefined {
  if (status >= 400) return undefined
  if (status >= 300) return refused(where, { status, word: '', tries: 1, model: '', check })
  const { 'content-encoding': coding = '', 'content-type': type = '' } = headers
  if (coding !== '' && coding !== 'identity') return notAReply(where, 'compressed bytes nobody asked for')
  return type.toLowerCase().includes('html') ? notAReply(where, 'a web page') : undefined
}

const late: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
])

function failureOf(error: unknown, where: string, otherwise: (cause: unknown) => MemoryError): unknown {
  if (error instanceof MemoryError || (error instanceof Error && error.name === 'AbortError')) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return late.has(code)
    ? new MemoryError('timeout', `${where} did not answer in time. Try again, or ask for less.`, { cause: error })
    : otherwise(error)
}
