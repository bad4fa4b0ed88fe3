import { isBlank, type Message } from '../domain/entry.ts'
import type { Profile } from '../domain/profile.ts'
import type { SessionHead } from '../domain/session.ts'
import type { MessageExcerpt, WorkSelection } from '../selection/workSelection.ts'
import type { ClaimInput } from './claimLimits.ts'
import { groupIntoUnits, singleUnit, type Unit } from './render.ts'
import { type ContextQuery, runWithPauses, type SessionReader } from './sessionReader.ts'

/** Text that is considered: about 64,000 tokens. */
const maxCharacters = 256_000
/** Tokens of framing texts and date lines around the excerpts. */
const frameTokens = 50

/** Candidates of a work session: the newest messages as turns, and excerpts of older ones, both newest first. */
export type WorkCandidates = { readonly recent: readonly Unit[]; readonly excerpts: readonly Unit[] }

/**
 * Selects excerpts of a work session if the budget is small and the profile recalls. Returns undefined for a
 * conversation, and for a history that fits. `asked` is the stored question, which is shown in any case.
 */
export function* gatherWork(
  reader: SessionReader,
  head: SessionHead,
  { bands }: Profile,
  { budget, messageBudget, question }: ClaimInput,
  work: WorkSelection,
  asked: Message | undefined,
): ContextQuery<WorkCandidates | undefined> {
  const tail = bands.flatMap(({ claim }) => ('tail' in claim ? claim.tail : []))[0]
  const newest = head.recent.at(-1)
  const total = newest === undefined ? 0 : newest.offset + newest.weight
  if (tail === undefined || !bands.some(({ claim }) => 'recalled' in claim)) return undefined
  if (budget > tail.smallBudget.budget || total <= tail.keepAll * messageBudget) return undefined
  const available = messageBudget - (asked === undefined ? 0 : total - asked.offset) - frameTokens
  if (available <= 0 || !work.isWork(head.recent, question)) return undefined
  const before = asked?.sequence ?? Number.POSITIVE_INFINITY
  const messages = (yield* reader.readNewest(maxCharacters)).filter(
    ({ sequence, content }) => sequence < before && !isBlank(content),
  )
  return toCandidates(messages, yield* runWithPauses(work.select(messages, question, available)))
}

function toCandidates(messages: readonly Message[], excerpts: readonly MessageExcerpt[]): WorkCandidates {
  const offset = messages.length - excerpts.length
  const lastPartial = excerpts.findLastIndex(
    ({ message, isWhole }, index) => !isWhole || message !== messages[offset + index],
  )
  const units = groupIntoUnits(excerpts.slice(lastPartial + 1).map(({ message }) => message))
  // Tool results without their calls cannot be turns.
  const [recent, incomplete] = [units.filter(isComplete), units.filter((unit) => !isComplete(unit))]
  const older = excerpts
    .slice(0, lastPartial + 1)
    .map(({ message, text, isWhole }): Unit => (isWhole ? toUnit(message) : { ...toUnit(message), excerpt: text }))
  return {
    recent: recent.toReversed(),
    excerpts: [...older, ...incomplete.flatMap((unit) => unit.messages.map(toUnit))].toReversed(),
  }
}

const isComplete = ({ fault }: Unit): boolean => fault === undefined
const toUnit = (message: Message): Unit => ({ ...singleUnit(message), basis: 'work' })
