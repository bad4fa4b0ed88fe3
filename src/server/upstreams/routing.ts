import type { Protocol } from '../auth/headers.ts'
import type { Call } from './backend.ts'
import type { UpstreamOptions } from './upstream.ts'

/** Options of a single upstream that is given by its base URL alone. It uses the OpenAI protocol. */
export const soleUpstream = (base: string, key?: string): UpstreamOptions => ({
  name: 'upstream',
  base,
  protocol: 'openai',
  key,
})

type RoutingOptions = Pick<UpstreamOptions, 'protocol' | 'models'>

/** Returns the upstream protocol to which an endpoint belongs. */
export const upstreamProtocolFor = (endpoint: Call['dialect']): Protocol =>
  endpoint === 'messages' || endpoint === 'count_tokens' ? 'anthropic' : 'openai'

/**
 * Lists the upstreams for each protocol, in configured order. Servers of the OpenAI protocol may also serve the Anthropic
 * endpoints. If an Anthropic upstream exists, it comes first, and OpenAI upstreams are used only with an explicit model list.
 *
 * @example
 * groupByProtocol([openai, claude]).anthropic // [claude]
 */
export function groupByProtocol<T extends RoutingOptions>(
  upstreams: readonly T[],
): Readonly<Record<Protocol, readonly T[]>> {
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
