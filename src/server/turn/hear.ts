import type { Incoming, Parsed } from '../../domain/chat.ts'
import { isBlank, type Message } from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import { type Head, isExpired } from '../../domain/session.ts'
import type { Appended } from '../../memory/appending.ts'
import type { Memory } from '../../memory.ts'
import { withTalk } from '../protocols/ask.ts'
import type { Ask, Dialect, Sent } from '../protocols/dialect.ts'
import { listReceipts } from '../receipts/receipts.ts'
import { branchOff } from './branch.ts'
import { isContinued, reconciled } from './known.ts'
import { offTheRecord, recall, turnOf } from './recall.ts'
import type { Reconciled } from './reconcile.ts'
import { asSent, type Preamble, type Shown } from './shown.ts'

/** A turn of a conversation that is to be heard. */
export type Hearing = {
  readonly memory: Memory
  readonly key: Key
  readonly dialect: Dialect
  /** Without a reply that the client has begun itself: that is nobody's turn yet. */
  readonly ask: Ask
  readonly preamble: Preamble
  /** Whether nothing of it is to be kept. */
  readonly isOff: boolean
  readonly person: string | undefined
  /** The sequence number of the reply that the client goes on from, where it names one. */
  readonly after: number | undefined
  /** Whether the client sends the very same request once more. */
  readonly isRetry: boolean
  /** Whether all that share the session see one conversation. A person who is known by name only may have several at once. */
  readonly isOneTalk: boolean
}

/** A turn as memory has heard it: what to send, and when and where it ends, if it is part of the conversation. */
export type Heard = {
  readonly shown: Shown
  readonly epoch: number | undefined
  /** The sequence number of its last message. */
  readonly question: number
  readonly how: Reconciled['how']
  readonly appended: number
}

/** How many more stored messages are compared than were sent: replies that were never resent may stand among them. */
const more = 16
/** Beyond so many, what a client sends is new. */
const farthest = 4_096
/** So many characters are stored at once. */
const stint = 262_144

/** What leaves nothing. */
const aside = { epoch: undefined, question: 0, appended: 0 } as const

/** How many of the newest messages are read to find what of a request is new. */
export const reachOf = ({ said }: Ask): number => said.length + more

/**
 * Hears a turn: what is new in it is stored, what the client has taken back becomes a branch, then memory is shown. The user's
 * words are safe first. Who has just read the newest messages of the session, and has waited for nothing since, tells it as `read`.
 */
export async function hear(hearing: Hearing, read?: Head): Promise<Heard> {
  const { memory, key, ask } = hearing
  // Without a word of the conversation this is no turn of it.
  if (ask.said.length === 0) return { ...aside, shown: asSent(hearing, ask, 'messages'), how: 'exact' }
  const direct = read && continuing(hearing, read)
  const { stored, fresh, cut, how } = direct ?? (await related(hearing))
  if (hearing.isOff) return { ...aside, shown: await offTheRecord(hearing, stored, fresh), how }
  if (cut !== undefined) await branchOff(memory, key, cut)
  const line = cut === undefined ? stored : stored.filter((message) => message.sequence < cut)
  const news = ask.said.slice(fresh)
  const { stored: appended, epoch } = await (news.length === 1
    ? storedAtOnce(memory, key, news, direct && read)
    : storedInStints(memory, key, news))
  const own = turnOf(ask)
  const shown = await recall(hearing, own, endOf(line, appended, own.length))
  return { shown, epoch, question: (appended.at(-1) ?? line.at(-1))?.sequence ?? 0, how, appended: appended.length }
}

/** The last messages of a session, so many of them; mostly they are just what was appended to it. */
function endOf(line: readonly Message[], appended: readonly Message[], many: number): readonly Message[] {
  const missing = many - appended.length
  return missing === 0 ? appended : missing < 0 ? appended.slice(-missing) : [...line.slice(-missing), ...appended]
}

type Related = Reconciled & { readonly stored: readonly Message[] }

/** How a turn relates to a session that was just read, if that tells it already, as it mostly does. */
function continuing(hearing: Hearing, head: Head): Related | undefined {
  const { memory, key, ask } = hearing
  if (hearing.isRetry || isExpired(head, memory.parts.clock())) return undefined
  if (isContinued(head.recent, ask.said))
    return { stored: head.recent, fresh: head.recent.length, cut: undefined, how: 'continued' }
  const limit = reachOf(ask)
  const read = head.recent.length > limit ? head.recent.slice(-limit) : head.recent
  const stored = spokenIn(read)
  const result = reconciled(memory, key, { stored, hasEarlier: read.length === limit }, ask.said)
  if (result instanceof Promise || result.how === 'disjoint' || result.cut !== undefined) return undefined
  return { stored, fresh: result.fresh, cut: undefined, how: result.how }
}

