import type { DerivedEntry, Message, Millis, Summary, Tokens } from '../domain/entry.ts'
import type { Profile, RuleCondition, UpkeepRule, UpkeepTask } from '../domain/profile.ts'
import { estimateReservedTokens, findSummaryCoverage, maxBandTokens } from '../domain/profile.ts'
import { countExisting, type SessionHead } from '../domain/session.ts'

type TaskOf<K extends string> = Extract<UpkeepTask, { summarise: K }>

/** A due step of a session, derived from its head only. */
export type UpkeepStep =
  /**
   * Summarise the messages from `startOffset` to `endOffset` into the next version of the progressive summary, if they
   * take at least `minTokens`.
   */
  | {
      readonly kind: 'compact'
      readonly task: TaskOf<'progressive'>
      readonly previous: Summary | undefined
      readonly startOffset: Tokens
      readonly endOffset: Tokens
      readonly minTokens: Tokens
    }
  /** Summarise the oldest messages after sequence number `after` into the summary of their hour. */
  | { readonly kind: 'summariseHour'; readonly task: TaskOf<'hour'>; readonly after: number }
  /** Merge the summaries of these hours into the summary of the session. */
  | {
      readonly kind: 'summariseSession'
      readonly task: TaskOf<'session'>
      readonly hours: readonly Summary[]
      readonly previous: Summary | undefined
    }
  /** Extract facts again from the messages up to sequence number `last`, because stored facts are missing. */
  | { readonly kind: 'reextractFacts'; readonly last: number }
  | { readonly kind: 'optimize' }
  /** Propose knowledge from the messages after a sequence number. */
  | { readonly kind: 'learn'; readonly after: number; readonly usesModel: boolean }
  /** Begin with the optimizer parameters of the scope, if there are any. */
  | { readonly kind: 'adoptTuning' }

type PlanInput = {
  readonly now: Millis
  /** Token budget that contexts of the session are built for. */
  readonly budget: Tokens
  /** Tokens a derived entry takes when it is shown in full. */
  readonly tokenCost: (entry: DerivedEntry) => Tokens
}

/**
 * Reasons to check a session: a context is about to be built (`asked`), messages were appended (`said`), time has
 * passed (`tick`). Each one includes the rules of those before it.
 */
export const upkeepTriggers = ['asked', 'said', 'tick'] as const
/** Event that makes upkeep look for due rules. */
export type UpkeepTrigger = (typeof upkeepTriggers)[number]

/** Lists the due steps of a session in the order of its profile's rules. */
export function planUpkeep(
  head: SessionHead,
  profile: Profile,
  trigger: UpkeepTrigger,
  input: PlanInput,
): readonly UpkeepStep[] {
  const due = profile.upkeep
    .filter((rule) => isTriggeredBy(rule, trigger))
    .flatMap((rule) => stepsFor(rule, head, profile, input))
  return [...planReextraction(head), ...due, ...planAdoption(head, profile)]
}

/** Stores move damaged entries aside. A lower number of facts than noted shows that some are missing. */
function planReextraction({ derived }: SessionHead): UpkeepStep[] {
  const expected = derived.find((entry) => entry.kind === 'notes')?.facts ?? 0
  return derived.filter(({ kind }) => kind === 'fact').length < expected
    ? [{ kind: 'reextractFacts', last: findSummaryCoverage(derived).last }]
    : []
}

const isTriggeredBy = ({ when, blocking }: UpkeepRule, trigger: UpkeepTrigger): boolean =>
  trigger === 'tick' || (trigger === 'asked' ? blocking === true : !('every' in when))

/** Nothing becomes due by appending until the session exceeds `tokens`, reaches `sequence`, or it is `at`. */
export type NextDue = {
  readonly tokens: Tokens
  readonly sequence: number
  readonly at: Millis
  /** Limits apply to this epoch only: an erased session starts over in the next one. */
  readonly epoch: number
}

