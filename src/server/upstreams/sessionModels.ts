import type { IncomingHttpHeaders } from 'node:http'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, isInScope, type Key, type Scope } from '../../domain/key.ts'
import { LruCache } from '../../domain/lruCache.ts'
import type { Model, ModelRequest, ModelUsage } from '../../domain/ports.ts'
import { anthropicModel } from '../../providers/anthropic.ts'
import { openaiModel } from '../../providers/openai.ts'
import { buildClientKeyHeaders, type UpstreamProtocol } from '../auth/upstreamHeaders.ts'
import {
  createDefaultUpstream,
  groupByProtocol,
  resolveModelName,
  servesModel,
  type UpstreamOptions,
} from './upstream.ts'

export type SessionModelOptions = {
  /** Upstreams of the server, or the base URL of its only one, which uses the OpenAI protocol. */
  readonly upstreams: string | readonly UpstreamOptions[]
  /** Model for the upkeep of all sessions. Default: the model of each session's newest request. */
  readonly model?: string | undefined
}

/** Upstream and model of a session's newest request, and the headers with the client's own key if it was used. */
type SessionModel = {
  readonly upstream: UpstreamOptions
  readonly model: string
  readonly headers: Readonly<Record<string, string>> | undefined
}

/** A call of the upkeep model that brought a reply, or the beginning of one. */
export type UpkeepCall = {
  readonly model: string
  readonly upstream: string
  readonly messages: ModelRequest['messages']
  readonly reply: string
  /** As reported by the upstream; undefined when it reports none. */
  readonly usage: ModelUsage | undefined
}

/** The least recently used sessions are evicted; their next request adds them again. */
const maxSessions = 10_000
const maxSessionBytes = 16_000_000
/** Estimated memory of a session besides the names of its model and the values of its headers. */
const sessionOverheadBytes = 500
const modelFactories = { openai: openaiModel, anthropic: anthropicModel } as const

/**
 * Upkeep model of each session: the model that answers its client, called with the client's own key. Both are kept in
 * memory only. A client's key is sent only to the upstream that received it in the client's own request.
 */
export class SessionModels {
  private readonly upstreams: readonly UpstreamOptions[]
  private readonly upstreamsByProtocol: Readonly<Record<UpstreamProtocol, readonly UpstreamOptions[]>>
  /** Configured model for all sessions and its upstream. */
  private readonly fixedModel: Pick<SessionModel, 'model' | 'upstream'> | undefined
  private readonly sessions = new LruCache<string, SessionModel>({
    maxEntries: maxSessions,
    maxTotalSize: maxSessionBytes,
  })

  /** Receives the calls of all models. */
  onCall: ((key: Key, call: UpkeepCall) => void) | undefined

  /** Throws a `MemoryError` if no upstream serves the configured model. */
  constructor({ upstreams, model }: SessionModelOptions) {
    this.upstreams = typeof upstreams === 'string' ? [createDefaultUpstream(upstreams)] : upstreams
    this.upstreamsByProtocol = groupByProtocol(this.upstreams)
    this.fixedModel = model === undefined ? undefined : { model, upstream: selectUpstream(model, this.upstreams) }
  }

  /** Records the model, upstream and client key of a session's newest request. */
  record(
    key: Key,
    model: unknown,
    upstreamName: string,
    headers: IncomingHttpHeaders,
    withholdClientKey: boolean,
  ): void {
    const upstream = this.upstreams.find(({ name }) => name === upstreamName)
    if (upstream === undefined || typeof model !== 'string' || model === '') return
    const ownHeaders = withholdClientKey ? undefined : this.selectClientKey(upstream, model, headers)
    const characters = model.length + Object.values(ownHeaders ?? {}).reduce((sum, { length }) => sum + length, 0)
    this.sessions.set(formatKey(key), { upstream, model, headers: ownHeaders }, sessionOverheadBytes + 2 * characters)
  }

  /** Forgets a session, or without `id` the tenant and all its sessions. */
  forget(scope: Scope, id?: string): void {
    if (id === undefined) this.sessions.deleteWhere((session) => isInScope(session, scope))
    else this.sessions.delete(formatKey({ scope, id }))
  }

  /** Returns the model for a session's upkeep; undefined until its client has received a response. */
  get(key: Key): Model | undefined {
    const session = this.sessions.get(formatKey(key))
    const { model, upstream } = this.fixedModel ?? session ?? {}
    if (model === undefined || upstream === undefined) return undefined
    const headers = upstream === session?.upstream ? session.headers : undefined
    const caller = modelFactories[upstream.protocol]({
      baseUrl: upstream.base,
      model: resolveModelName(upstream, model),
      ...(headers === undefined ? { apiKey: upstream.key } : { headers }),
      // Upkeep has retries of its own.
      maxAttempts: 1,
    })
    return withCallListener(caller, (call) => this.onCall?.(key, { model, upstream: upstream.name, ...call }))
  }

  /**
   * Selects the headers with the client's key; undefined if the upstream answered as a fallback for the one the key was
   * meant for.
   */
  private selectClientKey(
    upstream: UpstreamOptions,
    model: string,
    headers: IncomingHttpHeaders,
  ): SessionModel['headers'] {
    // Only Anthropic clients send this header.
    const protocol = headers['anthropic-version'] === undefined ? upstream.protocol : 'anthropic'
    const first = this.upstreamsByProtocol[protocol].find((one) => servesModel(one, model))
    return first === upstream ? buildClientKeyHeaders(upstream.protocol, headers, false, protocol) : undefined
  }
}

/** Reports each call of a model when its reply ends. A call without any reply is taken as not billed. */
function withCallListener(
  model: Model,
  onCall: (call: Pick<UpkeepCall, 'messages' | 'reply' | 'usage'>) => void,
): Model {
  return {
    name: model.name,
    async *reply(request, signal) {
      let usage: ModelUsage | undefined
      let reply = ''
      const onUsage = (reported: ModelUsage): void => {
        usage = reported
        request.onUsage?.(reported)
      }
      try {
        for await (const chunk of model.reply({ ...request, onUsage }, signal)) {
          reply += chunk
          yield chunk
        }
      } finally {
        if (usage !== undefined || reply !== '') onCall({ messages: request.messages, reply, usage })
      }
    },
  }
}

/**
 * Selects the upstream for a configured upkeep model. One that lists the model precedes one that serves every model.
 */
function selectUpstream(model: string, upstreams: readonly UpstreamOptions[]): UpstreamOptions {
  const candidates = upstreams.filter((upstream) => servesModel(upstream, model))
  const upstream = candidates.find(({ models }) => models !== undefined) ?? candidates[0]
  if (upstream !== undefined) return upstream
  const message = `upkeep is ${JSON.stringify(model)}, a model that no upstream is configured for. Name one that is, builtin, or off.`
  throw new MemoryError('bad-option', message, { param: 'upkeep' })
}
