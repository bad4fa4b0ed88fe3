import { covered, mostOf, promised } from '../domain/band.ts'
import type { Derived, Message, Millis, Summary, Tokens } from '../domain/entry.ts'
import type { Profile } from '../domain/profile.ts'
import type { Rule, Task, When } from '../domain/rule.ts'
import { countBetween, type Head } from '../domain/session.ts'

type TaskOf<K extends string> = Extract<Task, { summarise: K }>

/** Something that is due for a session, decided from its head alone. */
export type Step =
  /** Everything before the offset `until` goes into the next version of the summary. */
  | {
      readonly do: 'compact'
      readonly task: TaskOf<'progressive'>
      readonly previous: Summary | undefined
      readonly until: Tokens
    }
  /** The oldest messages after sequence number `after` go into the summary of their hour. */
  | { readonly do: 'hour'; readonly task: TaskOf<'hour'>; readonly after: number }
  /** These hours go into the summary of the session. */
  | {
      readonly do: 'session'
      readonly task: TaskOf<'session'>
      readonly hours: readonly Summary[]
      readonly previous: Summary | undefined
    }
  /** Facts are missing: what was said up to this message is read again. */
  | { readonly do: 'refind'; readonly until: number }
  | { readonly do: 'optimise' }

export type Circumstances = {
  readonly now: Millis
  /** What contexts of the session are built for. */
  readonly budget: Tokens
  /** What a derived entry costs when it is shown whole. */
  readonly price: (entry: Derived) => Tokens
}

/** Why upkeep looks at a session: a context will wait for it, something was said, or time has passed. Each includes those before. */
export const occasions = ['asked', 'said', 'tick'] as const
export type Occasion = (typeof occasions)[number]

/** What is due for a session, in the order of its profile's rules. */
export function plan(head: Head, profile: Profile, occasion: Occasion, circumstances: Circumstances): readonly Step[] {
  const due = profile.upkeep
    .filter((rule) => isMeant(rule, occasion))
    .flatMap((rule) => stepsOf(rule, head, profile, circumstances))
  return [...missingFacts(head), ...due]
}

/** Damage is put aside by the store; what was there can be told from the number alone. */
function missingFacts({ derived }: Head): Step[] {
  const should = derived.find((entry) => entry.kind === 'notes')?.facts ?? 0
  return derived.filter(({ kind }) => kind === 'fact').length < should
    ? [{ do: 'refind', until: covered(derived).last }]
    : []
}

const isMeant = ({ when, blocking }: Rule, occasion: Occasion): boolean =>
  occasion === 'tick' || (occasion === 'asked' ? blocking === true : !('every' in when))

/** Nothing that is said is due before the session weighs more, reaches this message, or this time has come. */
export type Quiet = {
  readonly weight: Tokens
  readonly sequence: number
  readonly until: Millis
  /** A session begun anew is another. */
  readonly epoch: number
}

/** How long a session for which nothing is due needs not be looked at: what is said changes nothing else. */
export function quietOf(head: Head, profile: Profile, { budget, price }: Circumstances): Quiet {
  const { last, reach } = covered(head.derived)
  let [weight, sequence, until] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (const { do: task, when } of profile.upkeep) {
    if (!('summarise' in task)) continue
    if (task.summarise === 'progressive')
      weight = Math.min(weight, reach + limitOf(when, budget) - promised(profile.bands, head.derived, budget, price))
    else if (task.summarise === 'hour')
      sequence = Math.min(sequence, head.last + task.batch + task.keep - countBetween(head.gaps, last + 1, head.last))
    else
      for (const { id } of summariesIn(head.derived, 'hour'))
        until = Math.min(until, (hourOf(id) + 1) * hour + ('age' in when ? when.age : 0))
  }
  return { weight, sequence, until, epoch: head.epoch }
}

