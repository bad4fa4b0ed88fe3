import { MemoryError } from '../../domain/error.ts'
import { parseKey, type Scope } from '../../domain/key.ts'
import { type Exchange, type Handler, own } from '../http/requestContext.ts'
import { checkQuery } from './query.ts'

/** Answers about the tenant in the address, if it is the asker's own; `takes` is what the query may hold. */
export function ofScope(
  takes: readonly string[],
  answer: (exchange: Exchange, scope: Scope) => Promise<void>,
): Handler {
  return async (exchange) => {
    const scope = scopeIn(exchange, exchange.params.scope ?? '')
    checkQuery(exchange.query, takes)
    const { memories } = exchange.house
    await memories.using(memories.scopes, () => answer(exchange, scope))
  }
}

/** A tenant of the asker's own, named without a session. */
export function scopeIn(exchange: Exchange, text: string): Scope {
  const { scope, id } = own(exchange, parseKey(text))
  if (id === '') return scope
  throw new MemoryError('bad-key', `${scope}:${id} is a session, and this is about tenants. Write ${scope}.`, {
    param: 'scope',
  })
}
