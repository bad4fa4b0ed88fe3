import type { OnSessionEnd } from '../../lifecycle/endEvent.ts'

/** So many ends are known to have been told. */
const most = 10_000

/**
 * Tells of each end once, although several memories share the outbox it waits in: whoever comes with the same end waits
 * for the one that tells it. An end that was not heard may come again.
 *
 * @example
 * const onSessionEnd = toldOnce(webhook({ url, secret }))
 */
export function toldOnce(tell: OnSessionEnd): OnSessionEnd {
  const told = new Map<string, Promise<void>>()
  return (session, data, end) => {
    const telling = told.get(end.id) ?? Promise.resolve().then(() => tell(session, data, end))
    told.set(end.id, telling)
    telling.catch(() => told.delete(end.id))
    const [oldest] = told.keys()
    if (told.size > most && oldest !== undefined) told.delete(oldest)
    return telling
  }
}
