import type { Knowledge } from '../../domain/entry.ts'
import { knowledgeKey, parseKey, type Scope } from '../../domain/key.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { changeKnowledge, restoreKnowledge } from '../../upkeep/confidence.ts'
import { notFound } from '../http/httpError.ts'
import { type Handlers, sendJson, sendPage } from '../http/requestContext.ts'
import { scopeHandler } from './access.ts'
import { newKnowledge } from './bodies.ts'
import { pageById, readBody, readFlag } from './input.ts'
import { knowledgeView } from './views.ts'

/** Knowledge of a tenant, or of a person of that tenant. */
export const knowledgeRoutes: Handlers = {
  'GET /api/scopes/{scope}/knowledge': scopeHandler(
    ['person', 'archived', 'after', 'limit'],
    async ({ server, client, query }, scope) => {
      const isListed = readFlag(query, 'archived', false) ? () => true : ({ archived }: Knowledge) => archived !== true
      const entries = (await listKnowledge(server.memories.scopes, scope, readPerson(query))).filter(isListed)
      await sendPage(client.response, pageById(entries.map(knowledgeView), query))
    },
  ),
  'POST /api/scopes/{scope}/knowledge': scopeHandler([], async (context, scope) => {
    const knowledge = await readBody(context, newKnowledge)
    if (knowledge.session !== undefined) parseKey(`${scope}:${knowledge.session}`)
    const stored = await context.server.memories.scopes.remember(scope, knowledge)
    sendJson(context.client.response, 201, knowledgeView(stored))
  }),
  'POST /api/scopes/{scope}/knowledge/{knowledge}/restore': scopeHandler(
    ['person'],
    async ({ server, client, query, params }, scope) => {
      const person = readPerson(query)
      const { id } = await findKnowledge(server.memories.scopes, scope, person, params.knowledge)
      const { store, clock } = internalsOf(server.memories.scopes)
      const restore = (known: Knowledge): Knowledge => restoreKnowledge(known, clock())
      const restored = await changeKnowledge(store, knowledgeKey(parseKey(scope), person), id, restore)
      sendJson(client.response, 200, knowledgeView(restored))
    },
  ),
  'POST /api/scopes/{scope}/knowledge/{knowledge}/approve': scopeHandler(
    ['person'],
    async ({ server, client, query, params }, scope) => {
      const person = readPerson(query)
      const { id } = await findKnowledge(server.memories.scopes, scope, person, params.knowledge)
      const owner = person === undefined ? {} : { person }
      const approved = await server.memories.scopes.upkeep.approve(scope, id, owner)
      sendJson(client.response, 200, knowledgeView(approved))
    },
  ),
  'DELETE /api/scopes/{scope}/knowledge/{knowledge}': scopeHandler(
    ['person'],
    async ({ server, client, query, params }, scope) => {
      const memory = server.memories.scopes
      const person = readPerson(query)
      // The same key holds other kinds of entries, which this route must not delete.
      const { id } = await findKnowledge(memory, scope, person, params.knowledge)
      await memory.forget({ key: scope, messageId: id, ...(person !== undefined && { person }) })
      client.response.writeHead(204).end()
    },
  ),
}

const readPerson = (query: URLSearchParams): string | undefined => query.get('person') ?? undefined

async function listKnowledge(memory: Memory, scope: Scope, person: string | undefined): Promise<readonly Knowledge[]> {
  const { derived } = await internalsOf(memory).store.readHead(knowledgeKey(parseKey(scope), person), 0)
  return derived.filter((entry) => entry.kind === 'knowledge')
}

/** Finds knowledge by its id, archived or not. Throws 404. */
async function findKnowledge(
  memory: Memory,
  scope: Scope,
  person: string | undefined,
  id: string | undefined,
): Promise<Knowledge> {
  const found = (await listKnowledge(memory, scope, person)).find((entry) => entry.id === id)
  if (found === undefined) throw notFound()
  return found
}
