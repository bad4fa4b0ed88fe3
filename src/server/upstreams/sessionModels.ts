import type { IncomingHttpHeaders } from 'node:http'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key, type Scope } from '../../domain/key.ts'
import type { Model } from '../../domain/ports.ts'
import { anthropicModel } from '../../providers/anthropic.ts'
import { openaiModel } from '../../providers/openai.ts'
import { ownKeyHeaders, type Protocol } from '../auth/headers.ts'
import { hasModel, modelFor, soleUpstream, whoIsAsked } from './choice.ts'
import type { UpstreamOptions } from './upstream.ts'

export type SessionModelOptions = {
  /** The model servers that clients ask, or the base address of the only one, which speaks OpenAI's protocol. */
  readonly upstream: string | readonly UpstreamOptions[]
  /** The model for all upkeep; without it, that of each session's newest request. */
  readonly model?: string | undefined
}

/** Who answered a session's newest request, by which name it was asked for, and the client's own key if it was asked with that. */
type Known = {
  readonly upstream: UpstreamOptions
  readonly model: string
  readonly headers: Readonly<Record<string, string>> | undefined
}

/** So many sessions have their model at hand; the others have theirs again with their next request. */
const most = 10_000
const makers = { openai: openaiModel, anthropic: anthropicModel } as const

/**
 * The model behind each session, for upkeep: the one that answers its client, asked with the key its client uses there. Both
 * are kept in RAM alone. A client's key goes to nobody who did not get it from the client's own request.
 */
export class SessionModels {
  private readonly upstreams: readonly UpstreamOptions[]
  private readonly asked: Readonly<Record<Protocol, readonly UpstreamOptions[]>>
  /** The one model for all upkeep and who has it, if there is one. */
  private readonly only: Pick<Known, 'model' | 'upstream'> | undefined
  private readonly known = new Map<string, Known>()

  constructor({ upstream: given, model }: SessionModelOptions) {
    this.upstreams = typeof given === 'string' ? [soleUpstream(given)] : given
    this.asked = whoIsAsked(this.upstreams)
    this.only = model === undefined ? undefined : { model, upstream: holderOf(model, this.upstreams) }
  }

  /** Takes note of who answered a client (`from`) for what, and of the key it was asked with. */
  heard(key: Key, model: unknown, from: string, headers: IncomingHttpHeaders, isGuarded: boolean): void {
    const upstream = this.upstreams.find(({ name }) => name === from)
    if (upstream === undefined || typeof model !== 'string' || model === '') return
    const name = formatKey(key)
    this.known.delete(name)
    this.known.set(name, { upstream, model, headers: isGuarded ? undefined : this.ownKey(upstream, model, headers) })
    const [oldest] = this.known.keys()
    if (this.known.size > most && oldest !== undefined) this.known.delete(oldest)
  }

  /** Forgets what it knows of a session, or of all sessions of a tenant and the tenant itself. */
  forget(scope: Scope, id?: string): void {
    const own = id === undefined || id === '' ? scope : `${scope}:${id}`
    for (const name of this.known.keys())
      if (name === own || (id === undefined && name.startsWith(`${scope}:`))) this.known.delete(name)
  }

  /** The model for a session's upkeep; none until its client has been answered. */
  for(key: Key): Model | undefined {
    const known = this.known.get(formatKey(key))
    const { model, upstream } = this.only ?? known ?? {}
    if (model === undefined || upstream === undefined) return undefined
    const headers = upstream === known?.upstream ? known.headers : undefined
    return makers[upstream.protocol]({
      baseUrl: upstream.base,
      model: modelFor(upstream, model),
      ...(headers === undefined ? { apiKey: upstream.key } : { headers }),
      // Upkeep asks once more by itself, and is in no hurry.
      tries: 1,
    })
  }

  /** The client's key as this server got it; none if this server stood in for another one, which the key was meant for. */
  private ownKey(upstream: UpstreamOptions, model: string, headers: IncomingHttpHeaders): Known['headers'] {
    // Only Anthropic's clients name a version.
    const spoken = headers['anthropic-version'] === undefined ? upstream.protocol : 'anthropic'
    const first = this.asked[spoken].find((one) => hasModel(one, model))
    return first === upstream ? ownKeyHeaders(upstream.protocol, headers, false, spoken) : undefined
  }
}

/** Who is asked for a model whomever the client asks: a server that is said to have it, before one that may have it. */
function holderOf(model: string, upstreams: readonly UpstreamOptions[]): UpstreamOptions {
  const able = upstreams.filter((upstream) => hasModel(upstream, model))
  const holder = able.find(({ models }) => models !== undefined) ?? able[0]
  if (holder !== undefined) return holder
  const message = `upkeep is ${JSON.stringify(model)}, a model that no upstream is configured for. Name one that is, builtin, or off.`
  throw new MemoryError('bad-option', message, { param: 'upkeep' })
}
