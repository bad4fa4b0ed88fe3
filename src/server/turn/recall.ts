import type { Message, Tokens } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import type { Composed } from '../../context/compose.ts'
import { messageCost } from '../../text/cost.ts'
import type { Ask, Sent } from '../protocols/dialect.ts'
import type { Hearing } from './hear.ts'
import { asSent, besideMemory, costOf, type Shown, withMemory } from './shown.ts'

/** The messages of the newest turn. */
export const turnOf = ({ said, turn }: Ask): readonly Sent[] =>
  said.slice(said.findLastIndex(({ place }) => place < turn) + 1)

/** What a model is shown of a turn that is stored; `own` is the turn as it was sent, `kept` as it is stored. */
export function recall(hearing: Hearing, own: readonly Sent[], kept: readonly Message[]): Shown | Promise<Shown> {
  const show = (context: Composed): Shown => withMemory(hearing, hearing.ask, context, own, kept[0]?.sequence ?? 0)
  return withBudget(hearing, dressing(hearing, own, kept), undefined, show)
}

/** A client may send more than is stored of its turn: what was told differently before, or is told in other words now. It is sent as it is, and must be paid for. */
function dressing({ memory }: Hearing, own: readonly Sent[], kept: readonly Message[]): Tokens {
  let more = 0
  own.forEach((message, place) => {
    const stored = kept[place]
    if (stored !== undefined && stored.content !== message.content)
      more += messageCost(memory.tokenizer, message) - stored.tokens
  })
  return Math.max(0, more)
}

/** Answered with memory, and leaving none: what is new stands beside what memory shows for it. */
export function offTheRecord(hearing: Hearing, stored: readonly Message[], fresh: number): Shown | Promise<Shown> {
  const { ask, memory } = hearing
  const unheard = ask.said.slice(fresh)
  const own = turnOf(ask).filter((message) => !unheard.includes(message))
  const cost = costOf(memory.tokenizer, unheard)
  // A part of the newest turn may be stored already: the context then ends with it.
  if (own.length > 0)
    return withBudget(hearing, cost, undefined, (context) =>
      withMemory(hearing, ask, context, own, stored.at(-own.length)?.sequence ?? 0),
    )
  const query = unheard.findLast(({ role }) => role === 'user')?.content
  return withBudget(hearing, cost, query, (context) =>
    besideMemory(hearing, ask, context, unheard[0]?.place ?? ask.turn),
  )
}

/** Shows what fits beside what is sent in any case; `cost` is what that costs more than memory knows. */
function withBudget(
  hearing: Hearing,
  cost: Tokens,
  query: string | undefined,
  show: (context: Composed) => Shown,
): Shown | Promise<Shown> {
  const { memory, ask, preamble } = hearing
  const budget = memory.profile.budget - ask.owed - preamble.tokens - cost
  if (budget < 1) return asSent(hearing, ask, 'budget')
  const paid = (context: Composed): Shown => {
    const shown = show(context)
    return shown.ledger === undefined || cost === 0 ? shown : { ...shown, spent: shown.spent + cost }
  }
  return contextOf(hearing, budget, query).then(paid, (error: unknown) => {
    if (error instanceof MemoryError && error.code === 'budget-too-small') return asSent(hearing, ask, 'budget')
    throw error
  })
}

function contextOf({ memory, key, person }: Hearing, budget: Tokens, query: string | undefined): Promise<Composed> {
  if (person === undefined && query === undefined) return memory.recall(key, { budget })
  return memory.recall(key, {
    budget,
    ...(query === undefined ? {} : { query }),
    ...(person === undefined ? {} : { person }),
  })
}
