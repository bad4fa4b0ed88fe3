import type { Incoming, Parsed } from '../../domain/chat.ts'
import type { Message, Tokens } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import type { Key } from '../../domain/key.ts'
import type { Memory } from '../../memory.ts'
import type { Ask, Dialect, Sent } from '../dialects/dialect.ts'
import { branchOff } from './branch.ts'
import { reconciled } from './known.ts'
import type { Reconciled } from './reconcile.ts'
import { asSent, besideMemory, costOf, type Preamble, type Shown, withMemory } from './shown.ts'

/** A turn of a conversation that is to be heard. */
export type Hearing = {
  readonly memory: Memory
  readonly key: Key
  readonly dialect: Dialect
  readonly ask: Ask
  readonly preamble: Preamble
  /** Whether nothing of it is to be kept. */
  readonly isOff: boolean
  readonly person: string | undefined
  /** The sequence number of the reply that the client goes on from, where it names one. */
  readonly after: number | undefined
}

/** A turn as memory has heard it: what to send, and when, if it is part of the conversation. */
export type Heard = { readonly shown: Shown; readonly epoch: number | undefined; readonly how: Reconciled['how']; readonly appended: number }

/** How many more stored messages are compared than were sent: replies that were never resent may stand among them. */
const more = 16
/** Beyond so many, what a client sends is new. */
const farthest = 4_096

/** Hears a turn: what is new in it is stored, what the client has taken back becomes a branch, then memory is shown. The user's words are safe first. */
export async function hear(hearing: Hearing): Promise<Heard> {
  const { memory, key, ask } = hearing
  const means = { ...hearing, tokenizer: memory.tokenizer }
  // Without a word of the conversation this is no turn of it.
  if (ask.said.length === 0) return { shown: asSent(means, ask, 'messages'), epoch: undefined, how: 'exact', appended: 0 }
  const { stored, fresh, cut, how } = await related(hearing)
  if (hearing.isOff) return { shown: await offTheRecord(hearing, stored, fresh), epoch: undefined, how, appended: 0 }
  if (cut !== undefined) await branchOff(memory, key, cut)
  const line = cut === undefined ? stored : stored.filter((message) => message.sequence < cut)
  const appended = await memory.append(key, ask.said.slice(fresh).map(incoming), { replyFollows: true })
  const own = turnOf(ask)
  const first = [...line, ...appended].at(-own.length)?.sequence ?? 0
  const [epoch, shown] = [await memory.epoch(key), await recall(hearing, own, first)]
  return { shown, epoch, how, appended: appended.length }
}

type Related = Reconciled & { readonly stored: readonly Message[] }

/** How the turn relates to what is stored; where nothing of it is found among the newest messages, more of them are read. */
async function related({ memory, key, ask, after }: Hearing): Promise<Related> {
  for (let limit = ask.said.length + more; ; limit *= 4) {
    const read = await memory.transcript(key, { limit, newest: true })
    const stored = read.filter((message) => message.role !== 'system')
    if (after !== undefined) return { stored, ...continued(stored, after) }
    const known = { stored, hasEarlier: read.length === limit }
    const result = await reconciled(memory, key, known, ask.said)
    if (result.how !== 'disjoint' || !known.hasEarlier || limit > farthest) return { stored, ...result }
  }
}

/** What a client that names the reply before its turn has to say is new, and what came after that reply is not its conversation. */
function continued(stored: readonly Message[], after: number): Reconciled {
  const next = stored.find(({ sequence }) => sequence > after)
  return { fresh: 0, cut: next?.sequence, how: next === undefined ? 'continued' : 'regenerated' }
}

const turnOf = (ask: Ask): readonly Sent[] => ask.said.filter(({ place }) => place >= ask.turn)

async function recall(hearing: Hearing, own: readonly Sent[], first: number): Promise<Shown> {
  const means = { ...hearing, tokenizer: hearing.memory.tokenizer }
  return withBudget(hearing, 0, async (budget) => withMemory(means, hearing.ask, await contextOf(hearing, { budget }), own, first))
}

/** Answered with memory, and leaving none: what is new stands beside what memory shows for it. */
async function offTheRecord(hearing: Hearing, stored: readonly Message[], fresh: number): Promise<Shown> {
  const { ask, memory } = hearing
  const means = { ...hearing, tokenizer: memory.tokenizer }
  const unheard = ask.said.slice(fresh)
  const own = turnOf(ask).filter((message) => !unheard.includes(message))
  const cost = costOf(memory.tokenizer, unheard)
  return withBudget(hearing, cost, async (budget) => {
    // A part of the newest turn may be stored already: the context then ends with it.
    if (own.length > 0) return withMemory(means, ask, await contextOf(hearing, { budget }), own, stored.at(-own.length)?.sequence ?? 0)
    const query = unheard.findLast(({ role }) => role === 'user')?.content
    return besideMemory(means, ask, await contextOf(hearing, { budget, ...(query === undefined ? {} : { query }) }), unheard[0]?.place ?? ask.turn, cost)
  })
}

async function withBudget(hearing: Hearing, cost: Tokens, show: (budget: Tokens) => Promise<Shown>): Promise<Shown> {
  const { memory, ask, preamble } = hearing
  const means = { ...hearing, tokenizer: memory.tokenizer }
  const budget = memory.profile.budget - ask.owed - preamble.tokens - cost
  if (budget < 1) return asSent(means, ask, 'budget')
  try {
    return await show(budget)
  } catch (error) {
    if (error instanceof MemoryError && error.code === 'budget-too-small') return asSent(means, ask, 'budget')
    throw error
  }
}

const contextOf = ({ memory, key, person }: Hearing, options: { readonly budget: Tokens; readonly query?: string }) =>
  memory.context(key, { ...options, ...(person === undefined ? {} : { person }) })

/** A message as memory takes it. */
export function incoming({ role, content, name, calls, answers }: Parsed): Incoming {
  return {
    role,
    content,
    ...(name === undefined ? {} : { name }),
    ...(calls === undefined
      ? {}
      : { tool_calls: calls.map((call) => ({ id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments } })) }),
    ...(answers === undefined ? {} : { tool_call_id: answers }),
  }
}
