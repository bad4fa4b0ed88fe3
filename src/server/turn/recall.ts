import type { Message, Tokens } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import type { Context } from '../../domain/ledger.ts'
import { messageCost } from '../../text/cost.ts'
import type { Ask, Sent } from '../dialects/dialect.ts'
import type { Hearing } from './hear.ts'
import { asSent, besideMemory, costOf, type Shown, withMemory } from './shown.ts'

/** The messages of the newest turn. */
export const turnOf = (ask: Ask): readonly Sent[] => ask.said.filter(({ place }) => place >= ask.turn)

/** What a model is shown of a turn that is stored; `own` is the turn as it was sent, `kept` as it is stored. */
export function recall(hearing: Hearing, own: readonly Sent[], kept: readonly Message[]): Promise<Shown> {
  const means = { ...hearing, tokenizer: hearing.memory.tokenizer }
  const show = async (budget: Tokens): Promise<Shown> => withMemory(means, hearing.ask, await contextOf(hearing, { budget }), own, kept[0]?.sequence ?? 0)
  return withBudget(hearing, dressing(hearing, own, kept), show)
}

/** A client may send more than is stored of its turn: what was told differently before, or is told in other words now. It is sent as it is, and must be paid for. */
function dressing({ memory }: Hearing, own: readonly Sent[], kept: readonly Message[]): Tokens {
  const others = own.flatMap((message, place) => {
    const stored = kept[place]
    return stored === undefined || stored.content === message.content ? [] : [{ message, stored }]
  })
  const more = others.reduce((sum, { message, stored }) => sum + messageCost(memory.tokenizer, message) - stored.tokens, 0)
  return Math.max(0, more)
}

/** Answered with memory, and leaving none: what is new stands beside what memory shows for it. */
export async function offTheRecord(hearing: Hearing, stored: readonly Message[], fresh: number): Promise<Shown> {
  const { ask, memory } = hearing
  const means = { ...hearing, tokenizer: memory.tokenizer }
  const unheard = ask.said.slice(fresh)
  const own = turnOf(ask).filter((message) => !unheard.includes(message))
  const cost = costOf(memory.tokenizer, unheard)
  return withBudget(hearing, cost, async (budget) => {
    // A part of the newest turn may be stored already: the context then ends with it.
    if (own.length > 0) return withMemory(means, ask, await contextOf(hearing, { budget }), own, stored.at(-own.length)?.sequence ?? 0)
    const query = unheard.findLast(({ role }) => role === 'user')?.content
    return besideMemory(means, ask, await contextOf(hearing, { budget, ...(query === undefined ? {} : { query }) }), unheard[0]?.place ?? ask.turn)
  })
}

/** Shows what fits beside what is sent in any case; `cost` is what that costs more than memory knows. */
async function withBudget(hearing: Hearing, cost: Tokens, show: (budget: Tokens) => Promise<Shown>): Promise<Shown> {
  const { memory, ask, preamble } = hearing
  const means = { ...hearing, tokenizer: memory.tokenizer }
  const budget = memory.profile.budget - ask.owed - preamble.tokens - cost
  if (budget < 1) return asSent(means, ask, 'budget')
  try {
    const shown = await show(budget)
    return shown.ledger === undefined ? shown : { ...shown, spent: shown.spent + cost }
  } catch (error) {
    if (error instanceof MemoryError && error.code === 'budget-too-small') return asSent(means, ask, 'budget')
    throw error
  }
}

const contextOf = ({ memory, key, person }: Hearing, options: { readonly budget: Tokens; readonly query?: string }): Promise<Context> =>
  memory.context(key, { ...options, ...(person === undefined ? {} : { person }) })
