import { z } from 'zod'
import { parseKey } from '../../domain/key.ts'
import type { Forgotten, Target } from '../../memory/forget.ts'
import type { Memory } from '../../memory.ts'
import { Refusal } from '../http/httpError.ts'
import { type Exchange, type Handlers, own, send } from '../http/requestContext.ts'
import type { House } from '../serverContext.ts'
import { bodyIn, text } from './fields.ts'
import { checkQuery } from './query.ts'
import { scopeIn } from './scope.ts'
import { isThere } from './session.ts'

const named = z.strictObject({
  key: text.exactOptional(),
  messageId: text.exactOptional(),
  scope: text.exactOptional(),
  text: text.exactOptional(),
})

/** Forgets for good. What is not there is forgotten already: the receipt says so. */
export const forget: Handlers = {
  'POST /api/forget': async (exchange) => {
    const { house, client, query } = exchange
    checkQuery(query, [])
    const target = targetOf(exchange, await bodyIn(exchange, named))
    const receipts: Forgotten[] = []
    for (const memory of await holders(house, target))
      receipts.push(await house.memories.using(memory, () => memory.forget(target)))
    drop(house, target)
    send(client.response, 200, together(receipts))
  },
}

function targetOf(exchange: Exchange, { key, messageId, scope, text: words }: z.infer<typeof named>): Target {
  if (key !== undefined && scope === undefined && words === undefined) {
    own(exchange, parseKey(key))
    return messageId === undefined ? { key } : { key, messageId }
  }
  if (scope !== undefined && key === undefined && messageId === undefined) {
    scopeIn(exchange, scope)
    return words === undefined ? { scope } : { scope, text: words }
  }
  throw new Refusal(
    400,
    'bad_target',
    'Say what to forget: { key }, { key, messageId }, { scope } or { scope, text }.',
    'key',
  )
}

/** All memories that may hold it. The one it is at home in comes first: what is made anew is made its way. */
async function holders(house: House, target: Target): Promise<ReadonlySet<Memory>> {
  const key = 'key' in target ? parseKey(target.key) : undefined
  const isHome = key !== undefined && (await isThere(house, key))
  return new Set([isHome ? (await house.memories.of(key)).memory : house.memories.sessions, ...house.memories.all()])
}

function drop({ tallies, memories, models }: House, target: Target): void {
  if ('text' in target || 'messageId' in target) return
  const { scope, id } = parseKey('scope' in target ? target.scope : target.key)
  tallies.forget(target)
  memories.forget(scope)
  models?.forget(scope, ...('scope' in target ? [] : [id]))
}

/** Several receipts as one, with each session once. */
function together(receipts: readonly Forgotten[]): Forgotten {
  const sessions = new Map<string, Forgotten['sessions'][number]>()
  for (const one of receipts.flatMap((receipt) => receipt.sessions)) {
    const { entries = [], renewed = [] } = sessions.get(one.key) ?? {}
    const again = [...new Set([...renewed, ...(one.renewed ?? [])])]
    sessions.set(one.key, {
      key: one.key,
      entries: [...new Set([...entries, ...one.entries])],
      ...(again.length === 0 ? {} : { renewed: again }),
    })
  }
  return { at: Math.max(...receipts.map(({ at }) => at)), sessions: [...sessions.values()] }
}
