import type { Knowledge } from '../../domain/entry.ts'
import { type Key, parseKey, personKey, type Scope } from '../../domain/key.ts'
import type { Store } from '../../domain/ports.ts'
import { remember } from '../../memory/knowledge.ts'
import { internalsOf } from '../../memory.ts'
import { notFound } from '../http/httpError.ts'
import { type Handlers, sendJson } from '../http/requestContext.ts'
import { scopeHandler } from './access.ts'
import { newKnowledge } from './bodies.ts'
import { pageById, readBody } from './input.ts'
import { knowledgeView } from './views.ts'

/** Knowledge of a tenant, or of a person of that tenant. */
export const knowledgeRoutes: Handlers = {
  'GET /api/scopes/{scope}/knowledge': scopeHandler(
    ['person', 'after', 'limit'],
    async ({ server, client, query }, scope) => {
      const { store } = internalsOf(server.memories.scopes)
      const entries = await listKnowledge(store, ownerKey(scope, query.get('person') ?? undefined))
      sendJson(client.response, 200, pageById(entries.map(knowledgeView), query))
    },
  ),
  'POST /api/scopes/{scope}/knowledge': scopeHandler([], async (context, scope) => {
    const { person, ...knowledge } = await readBody(context, newKnowledge)
    const memory = context.server.memories.scopes
    if (knowledge.session !== undefined) parseKey(`${scope}:${knowledge.session}`)
    const stored =
      person === undefined
        ? await memory.remember(scope, knowledge)
        : (await remember(internalsOf(memory), ownerKey(scope, person), knowledge)).entry
    sendJson(context.client.response, 201, knowledgeView(stored))
  }),
  'DELETE /api/scopes/{scope}/knowledge/{knowledge}': scopeHandler(
    ['person'],
    async ({ server, client, query, params: { knowledge: id = '' } }, scope) => {
      const memory = server.memories.scopes
      const owner = ownerKey(scope, query.get('person') ?? undefined)
      // The same key holds other kinds of entries, which this route must not delete.
      const entries = await listKnowledge(internalsOf(memory).store, owner)
      if (!entries.some((entry) => entry.id === id)) throw notFound()
      if (owner.id === '') await memory.forget({ key: scope, messageId: id })
      else await internalsOf(memory).store.erase(owner, { entries: [id] })
      client.response.writeHead(204).end()
    },
  ),
}

const ownerKey = (scope: Scope, person: string | undefined): Key =>
  person === undefined ? parseKey(scope) : personKey(scope, person)

async function listKnowledge(store: Store, owner: Key): Promise<readonly Knowledge[]> {
  return (await store.readHead(owner, 0)).derived.filter((entry) => entry.kind === 'knowledge')
}
