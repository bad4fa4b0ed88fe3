import { type About, aboutIn } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key, parseKey } from '../../domain/key.ts'
import type { Store } from '../../domain/ports.ts'
import { type Head, isExpired } from '../../domain/session.ts'
import type { Description } from '../../lifecycle/metadata.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { notFound, Refusal } from '../http/httpError.ts'
import { type Exchange, type Handler, own } from '../http/requestContext.ts'
import type { House } from '../serverContext.ts'
import { checkQuery } from './query.ts'

/** A session that is there, with the memory it is at home in. */
export type Session = {
  readonly key: Key
  readonly memory: Memory
  readonly head: Head
  readonly about: About | undefined
}

/**
 * Answers about the session in the address, if it is the asker's own and is there; `takes` is what the query may hold.
 *
 * @example
 * 'GET /api/sessions/{key}': ofSession([], async ({ client }, { head }) => send(client.response, 200, shownSession(head)))
 */
export function ofSession(
  takes: readonly string[],
  answer: (exchange: Exchange, session: Session) => Promise<void>,
): Handler {
  return async (exchange) => {
    const key = own(exchange, parseKey(exchange.params.key ?? ''))
    checkQuery(exchange.query, takes)
    await withSession(exchange.house, key, (session) => answer(exchange, session))
  }
}

/** Works with a session; one that is not there, or is over, is refused in the words for somebody else's. */
export async function withSession<T>(house: House, key: Key, work: (session: Session) => Promise<T>): Promise<T> {
  if (!(await isThere(house, key))) throw notFound()
  const { memory } = await house.memories.of(key)
  return house.memories.using(memory, async () => {
    const head = await internalsOf(memory).sessions.head(key, 0)
    if (head.revision === 0) throw notFound()
    const about = aboutIn(head.derived)
    if (about?.movedTo === undefined) return work({ key, memory, head, about })
    const to = `${key.scope}:${about.movedTo}`
    throw new MemoryError('moved', `Session ${formatKey(key)} goes on as ${to}. Ask for that one.`, { to })
  })
}

/** The stores in which sessions are kept, each with a memory that uses it. */
export const storesOf = ({ memories }: House): ReadonlyMap<Store, Memory> =>
  new Map(memories.all().map((memory) => [internalsOf(memory).sessions, memory]))

/** Whether there is such a session, in any store but one. Asked before where it is at home: of one that has not begun nobody knows. */
export async function isThere(house: House, key: Key, except?: Store): Promise<boolean> {
  for (const [store, memory] of storesOf(house)) {
    if (store === except) continue
    const head = await store.head(key, 0)
    if (head.revision > 0 && !isExpired(head, internalsOf(memory).clock())) return true
  }
  return false
}

/** Begins a session before anything is said in it; there must be none of this name. */
export async function beginSession(house: House, key: Key, { template, ...description }: Description): Promise<void> {
  if (!house.memories.hasSessions)
    throw new Refusal(
      400,
      'no_sessions',
      'This server does not remember sessions. Leave the session out of the key.',
      'key',
    )
  await house.lanes.run(formatKey(key), async () => {
    if (await isThere(house, key))
      throw new MemoryError('conflict', `Session ${formatKey(key)} has begun already. Choose another key.`, {
        param: 'key',
      })
    // Where an earlier session of this name was at home does not count.
    house.memories.forget(key.scope)
    const { memory } = await house.memories.of(key, template)
    await house.memories.using(memory, () => memory.describe(key, description))
  })
}

/** Ends a session: whoever wants to hear of its end does, then it is gone. */
export async function endSession(house: House, { key, memory }: Session): Promise<void> {
  if (!(await memory.end(key))) throw notFound()
  lose(house, key)
}

/** Forgets what the server itself knows of a session that has ended or gone elsewhere. */
export function lose({ tallies, memories, models }: House, key: Key): void {
  tallies.forget({ key: formatKey(key) })
  models?.forget(key.scope, key.id)
  memories.forget(key.scope)
}