/** Computes how long a session for which nothing is due needs no check. */
export function nextDueOf(head: SessionHead, profile: Profile, { budget, tokenCost }: PlanInput): NextDue {
  const { last, reach } = findSummaryCoverage(head.derived)
  let [tokens, sequence, at] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (const { do: task, when } of profile.upkeep) {
    // Checked after each reply.
    if ('learn' in task) sequence = Math.min(sequence, head.lastSequence + 1)
    if (!('summarise' in task)) continue
    if (task.summarise === 'progressive') {
      const reserved = estimateReservedTokens(profile.bands, head.derived, budget, tokenCost)
      const { high, minTokens, keepTokens } = compactionMarks(task, when, budget, reserved)
      tokens = Math.min(tokens, reach + Math.max(high - reserved, minTokens + keepTokens - 1))
    } else if (task.summarise === 'hour') {
      sequence = Math.min(
        sequence,
        head.lastSequence + task.batch + task.keep - countExisting(head.gaps, last + 1, head.lastSequence),
      )
    } else {
      for (const { id } of summariesOfTier(head.derived, 'hour'))
        at = Math.min(at, (hourOfSummary(id) + 1) * hourMs + ('age' in when ? when.age : 0))
    }
  }
  return { tokens, sequence, at, epoch: head.epoch }
}

function stepsFor(rule: UpkeepRule, head: SessionHead, profile: Profile, input: PlanInput): UpkeepStep[] {
  const task = rule.do
  if ('optimise' in task) return isOptimizerDue(rule.when, head, input.now) ? [{ kind: 'optimize' }] : []
  if ('age' in task) return []
  if ('learn' in task) return planLearning(head)
  if (task.summarise === 'progressive') return planCompaction(task, rule.when, head, profile, input)
  return task.summarise === 'hour' ? planHour(task, head) : planSession(task, rule.when, head, input.now)
}

/** A turn with tool calls is a task. It ends with a message of the assistant that calls no tool. */
function planLearning({ recent, derived }: SessionHead): UpkeepStep[] {
  const newest = recent.at(-1)
  const after = derived.find((entry) => entry.kind === 'notes')?.learned ?? 0
  if (newest?.role !== 'assistant' || (newest.toolCalls?.length ?? 0) > 0 || newest.sequence <= after) return []
  return [{ kind: 'learn', after, usesModel: recent.at(-2)?.role === 'tool' }]
}

/** A session that was never optimized begins with the parameters that other sessions of its scope have found. */
const planAdoption = ({ messages, derived }: SessionHead, { upkeep }: Profile): UpkeepStep[] =>
  messages > 0 &&
  upkeep.some(({ do: task }) => 'optimise' in task) &&
  derived.find((entry) => entry.kind === 'notes')?.tuning === undefined
    ? [{ kind: 'adoptTuning' }]
    : []

function planCompaction(
  task: TaskOf<'progressive'>,
  when: RuleCondition,
  head: SessionHead,
  profile: Profile,
  { budget, tokenCost }: PlanInput,
): UpkeepStep[] {
  const total = endOffset(head.recent.at(-1))
  const { reach: startOffset } = findSummaryCoverage(head.derived)
  const reserved = estimateReservedTokens(profile.bands, head.derived, budget, tokenCost)
  const { high, minTokens, keepTokens } = compactionMarks(task, when, budget, reserved)
  if (reserved + total - startOffset <= high) return []
  const end = Math.min(total - keepTokens, lastExchangeOffset(head.recent, minTokens))
  if (end - startOffset < minTokens) return []
  const previous = summariesOfTier(head.derived, 'progressive')[0]
  return [{ kind: 'compact', task, previous, startOffset, endOffset: end, minTokens }]
}

/**
 * High-water mark of a compaction rule, the fewest tokens that a compaction summarises, and the newest tokens that it
 * leaves. The low-water mark is half of the high one: messages are left only as far as they fit below it beside the
 * reserved tokens, and text is summarised only in portions of `high - low`, so that two compactions are always that
 * much new text apart, whatever the sizes of messages. Until a portion is complete, the context shortens what does not
 * fit.
 */
function compactionMarks(
  { keep }: TaskOf<'progressive'>,
  when: RuleCondition,
  budget: Tokens,
  reserved: Tokens,
): { readonly high: Tokens; readonly minTokens: Tokens; readonly keepTokens: Tokens } {
  const high = 'tokens' in when ? when.tokens : 'usage' in when ? when.usage * budget : Number.POSITIVE_INFINITY
  const low = high / 2
  const wanted = 'tokens' in keep ? keep.tokens : keep.usage * budget
  return {
    high,
    minTokens: Math.floor(high - low),
    keepTokens: Math.floor(Math.max(0, Math.min(wanted, low - reserved))),
  }
}

