import { internalsOf } from '../../memory.ts'
import { notFound } from '../http/httpError.ts'
import { checkScope, type Handlers, send } from '../http/requestContext.ts'
import { findReceipt, keyOfReceipt, listReceipts } from '../receipts.ts'
import { checkQuery, limitIn, placeIn } from './query.ts'
import { ofSession, withSession } from './session.ts'

/** What answers were made from. */
export const receipts: Handlers = {
  'GET /api/receipts/{receipt}': async (exchange) => {
    const {
      house,
      client,
      query,
      params: { receipt: id = '' },
    } = exchange
    const key = keyOfReceipt(id)
    if (key === undefined) throw notFound()
    checkScope(exchange, key.scope)
    checkQuery(query, [])
    const receipt = await withSession(house, key, ({ memory }) =>
      findReceipt(internalsOf(memory).sessions, key, { id }),
    )
    if (receipt === undefined) throw notFound()
    send(client.response, 200, receipt)
  },
  'GET /api/sessions/{key}/receipts': ofSession(['after', 'limit'], async ({ client, query }, { key, memory }) => {
    const { sessions } = internalsOf(memory)
    const page = await listReceipts(sessions, key, limitIn(query), query.has('after') ? placeIn(query) : undefined)
    const isLast = page.next === null || (await listReceipts(sessions, key, 1, Number(page.next))).items.length === 0
    send(client.response, 200, { items: page.items, next: isLast ? null : page.next })
  }),
}
