import { type About, type Message, messageId } from '../../domain/entry.ts'
import { branchKey, formatKey, type Key } from '../../domain/key.ts'
import type { Memory } from '../../memory.ts'

/**
 * Takes what a client no longer tells, from a sequence number on, out of a session and keeps it as a branch of its own.
 * The branch is safe before anything leaves the session; half-way through, the same request does the rest.
 */
export async function branchOff(memory: Memory, key: Key, from: number): Promise<void> {
  const { sessions, clock } = memory.parts
  const cut = await sessions.page(key, { after: from - 1, limit: Number.MAX_SAFE_INTEGER })
  const [first] = cut
  if (first === undefined) return
  const { expiresAt } = await sessions.head(key, 0)
  const to = branchKey(key, first.sequence)
  const { epoch } = await sessions.head(to, 0)
  const at = clock()
  const about: About = { kind: 'about', id: 'about', at, branchOf: { session: key.id, after: first.sequence - 1 }, sources: [] }
  const append = cut.map(({ kind: _kind, id: _id, sequence: _sequence, offset: _offset, ...said }) => said)
  const start = { sequence: first.sequence, offset: first.offset }
  await sessions.commit({ id: 'branch', key: to, at, epoch, from: start, append, put: [about], drop: [], expiresAt })
  await memory.forget({ key: formatKey(key), messageIds: cut.map(({ sequence }) => messageId(sequence)) })
}

/** A branch of a session, in a list. */
export type Branch = { readonly branch: number; readonly messages: number; readonly cutAt: number }

/** What was cut off a session, the oldest first. */
export async function branchesOf(memory: Memory, key: Key): Promise<readonly Branch[]> {
  const { sessions } = memory.parts
  const name = new RegExp(`^${key.id.replace(/[.+]/g, '\\$&')}:(\\d+)$`)
  const found: Branch[] = []
  // A colon sorts after digits and signs, so what is cut off a session does not come right behind it.
  for (const { key: other, messages, startedAt } of await sessions.list({ scope: key.scope, after: `${formatKey(key)}:`, limit: 100_000 })) {
    if (!other.id.startsWith(`${key.id}:`)) break
    const number = name.exec(other.id)?.[1]
    if (number !== undefined) found.push({ branch: Number(number), messages, cutAt: startedAt })
  }
  return found.sort((left, right) => left.branch - right.branch)
}

/** The messages of a branch; none for one that is not there. */
export const branchMessages = (memory: Memory, key: Key, branch: number): Promise<readonly Message[]> =>
  memory.parts.sessions.page(branchKey(key, branch), { after: 0, limit: Number.MAX_SAFE_INTEGER })
