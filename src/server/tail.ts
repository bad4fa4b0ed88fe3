import type { Message } from '../domain/entry.ts'
import type { Key } from '../domain/key.ts'
import type { Memory } from '../memory.ts'

/** The newest messages of a session, at most `many`, found without reading the rest. */
export async function tailOf(memory: Memory, key: Key, many: number): Promise<readonly Message[]> {
  const head = await memory.transcript(key, { limit: many })
  const oldest = head.at(-1)?.sequence
  if (head.length < many || oldest === undefined) return head
  const newest = await newestAfter(memory, key, oldest)
  return newest === oldest ? head : memory.transcript(key, { after: newest - many, limit: many })
}

/** Whether a message is still where it was stored: once its session is forgotten, another one stands in its place or none. */
export async function isThere(memory: Memory, key: Key, message: Message): Promise<boolean> {
  const [found] = await memory.transcript(key, { after: message.sequence - 1, limit: 1 })
  return found !== undefined && found.id === message.id && found.at === message.at && found.role === message.role && found.content === message.content
}

/** Looks ever farther ahead, then ever closer: the number of reads grows with the logarithm of the history. */
async function newestAfter(memory: Memory, key: Key, known: number): Promise<number> {
  const beyond = async (sequence: number): Promise<number | undefined> => (await memory.transcript(key, { after: sequence, limit: 1 }))[0]?.sequence
  let last = known
  let none = Number.POSITIVE_INFINITY
  for (let step = 1; last + 1 < none; ) {
    const probe = none === Number.POSITIVE_INFINITY ? last + step - 1 : Math.floor((last + none) / 2) - 1
    const found = await beyond(probe)
    if (found === undefined) none = probe + 1
    else last = found
    step *= 2
  }
  return last
}
