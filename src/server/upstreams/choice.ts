import type { Protocol } from '../auth/headers.ts'
import type { Call } from './backend.ts'
import type { UpstreamOptions } from './upstream.ts'

/** The only model server, where nothing but its address is given. */
export const soleUpstream = (base: string, key?: string): UpstreamOptions => ({
  name: 'upstream',
  base,
  protocol: 'openai',
  key,
})

/** What decides whether a model server is asked. */
type Able = Pick<UpstreamOptions, 'protocol' | 'models'>

/** Whose protocol something is asked for in. */
export const protocolOf = (dialect: Call['dialect']): Protocol =>
  dialect === 'messages' || dialect === 'count_tokens' ? 'anthropic' : 'openai'

/**
 * Who is asked in each protocol, in this order. Servers that speak OpenAI's may speak Anthropic's as well; but where there is
 * one for Anthropic's, what clients send is meant for that one, and others are asked only for models they are said to have.
 *
 * @example
 * whoIsAsked([openai, claude]).anthropic // [claude]
 */
export function whoIsAsked<T extends Able>(upstreams: readonly T[]): Readonly<Record<Protocol, readonly T[]>> {
  const openai = upstreams.filter(({ protocol }) => protocol === 'openai')
  const anthropic = upstreams.filter(({ protocol }) => protocol === 'anthropic')
  return {
    openai,
    anthropic: anthropic.length === 0 ? openai : [...anthropic, ...openai.filter(({ models }) => models !== undefined)],
  }
}

/** Whether a model server is to be asked for this model. */
export const hasModel = ({ models }: Able, model: string): boolean =>
  models === undefined ||
  models.some((name) => (name.endsWith('*') ? model.startsWith(name.slice(0, -1)) : model === name))

/** What a model server calls the model that a client names. */
export const modelFor = ({ rename }: Pick<UpstreamOptions, 'rename'>, model: string): string =>
  // A model may be called like something that every object has.
  rename !== undefined && Object.hasOwn(rename, model) ? (rename[model] as string) : model
