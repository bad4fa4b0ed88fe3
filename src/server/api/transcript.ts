import type { Json } from '../../domain/entry.ts'
import { notFound } from '../http/httpError.ts'
import { type Handlers, type RequestContext, readNumber, sendJson, sendPage } from '../http/requestContext.ts'
import { listBranches, readBranch } from '../turn/branches.ts'
import { type SessionAccess, sessionHandler } from './access.ts'
import { recordUpdate } from './bodies.ts'
import { pageById, readBody, readCursor, readFlag, readLimit, readTime, toPage } from './input.ts'
import { factView, messageView, summaryView } from './views.ts'

const pageParameters = ['after', 'limit'] as const

/** Messages, branches, summaries, facts and record of a session, and the context a model would get. */
export const transcriptRoutes: Handlers = {
  'GET /api/sessions/{key}/messages': sessionHandler(pageParameters, async ({ client, query }, { key, memory }) => {
    const limit = readLimit(query)
    const messages = await memory.transcript(key, { after: readCursor(query), limit: limit + 1 })
    const page = toPage(messages.map(messageView), limit, ({ sequence }) => sequence)
    await sendPage(client.response, page)
  }),
  'GET /api/sessions/{key}/context': sessionHandler(['query', 'budget', 'masked'], async (context, session) => {
    const { key, memory } = session
    const built = await memory.context(key, readContextOptions(context, session))
    const { messages, text } = built
    const masked = readFlag(context.query, 'masked', false) && (await memory.mask(key, { messages, text } as Json))
    sendJson(context.client.response, 200, { ...built, ...(masked as object) })
  }),
  'GET /api/sessions/{key}/summaries': sessionHandler(pageParameters, async ({ client, query }, { key, memory }) => {
    const summaries = await memory.upkeep.summaries(key)
    await sendPage(client.response, pageById(summaries.map(summaryView), query))
  }),
  'GET /api/sessions/{key}/facts': sessionHandler(
    ['as_of', 'history', ...pageParameters],
    async ({ client, query }, { key, memory }) => {
      const asOf = readTime(query, 'as_of')
      const history = readFlag(query, 'history', false)
      const facts = await memory.upkeep.facts(key, asOf === undefined ? { history } : { asOf })
      await sendPage(client.response, pageById(facts.map(factView), query))
    },
  ),
  'GET /api/sessions/{key}/record': sessionHandler(['as_of'], async ({ client, query }, { key, memory }) => {
    const asOf = readTime(query, 'as_of')
    sendJson(client.response, 200, await memory.upkeep.record(key, asOf === undefined ? {} : { asOf }))
  }),
  'POST /api/sessions/{key}/record': sessionHandler([], async (context, { key, memory }) => {
    const update = await readBody(context, recordUpdate)
    sendJson(context.client.response, 200, await memory.upkeep.update(key, update))
  }),
  'DELETE /api/sessions/{key}/record': sessionHandler([], async ({ client }, { key, memory }) => {
    await memory.upkeep.clear(key)
    client.response.writeHead(204).end()
  }),
  'GET /api/sessions/{key}/branches': sessionHandler(pageParameters, async ({ client, query }, { key, memory }) => {
    const branches = (await listBranches(memory, key)).filter(({ branch }) => branch > readCursor(query))
    const page = toPage(branches, readLimit(query), ({ branch }) => branch)
    sendJson(client.response, 200, page)
  }),
  'GET /api/sessions/{key}/branches/{branch}': sessionHandler(
    pageParameters,
    async ({ client, query, params: { branch = '' } }, { key, memory }) => {
      const all = /^\d{1,15}$/.test(branch) ? await readBranch(memory, key, Number(branch)) : []
      if (all.length === 0) throw notFound()
      const messages = all.filter(({ sequence }) => sequence > readCursor(query))
      const page = toPage(messages.map(messageView), readLimit(query), ({ sequence }) => sequence)
      await sendPage(client.response, page)
    },
  ),
}

/** Options of a context; the person comes from a header, or from the session's metadata. */
export function readContextOptions({ query, request }: RequestContext, { metadata }: SessionAccess) {
  const [question, header] = [query.get('query'), request.headers['x-threadkeep-person']]
  const person = typeof header === 'string' && header.trim() !== '' ? header.trim() : metadata?.person
  return {
    ...(question === null ? {} : { query: question }),
    ...(query.has('budget') ? { budget: readNumber(query, 'budget', 1, 100_000_000) } : {}),
    ...(person === undefined ? {} : { person }),
  }
}
