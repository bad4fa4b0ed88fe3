import { z } from 'zod'
import { aboutIn } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, isInner, parseKey, type Scope } from '../../domain/key.ts'
import type { Store } from '../../domain/ports.ts'
import type { Listed } from '../../domain/session.ts'
import { internalsOf } from '../../memory.ts'
import { everywhere } from '../auth/credential.ts'
import { Refusal } from '../http/httpError.ts'
import { type Exchange, type Handlers, own, send } from '../http/requestContext.ts'
import type { House } from '../serverContext.ts'
import { bodyIn, json, millis, text } from './fields.ts'
import { pageOf } from './page.ts'
import { checkQuery, limitIn } from './query.ts'
import { scopeIn } from './scope.ts'
import { beginSession, endSession, isThere, lose, ofSession, storesOf, withSession } from './session.ts'
import { shownSession } from './shown.ts'

const beginning = z.strictObject({
  key: text,
  template: text.exactOptional(),
  idle: millis.exactOptional(),
  age: millis.exactOptional(),
  person: text.exactOptional(),
  metadata: json.exactOptional(),
})
const transfer = z.strictObject({ to: text })

/** What there is of sessions, how they begin, move and end. */
export const sessions: Handlers = {
  'GET /api/sessions': list,
  'POST /api/sessions': begin,
  'GET /api/sessions/{key}': ofSession([], async ({ client }, { head }) =>
    send(client.response, 200, shownSession(head)),
  ),
  'DELETE /api/sessions/{key}': ofSession([], async ({ house, client }, session) => {
    const { id, scope } = session.key
    if (id === '')
      throw new Refusal(
        400,
        'no_session',
        `${scope} is a tenant and does not end. To forget it, POST { "scope": "${scope}" } to /api/forget.`,
        'key',
      )
    await endSession(house, session)
    client.response.writeHead(204).end()
  }),
  'GET /api/sessions/{key}/metrics': ofSession([], async ({ house, client }, { key }) =>
    send(client.response, 200, house.tallies.session(formatKey(key))),
  ),
  'POST /api/sessions/{key}/transfer': ofSession([], async (exchange, { key, memory }) => {
    const { house, client } = exchange
    const to = own(exchange, parseKey((await bodyIn(exchange, transfer)).to))
    await house.lanes.run(formatKey(key), async () => {
      // A session of that name may live in another store; this one is looked at when the transfer begins.
      if (await isThere(house, to, internalsOf(memory).sessions))
        throw new MemoryError('conflict', `Session ${formatKey(to)} has begun already. Choose another key.`, {
          param: 'to',
        })
      await memory.transfer(key, to)
    })
    lose(house, key)
    send(client.response, 200, { key: formatKey(to) })
  }),
}

async function begin(exchange: Exchange): Promise<void> {
  const { house, client, query } = exchange
  checkQuery(query, [])
  const { key: named, ...description } = await bodyIn(exchange, beginning)
  const key = own(exchange, parseKey(named))
  if (key.id === '')
    throw new Refusal(
      400,
      'no_session',
      `${key.scope} is a tenant, which is always there. Write ${key.scope}:session.`,
      'key',
    )
  await beginSession(house, key, description)
  await withSession(house, key, async ({ head }) => send(client.response, 201, shownSession(head)))
}

async function list(exchange: Exchange): Promise<void> {
  const { house, client, query } = exchange
  const scopes = scopesFor(exchange)
  checkQuery(query, ['scope', 'after', 'limit'])
  const [limit, after] = [limitIn(query), query.get('after') ?? '']
  const found = await listed(house, scopes, after === '' ? '' : formatKey(parseKey(after)), limit + 1)
  const { items, next } = pageOf(found, limit, ({ key }) => formatKey(key))
  const heads = await Promise.all(items.map(({ store, key }) => store.head(key, 0)))
  // One that was moved is listed where it goes on.
  const shown = heads
    .filter(({ revision, derived }) => revision > 0 && aboutIn(derived)?.movedTo === undefined)
    .map(shownSession)
  send(client.response, 200, { items: shown, next })
}

/** The scopes whose sessions somebody may list; undefined for those of all. */
function scopesFor(exchange: Exchange): readonly Scope[] | undefined {
  const { credential, query } = exchange
  const asked = query.get('scope')
  if (asked !== null) return [scopeIn(exchange, asked)]
  if (credential === undefined || credential.scopes.includes(everywhere)) return undefined
  return [...credential.scopes].sort()
}

type Placed = Listed & { readonly store: Store }

/** The first sessions after a key, of all stores, in order of scope and id. */
async function listed(
  house: House,
  scopes: readonly Scope[] | undefined,
  after: string,
  most: number,
): Promise<readonly Placed[]> {
  const found = new Map<string, Placed>()
  for (const [store, memory] of storesOf(house)) {
    for (const filter of scopes?.map((scope) => ({ scope })) ?? [{}]) {
      for (const one of await shownIn(store, { ...filter, after }, internalsOf(memory).clock(), most))
        found.set(formatKey(one.key), { ...one, store })
    }
  }
  return [...found.values()].sort(byKey).slice(0, most)
}

async function shownIn(
  store: Store,
  filter: { readonly scope?: Scope; readonly after: string },
  now: number,
  most: number,
): Promise<readonly Listed[]> {
  const found: Listed[] = []
  for (let { after } = filter; found.length < most; ) {
    const page = await store.list({ ...filter, after, limit: most })
    found.push(...page.filter((one) => isShown(one) && one.expiresAt > now))
    const last = page.at(-1)
    if (last === undefined) break
    after = formatKey(last.key)
  }
  return found.slice(0, most)
}

/** What the engine keeps for itself is no session; a tenant is one as far as something was said to it. */
const isShown = ({ key, messages }: Listed): boolean => !isInner(key) && (key.id !== '' || messages > 0)

const byKey = ({ key: a }: Listed, { key: b }: Listed): number =>
  a.scope === b.scope ? order(a.id, b.id) : order(a.scope, b.scope)
const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