/** Start of the last two messages, which a follow-up refers to; of the newest alone if both exceed `maxTokens`. */
function lastExchangeOffset(recent: readonly Message[], maxTokens: Tokens): Tokens {
  const newest = recent.at(-1)
  const previous = recent.at(-2)
  return (previous !== undefined && endOffset(newest) - previous.offset <= maxTokens ? previous : newest)?.offset ?? 0
}

/**
 * Plans work before a rule makes it due: the facts of all messages, or a summary of all but the last exchange. Returns
 * undefined if no rule of the profile asks for it, or nothing is left to do.
 */
export function planEarly(wanted: 'facts' | 'summary', head: SessionHead, { upkeep }: Profile): UpkeepStep | undefined {
  const tasks = upkeep.map(({ do: task }) => task)
  if (head.lastSequence === 0) return undefined
  if (wanted === 'facts')
    return tasks.some((task) => 'facts' in task && task.facts)
      ? { kind: 'reextractFacts', last: head.lastSequence }
      : undefined
  const task = tasks.find((task) => 'summarise' in task && task.summarise === 'progressive')
  if (task === undefined || !('words' in task)) return undefined
  const { reach: startOffset } = findSummaryCoverage(head.derived)
  const end = lastExchangeOffset(head.recent, Number.POSITIVE_INFINITY)
  const [previous] = summariesOfTier(head.derived, 'progressive')
  return end > startOffset ? { kind: 'compact', task, previous, startOffset, endOffset: end, minTokens: 1 } : undefined
}

function planHour(task: TaskOf<'hour'>, head: SessionHead): UpkeepStep[] {
  const after = findSummaryCoverage(head.derived).last
  const unsummarised = countExisting(head.gaps, after + 1, head.lastSequence)
  return unsummarised >= task.batch + task.keep ? [{ kind: 'summariseHour', task, after }] : []
}

function planSession(task: TaskOf<'session'>, when: RuleCondition, head: SessionHead, now: Millis): UpkeepStep[] {
  const age = 'age' in when ? when.age : 0
  const hours = summariesOfTier(head.derived, 'hour').filter(({ id }) => (hourOfSummary(id) + 1) * hourMs <= now - age)
  const previous = summariesOfTier(head.derived, 'session')[0]
  return hours.length === 0 ? [] : [{ kind: 'summariseSession', task, hours, previous }]
}

const isOptimizerDue = (when: RuleCondition, head: SessionHead, now: Millis): boolean =>
  'every' in when && hasNewMessages(head) && now - lastOptimizerRun(head) >= when.every

/** True if a rule of the session depends on time alone. */
export const needsTick = (head: SessionHead, profile: Profile): boolean =>
  hasNewMessages(head) && profile.upkeep.some(({ do: task }) => 'optimise' in task)

/** True if messages were appended since the last optimizer run. */
const hasNewMessages = (head: SessionHead): boolean => head.messages > 0 && head.touchedAt >= lastOptimizerRun(head)

const lastOptimizerRun = ({ derived, startedAt }: SessionHead): Millis =>
  derived.find((entry) => entry.kind === 'notes')?.tuning?.snapshots.at(-1)?.at ?? startedAt

const endOffset = (message: Message | undefined): Tokens =>
  message === undefined ? 0 : message.offset + message.weight

/** Tokens that a profile can show of summaries at its own budget, without heading and framing. */
export function maxSummaryTokens({ bands, budget }: Profile): Tokens {
  const band = bands.find(({ claim }) => 'kind' in claim && claim.kind === 'summary')
  const bandTokens = band === undefined ? 0 : maxBandTokens(band, budget)
  // Unlimited if little or nothing is shown at this budget: a larger one may show all of it.
  const isSmallBudget = typeof band?.maxShare === 'object' && budget <= band.maxShare.budget
  return bandTokens === 0 || isSmallBudget ? Number.POSITIVE_INFINITY : Math.max(16, bandTokens - 48)
}

/** Lists the summaries of a tier in conversation order. */
export const summariesOfTier = (derived: readonly DerivedEntry[], tier: Summary['tier']): readonly Summary[] =>
  derived
    .filter((entry): entry is Summary => entry.kind === 'summary' && entry.tier === tier)
    .sort((a, b) => a.covers[0] - b.covers[0])

const hourMs = 3_600_000

/** Id of the summary for the hour of a time; `hourOfSummary` returns the hour number of such an id. */
export const hourSummaryId = (at: Millis): string => `hour${Math.floor(at / hourMs)}`
export const hourOfSummary = (id: string): number => Number(id.slice('hour'.length))
