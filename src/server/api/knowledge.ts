import { z } from 'zod'
import type { Knowledge } from '../../domain/entry.ts'
import { type Key, parseKey, personKey, type Scope } from '../../domain/key.ts'
import { categories } from '../../domain/knowledge.ts'
import type { Store } from '../../domain/ports.ts'
import { remember } from '../../memory/knowledge.ts'
import { internalsOf } from '../../memory.ts'
import { notFound } from '../http/httpError.ts'
import { type Handlers, send } from '../http/requestContext.ts'
import { bodyIn, json, text } from './fields.ts'
import { pageIn } from './page.ts'
import { ofScope } from './scope.ts'
import { shownKnowledge } from './shown.ts'

const told = z.strictObject({
  category: z.enum(categories, `must be one of ${categories.join(', ')}`),
  key: text,
  value: json,
  confidence: z.number('must be a number from 0 to 1').exactOptional(),
  session: text.exactOptional(),
  person: text.exactOptional(),
})

/** What a tenant knows, and what it knows of a person. What a session says comes here only when somebody puts it here. */
export const knowledge: Handlers = {
  'GET /api/scopes/{scope}/knowledge': ofScope(
    ['person', 'after', 'limit'],
    async ({ house, client, query }, scope) => {
      const { store } = internalsOf(house.memories.scopes)
      send(
        client.response,
        200,
        pageIn((await knownAt(store, homeOf(scope, query.get('person') ?? undefined))).map(shownKnowledge), query),
      )
    },
  ),
  'POST /api/scopes/{scope}/knowledge': ofScope([], async (exchange, scope) => {
    const { person, ...given } = await bodyIn(exchange, told)
    const memory = exchange.house.memories.scopes
    if (given.session !== undefined) parseKey(`${scope}:${given.session}`)
    const kept =
      person === undefined
        ? await memory.remember(scope, given)
        : (await remember(internalsOf(memory), homeOf(scope, person), given)).entry
    send(exchange.client.response, 201, shownKnowledge(kept))
  }),
  'DELETE /api/scopes/{scope}/knowledge/{knowledge}': ofScope(
    ['person'],
    async ({ house, client, query, params: { knowledge: id = '' } }, scope) => {
      const memory = house.memories.scopes
      const home = homeOf(scope, query.get('person') ?? undefined)
      // Other entries live in the same place, and this is not to take them.
      if (!(await knownAt(internalsOf(memory).store, home)).some((known) => known.id === id)) throw notFound()
      if (home.id === '') await memory.forget({ key: scope, messageId: id })
      else await internalsOf(memory).store.erase(home, { entries: [id] })
      client.response.writeHead(204).end()
    },
  ),
}

const homeOf = (scope: Scope, person: string | undefined): Key =>
  person === undefined ? parseKey(scope) : personKey(scope, person)

async function knownAt(store: Store, home: Key): Promise<readonly Knowledge[]> {
  return (await store.head(home, 0)).derived.filter((entry) => entry.kind === 'knowledge')
}