/** How the turn relates to what is stored; where nothing of it is found among the newest messages, more of them are read. */
async function related(hearing: Hearing): Promise<Related> {
  const { memory, key, ask, after } = hearing
  for (let limit = reachOf(ask); ; limit *= 4) {
    const read = await memory.transcript(key, { limit, newest: true })
    const stored = spokenIn(read)
    if (after !== undefined) return { stored, ...(await continued(hearing, after)) }
    const known = { stored, hasEarlier: read.length === limit }
    const result = again(hearing, stored) ?? (await reconciled(memory, key, known, ask.said))
    if (result.how === 'disjoint' && known.hasEarlier && limit <= farthest) continue
    const mayCut =
      result.cut === undefined ||
      hearing.isRetry ||
      (hearing.isOneTalk && (await isGrounded(hearing, stored, result.cut, result.fresh)))
    return { stored, fresh: result.fresh, cut: mayCut ? result.cut : undefined, how: result.how }
  }
}

const isSystem = ({ role }: Message): boolean => role === 'system'
const spokenIn = (read: readonly Message[]): readonly Message[] =>
  read.some(isSystem) ? read.filter((message) => !isSystem(message)) : read

/** What a client that names the reply before its turn has to say is new, and what came after that reply is not its conversation. */
async function continued({ memory, key }: Hearing, after: number): Promise<Reconciled> {
  const [next] = await memory.parts.sessions.page(key, { after, limit: 1 })
  return { fresh: 0, cut: next?.sequence, how: next === undefined ? 'continued' : 'regenerated' }
}

/** A client that tries again, because no reply has reached it, wants another one if there was one; it says nothing new. */
function again({ isRetry, ask }: Hearing, stored: readonly Message[]): Reconciled | undefined {
  const [only] = ask.said
  if (!isRetry || ask.said.length !== 1 || only?.role !== 'user') return undefined
  const asked = stored.findLastIndex(({ role }) => role === 'user')
  if (stored[asked]?.content !== only.content) return undefined
  return { fresh: 1, cut: stored[asked + 1]?.sequence, how: 'regenerated' }
}

/**
 * Whether a reply that was given here stands among what the client tells before a place. A greeting or examples that it
 * tells before each of its questions look like history as well, and what was said after them the last time is not taken back.
 */
async function isGrounded(
  { memory, key }: Hearing,
  stored: readonly Message[],
  cut: number,
  told: number,
): Promise<boolean> {
  const place = stored.findIndex(({ sequence }) => sequence === cut)
  const since = stored[Math.max(0, place - told)]?.sequence ?? 0
  for (let before: number | undefined; ; ) {
    const { items, next } = await listReceipts(memory.parts.sessions, key, 100, before)
    if (items.some(({ sequence }) => sequence !== null && sequence >= since && sequence < cut)) return true
    if (next === null) return false
    before = Number(next)
  }
}

/** Stores what is new. A long history that comes at once is taken in bit by bit, so that others have their turn; what a crash leaves out is sent again. */
async function storedInStints(memory: Memory, key: Key, said: readonly Sent[]): Promise<Appended> {
  const stored: Message[] = []
  for (let from = 0, to = 0; from < said.length; from = to) {
    if (from > 0) await new Promise((resume) => setImmediate(resume))
    for (let characters = 0; to < said.length && (to === from || characters < stint); to++)
      characters += said[to]?.content.length ?? 0
    stored.push(...(await storedAtOnce(memory, key, said.slice(from, to))).stored)
  }
  return { stored, epoch: (await memory.parts.sessions.head(key, 0)).epoch }
}

const storedAtOnce = (memory: Memory, key: Key, said: readonly Sent[], read?: Head): Promise<Appended> =>
  memory.take(key, said.map(incoming), { replyFollows: true }, read)

/** A message as memory takes it. */
function incoming({ role, content, name, calls, answers }: Parsed): Incoming {
  if (name === undefined && calls === undefined && answers === undefined) return { role, content }
  return {
    role,
    content,
    ...(name === undefined ? {} : { name }),
    ...(calls === undefined
      ? {}
      : {
          tool_calls: calls.map((call) => ({
            id: call.id,
            type: 'function',
            function: { name: call.name, arguments: call.arguments },
          })),
        }),
    ...(answers === undefined ? {} : { tool_call_id: answers }),
  }
}

/** What of a request is said, and the reply that its client has begun itself, if it has. */
export function withoutBegun(ask: Ask): { readonly ask: Ask; readonly begun: Sent | undefined } {
  const begun = ask.said.at(-1)
  if (begun?.role !== 'assistant' || begun.calls !== undefined || isBlank(begun.content))
    return { ask, begun: undefined }
  return { ask: withTalk(ask, { said: ask.said.slice(0, -1) }), begun }
}