function stepsOf(rule: Rule, head: Head, profile: Profile, circumstances: Circumstances): Step[] {
  const task = rule.do
  if ('optimise' in task) return isOptimisable(rule.when, head, circumstances.now) ? [{ do: 'optimise' }] : []
  if ('age' in task) return []
  if (task.summarise === 'progressive') return compaction(task, rule.when, head, profile, circumstances)
  return task.summarise === 'hour' ? batch(task, head) : oldHours(task, rule.when, head, circumstances.now)
}

function compaction(
  task: TaskOf<'progressive'>,
  when: When,
  head: Head,
  profile: Profile,
  { budget, price }: Circumstances,
): Step[] {
  const total = weightOf(head.recent.at(-1))
  const limit = limitOf(when, budget)
  const since = total - covered(head.derived).reach
  if (promised(profile.bands, head.derived, budget, price) + since <= limit) return []
  const kept = 'tokens' in task.keep ? task.keep.tokens : task.keep.usage * budget
  const previous = summariesIn(head.derived, 'progressive')[0]
  return [{ do: 'compact', task, previous, until: total - Math.min(kept, limit) }]
}

const limitOf = (when: When, budget: Tokens): Tokens =>
  'tokens' in when ? when.tokens : 'usage' in when ? when.usage * budget : Number.POSITIVE_INFINITY

function batch(task: TaskOf<'hour'>, head: Head): Step[] {
  const after = covered(head.derived).last
  const waiting = countBetween(head.gaps, after + 1, head.last)
  return waiting >= task.batch + task.keep ? [{ do: 'hour', task, after }] : []
}

function oldHours(task: TaskOf<'session'>, when: When, head: Head, now: Millis): Step[] {
  const age = 'age' in when ? when.age : 0
  const hours = summariesIn(head.derived, 'hour').filter(({ id }) => (hourOf(id) + 1) * hour <= now - age)
  return hours.length === 0 ? [] : [{ do: 'session', task, hours, previous: summariesIn(head.derived, 'session')[0] }]
}

/** Once in a while, if anything was said since. */
const isOptimisable = (when: When, head: Head, now: Millis): boolean =>
  'every' in when && isUnreviewed(head) && now - lastRun(head) >= when.every

/** Whether a rule waits for nothing but time. */
export const awaitsTick = (head: Head, profile: Profile): boolean =>
  isUnreviewed(head) && profile.upkeep.some(({ do: task }) => 'optimise' in task)

/** Whether something was said that the optimizer has not seen. */
const isUnreviewed = (head: Head): boolean => head.messages > 0 && head.touchedAt >= lastRun(head)

const lastRun = ({ derived, startedAt }: Head): Millis =>
  derived.find((entry) => entry.kind === 'notes')?.tuning?.snapshots.at(-1)?.at ?? startedAt

const weightOf = (message: Message | undefined): Tokens => (message === undefined ? 0 : message.offset + message.weight)

/** What a profile can show of summaries at its own budget, less their heading and what frames them. */
export function roomOf({ bands, budget }: Profile): Tokens {
  const band = bands.find(({ claim }) => 'kind' in claim && claim.kind === 'summary')
  const most = band === undefined ? 0 : mostOf(band, budget)
  // Where none is shown now, one may be shown in a larger budget.
  return most === 0 ? Number.POSITIVE_INFINITY : Math.max(16, most - 48)
}

/** Summaries of a tier in conversation order. */
export const summariesIn = (derived: readonly Derived[], tier: Summary['tier']): readonly Summary[] =>
  derived
    .filter((entry): entry is Summary => entry.kind === 'summary' && entry.tier === tier)
    .sort((a, b) => a.covers[0] - b.covers[0])

const hour = 3_600_000

/** The id of the summary of the hour in which something was said, and the number of the hour behind such an id. */
export const hourId = (at: Millis): string => `hour${Math.floor(at / hour)}`
export const hourOf = (id: string): number => Number(id.slice('hour'.length))
