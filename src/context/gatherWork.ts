import { isBlank, type Message, type Tokens } from '../domain/entry.ts'
import type { WorkSelection } from '../selection/workSelection.ts'
import type { ContextQuery } from './gatherCandidates.ts'
import { groupIntoUnits, singleUnit, type Unit } from './render.ts'

/** Text that is considered: about 64,000 tokens. */
const maxCharacters = 256_000
/** Share of the budget that the excerpts may use; the rest is for date lines and headings. */
const excerptShare = 0.96

/** Candidates of a work session: the newest messages as turns, newest first, and excerpts of older ones. */
export type WorkCandidates = { readonly recent: readonly Unit[]; readonly excerpts: readonly Unit[] }

export type WorkOptions = {
  readonly work: WorkSelection
  readonly question: string
  readonly budget: Tokens
  /** Messages from this sequence number on are shown in any case. */
  readonly before: number
  /** Newest messages of the session, and a function that reads more of them. */
  readonly newest: readonly Message[]
  readonly readNewest: (characters: number) => ContextQuery<readonly Message[]>
}

/** Selects what to show of a work session; undefined if the session is a conversation. */
export function* gatherWork(options: WorkOptions): ContextQuery<WorkCandidates | undefined> {
  const { work, question, budget, before, newest, readNewest } = options
  if (budget <= 0 || !work.isWork(newest, question)) return undefined
  const messages = (yield* readNewest(maxCharacters)).filter(
    ({ sequence, content }) => sequence < before && !isBlank(content),
  )
  const excerpts = work.select(messages, question, Math.floor(excerptShare * budget))
  const partial = excerpts.findLastIndex(
    ({ message, isWhole }, index) => !isWhole || message !== messages[messages.length - excerpts.length + index],
  )
  const recent = groupIntoUnits(excerpts.slice(partial + 1).map(({ message }) => message))
  // Tool results without their calls cannot be turns.
  const turns = recent.filter(({ fault }) => fault === undefined)
  const older = [
    ...excerpts.slice(0, partial + 1).map(({ message, text, isWhole }): Unit => {
      const unit: Unit = { ...singleUnit(message), basis: 'work' }
      return isWhole ? unit : { ...unit, excerpt: text }
    }),
    ...recent.filter((unit) => !turns.includes(unit)).flatMap(({ messages: parts }) => parts.map(toBlockUnit)),
  ]
  return { recent: turns.toReversed(), excerpts: older.toReversed() }
}

const toBlockUnit = (message: Message): Unit => ({ ...singleUnit(message), basis: 'work' })
