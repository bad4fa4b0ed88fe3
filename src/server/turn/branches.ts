import type { MessageInput } from '../../domain/chat.ts'
import { formatMessageId, type Message, type SequenceRange, type SessionMetadata } from '../../domain/entry.ts'
import { hasErrorCode } from '../../domain/error.ts'
import { branchKey, formatKey, type Key } from '../../domain/key.ts'
import type { Store } from '../../domain/ports.ts'
import { noExpiry, type SessionHead } from '../../domain/session.ts'
import { internalsOf, type Memory } from '../../memory.ts'

/**
 * Moves messages of one conversation into a branch of the session. The branch is written before anything leaves the
 * session; after an interruption, the same or a later request completes the move.
 */
export async function branchOff(
  memory: Memory,
  key: Key,
  [from, to]: SequenceRange,
  conversation: number | undefined,
): Promise<void> {
  const { sessions, clock } = internalsOf(memory)
  const messages = await sessions.readMessages(key, { after: from - 1, before: to + 1, limit: Number.MAX_SAFE_INTEGER })
  const cut = messages.filter((message) => message.branch === conversation)
  const [first] = cut
  if (first === undefined) return
  const branch = branchKey(key, first.sequence)
  const { epoch, lastSequence } = await sessions.readHead(branch, 0)
  // An interrupted request may have written some of the messages already.
  const missing = cut.filter(({ sequence }) => sequence > lastSequence)
  const at = clock()
  const metadata: SessionMetadata = {
    kind: 'about',
    id: 'about',
    at,
    branchOf: { session: key.id, after: first.sequence - 1 },
    sources: [],
  }
  for (const run of splitIntoRuns(missing)) {
    const [{ sequence, offset }] = run
    const append = run.map(({ kind: _kind, id: _id, sequence: _sequence, offset: _offset, ...message }) => message)
    await sessions.commit({
      id: `branch ${sequence}`,
      key: branch,
      at,
      epoch,
      from: { sequence, offset },
      append,
      put: [metadata],
      drop: [],
      expiresAt: noExpiry,
    })
  }
  // The messages are still in the branch.
  const messageIds = cut.map(({ sequence }) => formatMessageId(sequence))
  await memory.forget({ key: formatKey(key), messageIds }, { deferWipe: true })
}

/** Moves messages back that `branchOff` has just moved into a branch, for a turn that was refused. */
export async function restoreBranch(memory: Memory, key: Key, from: number): Promise<void> {
  const { sessions, clock } = internalsOf(memory)
  const branch = branchKey(key, from)
  const messages = await sessions.readMessages(branch, { after: from - 1, limit: Number.MAX_SAFE_INTEGER })
  for (const { kind: _kind, id: _id, sequence, offset, ...message } of messages) {
    const { epoch, expiresAt } = await sessions.readHead(key, 0)
    await sessions.commit({
      key,
      at: clock(),
      epoch,
      from: { sequence, offset },
      append: [message],
      put: [],
      drop: [],
      expiresAt,
    })
  }
  await sessions.erase(branch)
}

/** Splits messages into runs of consecutive sequence numbers, so that the branch keeps the numbers. */
const splitIntoRuns = (messages: readonly Message[]): readonly (readonly [Message, ...Message[]])[] =>
  [...Map.groupBy(messages, ({ sequence }, index) => sequence - index).values()] as [Message, ...Message[]][]

/**
 * Stores a late reply in the branch of its question, under a sequence number that its session has not used and will not
 * use: replies are identified by their number, in whichever branch they are.
 */
export async function appendLate(
  memory: Memory,
  key: Key,
  branch: Key,
  reply: MessageInput,
): Promise<Message | undefined> {
  const { sessions, appendRaw } = internalsOf(memory)
  const sequence = (await skipNumbers(sessions, key, ({ lastSequence }) => lastSequence + 2)) - 1
  await skipNumbers(sessions, branch, () => sequence)
  return (await appendRaw(branch, [reply], { sequence })).stored[0]
}

const maxSkipAttempts = 1_000

/**
 * Chooses the next number of a session and returns it; lower unused numbers stay unused. Chooses again if the session
 * changes meanwhile.
 */
async function skipNumbers(store: Store, key: Key, choose: (head: SessionHead) => number): Promise<number> {
  for (let attempts = 1; ; attempts++) {
    const head = await store.readHead(key, 1)
    const { epoch, revision, lastSequence, touchedAt, expiresAt, recent } = head
    const sequence = choose(head)
    if (sequence <= lastSequence + 1) return sequence
    const [newest] = recent
    const offset = newest === undefined ? 0 : newest.offset + newest.weight
    const change = { key, at: touchedAt, epoch, base: revision, append: [], put: [], drop: [], expiresAt }
    try {
      await store.commit({ ...change, from: { sequence, offset } })
      return sequence
    } catch (error) {
      if (!hasErrorCode(error, 'conflict') || attempts === maxSkipAttempts) throw error
    }
  }
}

export type BranchSummary = { readonly branch: number; readonly messages: number; readonly cutAt: number }

/** Lists the branches of a session, the oldest first. */
export async function listBranches(memory: Memory, key: Key): Promise<readonly BranchSummary[]> {
  const listed = await internalsOf(memory).sessions.list({
    scope: key.scope,
    after: `${key.scope}:${key.id}:`,
    limit: 100_000,
  })
  const branches: BranchSummary[] = []
  for (const { key: other, messages, startedAt } of listed) {
    if (!other.id.startsWith(`${key.id}:`)) break
    const number = other.id.slice(key.id.length + 1)
    if (/^\d+$/.test(number)) branches.push({ branch: Number(number), messages, cutAt: startedAt })
  }
  return branches.sort((left, right) => left.branch - right.branch)
}

/** Messages of a branch; empty when there is no such branch. */
export const readBranch = (memory: Memory, key: Key, branch: number): Promise<readonly Message[]> =>
  internalsOf(memory).sessions.readMessages(branchKey(key, branch), { after: 0, limit: Number.MAX_SAFE_INTEGER })

/** The message of a session with this sequence number. */
export async function readMessageAt(memory: Memory, key: Key, sequence: number): Promise<Message | undefined> {
  const range = { after: sequence - 1, before: sequence + 1, limit: 1 }
  return (await internalsOf(memory).sessions.readMessages(key, range))[0]
}

/** Finds the branch that holds a message cut from its session; undefined once the message is forgotten. */
export async function findBranchWith(memory: Memory, key: Key, sequence: number): Promise<Key | undefined> {
  for (const { branch } of await listBranches(memory, key)) {
    if (branch > sequence) continue
    const candidate = branchKey(key, branch)
    if ((await readMessageAt(memory, candidate, sequence)) !== undefined) return candidate
  }
  return undefined
}
