import { internalsOf } from '../../memory.ts'
import { notFound } from '../http/httpError.ts'
import { checkScope, type Handlers, sendJson } from '../http/requestContext.ts'
import { findReceiptById, keyOfReceipt, listReceipts, type StoredReceipt } from '../receipts.ts'
import { sessionHandler, withSession } from './access.ts'
import { checkQuery, readCursor, readFlag, readLimit } from './input.ts'

/** Receipts of replies. */
export const receiptRoutes: Handlers = {
  'GET /api/receipts/{receipt}': async (context) => {
    const { server, client, query } = context
    checkQuery(query, [])
    const id = context.params.receipt ?? ''
    const key = keyOfReceipt(id)
    if (key === undefined) throw notFound()
    checkScope(context, key.scope)
    const receipt = await withSession(server, key, ({ memory }) =>
      findReceiptById(internalsOf(memory).sessions, key, id),
    )
    if (receipt === undefined) throw notFound()
    sendJson(client.response, 200, receipt)
  },
  'GET /api/sessions/{key}/receipts': sessionHandler(
    ['after', 'limit', 'ledger'],
    async ({ client, query }, { key, memory }) => {
      const { sessions } = internalsOf(memory)
      const after = query.has('after') ? readCursor(query) : undefined
      const page = await listReceipts(sessions, key, readLimit(query), after)
      const isLast = page.next === null || (await listReceipts(sessions, key, 1, Number(page.next))).items.length === 0
      const items = readFlag(query, 'ledger', true) ? page.items : page.items.map(withoutLedger)
      sendJson(client.response, 200, { items, next: isLast ? null : page.next })
    },
  ),
}

/** A receipt without the ledger, which is most of its size. */
const withoutLedger = ({ ledger: _ledger, ...receipt }: StoredReceipt & { readonly ledger?: unknown }) => receipt
