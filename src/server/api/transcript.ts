import { notFound } from '../http/httpError.ts'
import { type Exchange, type Handlers, numberIn, send } from '../http/requestContext.ts'
import { listBranches, readBranch } from '../turn/branches.ts'
import { pageIn, pageOf } from './page.ts'
import { limitIn, placeIn, timeIn } from './query.ts'
import { ofSession, type Session } from './session.ts'
import { shownFact, shownMessage, shownSummary } from './shown.ts'

const paged = ['after', 'limit'] as const

/** What was said in a session, what stands for it, and what a model would be shown of it. */
export const transcript: Handlers = {
  'GET /api/sessions/{key}/messages': ofSession(paged, async ({ client, query }, { key, memory }) => {
    const limit = limitIn(query)
    const messages = await memory.transcript(key, { after: placeIn(query), limit: limit + 1 })
    send(
      client.response,
      200,
      pageOf(messages.map(shownMessage), limit, ({ sequence }) => sequence),
    )
  }),
  'GET /api/sessions/{key}/context': ofSession(['query', 'budget'], async (exchange, session) => {
    send(exchange.client.response, 200, await session.memory.context(session.key, askedOf(exchange, session)))
  }),
  'GET /api/sessions/{key}/summaries': ofSession(paged, async ({ client, query }, { key, memory }) => {
    send(client.response, 200, pageIn((await memory.upkeep.summaries(key)).map(shownSummary), query))
  }),
  'GET /api/sessions/{key}/facts': ofSession(['as_of', ...paged], async ({ client, query }, { key, memory }) => {
    const asOf = timeIn(query, 'as_of')
    send(
      client.response,
      200,
      pageIn((await memory.upkeep.facts(key, asOf === undefined ? {} : { asOf })).map(shownFact), query),
    )
  }),
  'GET /api/sessions/{key}/branches': ofSession(paged, async ({ client, query }, { key, memory }) => {
    const branches = (await listBranches(memory, key)).filter(({ branch }) => branch > placeIn(query))
    send(
      client.response,
      200,
      pageOf(branches, limitIn(query), ({ branch }) => branch),
    )
  }),
  'GET /api/sessions/{key}/branches/{branch}': ofSession(paged, async ({ client, query, params }, { key, memory }) => {
    const all = /^\d{1,15}$/.test(params.branch ?? '') ? await readBranch(memory, key, Number(params.branch)) : []
    if (all.length === 0) throw notFound()
    const messages = all.filter(({ sequence }) => sequence > placeIn(query))
    send(
      client.response,
      200,
      pageOf(messages.map(shownMessage), limitIn(query), ({ sequence }) => sequence),
    )
  }),
}

/** What a context is asked for with: who speaks is told by a header, or was told when the session began. */
function askedOf({ query, request }: Exchange, { about }: Session) {
  const [asked, header] = [query.get('query'), request.headers['x-threadkeep-person']]
  const person = typeof header === 'string' && header.trim() !== '' ? header.trim() : about?.person
  return {
    ...(asked === null ? {} : { query: asked }),
    ...(query.has('budget') ? { budget: numberIn(query, 'budget', 1, 100_000_000) } : {}),
    ...(person === undefined ? {} : { person }),
  }
}
