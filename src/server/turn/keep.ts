import type { Incoming } from '../../domain/chat.ts'
import type { Message } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, isInner, type Key, parseKey } from '../../domain/key.ts'
import type { Ledger } from '../../domain/ledger.ts'
import type { Memory } from '../../memory.ts'
import { appendLate, branchWith, pageOf } from './branch.ts'

/** A reply, and the question it was given to: by its sequence number, in the epoch in which it was asked. */
export type Given = {
  readonly reply: Incoming
  readonly question: number
  readonly epoch: number
  readonly ledger: Ledger | undefined
}

/** A reply as it was kept, and the session that it belongs to by now, itself or with a branch. */
export type Kept = { readonly key: Key; readonly message: Message }

/**
 * Stores a reply behind its question. That may have been cut off meanwhile, and then the reply goes to the same branch; or
 * forgotten, and then the reply must not bring it back; or the session has moved.
 */
export async function keepReply(memory: Memory, key: Key, given: Given): Promise<Kept | undefined> {
  const { reply, question, epoch, ledger } = given
  try {
    const head = await memory.parts.sessions.head(key, 1)
    const isNewest = head.recent[0]?.sequence === question
    const isCut = !isNewest && (await pageOf(memory, key, question)).length === 0
    const where = isCut ? await branchWith(memory, key, question) : key
    if (where === undefined) return await keptElsewhere(memory, key, given)
    const options = ledger === undefined ? { epoch } : { epoch, answers: ledger }
    const [message] = isCut
      ? await appendLate(memory, key, where, reply)
      : (await memory.take(key, [reply], options, isNewest ? head : undefined)).stored
    if (message === undefined) return undefined
    if ((await pageOf(memory, key, question)).length > 0 || (await branchWith(memory, key, question)) !== undefined)
      return { key, message }
    // Whoever forgets does not wait for a reply: a question that went while its reply was being stored takes that with it.
    await (isCut
      ? memory.parts.sessions.erase(where, { entries: [message.id] })
      : memory.forget({ key: formatKey(key), messageId: message.id }))
    return undefined
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    if (error.code === 'erased') return undefined
    if (error.code !== 'moved' || error.to === undefined) throw error
    return keepReply(memory, parseKey(error.to), { ...given, epoch: await memory.epoch(error.to) })
  }
}

/** A session that has moved took its questions along, under the same numbers. */
async function keptElsewhere(memory: Memory, key: Key, given: Given): Promise<Kept | undefined> {
  const session = isInner(key) ? undefined : (await memory.about(key))?.movedTo
  if (session === undefined) return undefined
  const to = parseKey(`${key.scope}:${session}`)
  return keepReply(memory, to, { ...given, epoch: await memory.epoch(to) })
}
