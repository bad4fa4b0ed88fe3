import type { Attributes } from '@opentelemetry/api'
import type { Pseudonym } from './pseudonym.ts'
import { modelName, type Turn } from './turn.ts'

/** What a span tells of a request from the beginning. */
export const requestAttributes = (method: string, route: string): Attributes => ({
  'http.request.method': method,
  'http.route': route,
})

/**
 * What a span tells of a turn, by OpenTelemetry's names for HTTP and GenAI where there are any. Those that would hold
 * what was said (`gen_ai.input.messages`, `gen_ai.memory.query.text` and the like) are left out for good.
 */
export function turnAttributes(turn: Turn, pseudonym: Pseudonym): Attributes {
  const { key, scope, protocol, tokens, millis } = turn
  return defined({
    'gen_ai.operation.name': 'chat',
    // The format of the request, which is all that is known of who answers behind an address.
    'gen_ai.provider.name': protocol === 'messages' ? 'anthropic' : 'openai',
    'gen_ai.request.model': modelName(turn.model),
    // By the conventions it is only told of streams.
    'gen_ai.request.stream': turn.streamed ? true : undefined,
    'gen_ai.conversation.id': key === undefined ? undefined : pseudonym(key),
    'gen_ai.usage.input_tokens': tokens.prompt,
    'gen_ai.usage.output_tokens': tokens.completion,
    'gen_ai.usage.cache_read.input_tokens': tokens.cached,
    'gen_ai.response.time_to_first_chunk':
      turn.streamed && millis.first !== undefined ? millis.first / 1_000 : undefined,
    'threadkeep.scope': scope,
    'threadkeep.profile': turn.profile,
    'threadkeep.upstream': turn.upstream,
    'threadkeep.memory.seconds': millis.memory / 1_000,
    'threadkeep.tokens.shown': tokens.shown,
    'threadkeep.tokens.history': tokens.history,
    'threadkeep.tokens.saved': tokens.saved,
    'threadkeep.tokens.cacheable': tokens.cacheable,
    'threadkeep.retries': turn.retries,
    'threadkeep.aborted': turn.aborted,
    'threadkeep.stored': turn.stored,
    'threadkeep.degraded': [...turn.degraded],
  })
}

const defined = (attributes: Attributes): Attributes =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
