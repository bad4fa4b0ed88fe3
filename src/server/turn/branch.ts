import type { Incoming } from '../../domain/chat.ts'
import { type About, type Message, messageId } from '../../domain/entry.ts'
import { branchKey, formatKey, type Key } from '../../domain/key.ts'
import type { Store } from '../../domain/ports.ts'
import { never } from '../../domain/session.ts'
import { appended } from '../../memory/appending.ts'
import type { Memory } from '../../memory.ts'

/**
 * Takes what a client no longer tells, from a sequence number on, out of a session and keeps it as a branch of its own.
 * The branch is safe before anything leaves the session; half-way through, the same request, or another, does the rest.
 */
export async function branchOff(memory: Memory, key: Key, from: number): Promise<void> {
  const { sessions, clock } = memory.parts
  const cut = await sessions.page(key, { after: from - 1, limit: Number.MAX_SAFE_INTEGER })
  const [first] = cut
  if (first === undefined) return
  const to = branchKey(key, first.sequence)
  const { epoch, last } = await sessions.head(to, 0)
  // Some of it may have been branched off before, by somebody who did not come to the end.
  const rest = cut.filter(({ sequence }) => sequence > last)
  const at = clock()
  const about: About = {
    kind: 'about',
    id: 'about',
    at,
    branchOf: { session: key.id, after: first.sequence - 1 },
    sources: [],
  }
  for (const run of runsIn(rest)) {
    const [{ sequence, offset }] = run
    const append = run.map(({ kind: _kind, id: _id, sequence: _sequence, offset: _offset, ...said }) => said)
    await sessions.commit({
      id: `branch ${sequence}`,
      key: to,
      at,
      epoch,
      from: { sequence, offset },
      append,
      put: [about],
      drop: [],
      expiresAt: never,
    })
  }
  await memory.forget({ key: formatKey(key), messageIds: cut.map(({ sequence }) => messageId(sequence)) })
}

/** Messages that follow on each other without a gap: wherever they are brought, they keep their numbers. */
const runsIn = (messages: readonly Message[]): readonly (readonly [Message, ...Message[]])[] =>
  [...Map.groupBy(messages, ({ sequence }, place) => sequence - place).values()] as [Message, ...Message[]][]

/**
 * Stores a reply that comes late in the branch of its question, under a number that its session has not given and will not
 * give: a reply is known by its number, wherever it stands.
 */
export async function appendLate(memory: Memory, key: Key, branch: Key, reply: Incoming): Promise<readonly Message[]> {
  const { sessions } = memory.parts
  const number = (await sessions.head(key, 0)).last + 1
  await skipTo(sessions, key, number + 1)
  await skipTo(sessions, branch, number)
  return (await appended(memory.parts, branch, [reply], {})).stored
}

/** Lets the next message of a session have this number, and nobody those before it. */
async function skipTo(store: Store, key: Key, sequence: number): Promise<void> {
  const { epoch, last, touchedAt, expiresAt, recent } = await store.head(key, 1)
  if (sequence <= last + 1) return
  const [newest] = recent
  const offset = newest === undefined ? 0 : newest.offset + newest.weight
  await store.commit({
    key,
    at: touchedAt,
    epoch,
    from: { sequence, offset },
    append: [],
    put: [],
    drop: [],
    expiresAt,
  })
}

/** A branch of a session, in a list. */
export type Branch = { readonly branch: number; readonly messages: number; readonly cutAt: number }

/** What was cut off a session, the oldest first. */
export async function branchesOf(memory: Memory, key: Key): Promise<readonly Branch[]> {
  const { sessions } = memory.parts
  const found: Branch[] = []
  for (const { key: other, messages, startedAt } of await sessions.list({
    scope: key.scope,
    after: `${key.scope}:${key.id}:`,
    limit: 100_000,
  })) {
    if (!other.id.startsWith(`${key.id}:`)) break
    const number = other.id.slice(key.id.length + 1)
    if (/^\d+$/.test(number)) found.push({ branch: Number(number), messages, cutAt: startedAt })
  }
  return found.sort((left, right) => left.branch - right.branch)
}

/** The messages of a branch; none for one that is not there. */
export const branchMessages = (memory: Memory, key: Key, branch: number): Promise<readonly Message[]> =>
  memory.parts.sessions.page(branchKey(key, branch), { after: 0, limit: Number.MAX_SAFE_INTEGER })

/** The message of a session that has this sequence number, if it is there: a list of one, or of none. */
export const pageOf = ({ parts: { sessions } }: Memory, key: Key, sequence: number): Promise<readonly Message[]> =>
  sessions.page(key, { after: sequence - 1, before: sequence + 1, limit: 1 })

/** Where a message is now that is no longer in its session: in the branch it was cut off with, or, once it is forgotten, nowhere. */
export async function branchWith(memory: Memory, key: Key, sequence: number): Promise<Key | undefined> {
  for (const { branch } of await branchesOf(memory, key)) {
    if (branch <= sequence && (await pageOf(memory, branchKey(key, branch), sequence)).length > 0)
      return branchKey(key, branch)
  }
  return undefined
}
