import type {
  DerivedEntry,
  Message,
  Millis,
  Tokens,
  TuningParameters,
  TuningState,
  UpkeepNotes,
} from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, isInScope, type Key, type Scope } from '../domain/key.ts'
import type { Degradation } from '../domain/ledger.ts'
import { LruCache } from '../domain/lruCache.ts'
import type { Clock, Store, Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import { isExpired, type SessionHead } from '../domain/session.ts'
import { type Pause, runInSlices } from '../domain/work.ts'
import type { KnowledgeProposal } from './learn/learn.ts'
import { type ModelCall, rejectOnAbort } from './modelCall.ts'
import { createOutcomeApplier, type StepOutcome } from './outcome.ts'
import { perform } from './perform.ts'
import {
  type NextDue,
  needsTick,
  nextDueOf,
  planEarly,
  planUpkeep,
  type UpkeepStep,
  type UpkeepTrigger,
  upkeepTriggers,
} from './plan.ts'
import { asksToRemember, storeReminders } from './remind.ts'
import { revise, tryCommit } from './revise.ts'

/** Dependencies of the upkeep scheduler. */
export type SchedulerDeps = {
  readonly profile: Profile
  readonly store: Store
  readonly tokenizer: Tokenizer
  /** Tokens a derived entry takes when it is shown in full. */
  readonly tokenCost: (entry: DerivedEntry) => Tokens
  /** Returns the model to call for a session, if there is one. */
  readonly modelCallFor: (key: Key) => ModelCall | undefined
  readonly clock: Clock
  /** Yields to other work between slices of long computations. */
  readonly pause: Pause
  /** Identifies this process to others that use the same store. */
  readonly holder: string
  /** Stores proposed knowledge in the scope of a session. */
  readonly learn: (key: Key, knowledge: readonly KnowledgeProposal[]) => Promise<void>
  /** Reads and writes the optimizer parameters that sessions of a scope share. */
  readonly scopeTuning: (key: Key) => Promise<TuningParameters | undefined>
  readonly shareTuning: (key: Key, tuning: TuningState) => Promise<void>
  /** Called after entries were stored in a session. */
  readonly onPut: (key: Key, epoch: number, entries: readonly DerivedEntry[]) => void
}

type TimedDegradation = Degradation & { readonly at: Millis }

/** Upkeep status of this process. */
export type UpkeepHealth = {
  /** Author of the last summary: `builtin`, or the name of a model. */
  readonly by: string
  /** Number of sessions being worked on. */
  readonly running: number
  /** Number of steps committed since start. */
  readonly done: number
  /** Latest fault of each kind and its time. A fault is removed when its step succeeds again. */
  readonly degraded: readonly TimedDegradation[]
  /** Latest finished steps, newest first. */
  readonly recent: readonly FinishedStep[]
}

/** A step of upkeep that was committed, with what it stored. */
export type FinishedStep = {
  readonly key: string
  readonly at: Millis
  readonly step: UpkeepStep['kind']
  readonly summaries: number
  /** Facts that were found, including those that were known. */
  readonly facts: number
  readonly faults: readonly Degradation[]
}

/** Position of the newest message of a session. */
export type NewestMessage = Pick<Message, 'sequence' | 'offset' | 'weight'>

const maxConcurrentModelCalls = 4
const maxStepsPerRun = 1_000
/** Sessions checked on each tick; any beyond this are checked on their next use. */
const maxTrackedSessions = 100_000
const maxSessionsWithFaults = 1_000
const maxRecentSteps = 50

/** A session being worked on, and the trigger to check it for once more afterwards. */
type SessionRun = { done: Promise<void>; rerun: UpkeepTrigger | undefined }

/**
 * Performs the upkeep rules of a profile, one step per session at a time: plan, perform, verify, commit. Due steps are
 * derived from stored state only, so another process can continue after a crash.
 */
export class UpkeepScheduler {
  private readonly deps: SchedulerDeps
  /** Some rule blocks context building until it is done. */
  private readonly hasBlockingRule: boolean
  private readonly extractsFacts: boolean
  private readonly runs = new Map<string, SessionRun>()
  /** Sessions to check on the next tick. */
  private readonly watched = new Map<string, Key>()
  /** Budgets above the one of the profile, by session. */
  private readonly budgets = new LruCache<string, Tokens>({ maxEntries: maxTrackedSessions })
  private readonly nextDue = new Map<string, NextDue>()
  /** Latest faults by session. */
  private readonly faults = new LruCache<string, readonly TimedDegradation[]>({ maxEntries: maxSessionsWithFaults })
  private recentSteps: readonly FinishedStep[] = []
  private readonly stopped = new AbortController()
  private readonly waitingForSlot: (() => void)[] = []
  private lastTick = Promise.resolve()
  private modelCalls = 0
  private completedSteps = 0
  private lastSummaryBy = 'builtin'

  constructor(deps: SchedulerDeps) {
    this.deps = deps
    this.hasBlockingRule = deps.profile.upkeep.some(({ blocking }) => blocking === true)
    this.extractsFacts = deps.profile.upkeep.some(({ do: task }) => 'facts' in task && task.facts)
  }

  /**
   * Schedules a check of a session and returns at once. `newest` and `epoch` allow to skip it when nothing can be due.
   */
  notify(key: Key, trigger: UpkeepTrigger, newest?: NewestMessage, epoch?: number): void {
    if (this.deps.profile.upkeep.length === 0 || this.stopped.signal.aborted) return
    const name = formatKey(key)
    // An existing entry is left in place: replacing it would keep a new key object alive for each request.
    if (!this.watched.has(name) && this.watched.size < maxTrackedSessions) this.watched.set(name, key)
    if ((trigger === 'asked' && !this.hasBlockingRule) || this.isNothingDue(name, newest, epoch)) return
    const run = this.runs.get(name)
    if (run === undefined) this.startRun(name, key, () => this.run(key, trigger))
    else
      run.rerun =
        upkeepTriggers[Math.max(upkeepTriggers.indexOf(trigger), upkeepTriggers.indexOf(run.rerun ?? 'asked'))]
  }

  /**
   * Stores at once what the user asks to remember in new messages. Returns undefined if they ask for nothing. Never
   * rejects: the next compaction finds the same facts.
   */
  storeReminders(key: Key, epoch: number, messages: readonly Message[]): Promise<void> | undefined {
    if (!this.extractsFacts || this.stopped.signal.aborted || !messages.some(asksToRemember)) return undefined
    const { store, clock, onPut, pause } = this.deps
    return storeReminders(store, key, epoch, messages, { now: clock(), pause }).then(
      (revised) => revised && onPut(key, revised.head.epoch, revised.put),
      () => undefined,
    )
  }

  /**
   * Resolves when the steps that block the next context are done, or after `maxContextWait`; the work then continues in
   * the background. Returns undefined when there is nothing to wait for. Never rejects.
   */
  whenReady(key: Key, budget: Tokens): Promise<void> | undefined {
    const name = formatKey(key)
    this.setBudget(name, budget)
    return this.hasBlockingRule && this.runs.has(name)
      ? this.waitWithLimit(name, this.deps.modelCallFor(key))
      : undefined
  }

  private async waitWithLimit(name: string, modelCall: ModelCall | undefined): Promise<void> {
    if (modelCall === undefined) return this.waitForRun(name)
    const limit = rejectOnAbort(modelCall.timeoutSignal(modelCall.maxContextWait))
    await Promise.race([this.waitForRun(name), limit.promise.catch(() => undefined)])
    limit.dispose()
  }

  /** Checks all watched sessions for rules that depend on time, each in a turn of the event loop of its own. */
  tick(): void {
    this.lastTick = this.lastTick.then(async () => {
      for (const key of [...this.watched.values()]) {
        this.notify(key, 'tick')
        await this.deps.pause()
      }
    })
  }

  /** Discards cached state of a scope's sessions after some of them were changed or erased. */
  invalidate(scope: Scope): void {
    for (const name of this.nextDue.keys()) if (isInScope(name, scope)) this.nextDue.delete(name)
    this.faults.deleteWhere((name) => isInScope(name, scope))
    this.recentSteps = this.recentSteps.filter(({ key }) => !isInScope(key, scope))
  }

  /** Resolves when no work is in progress. */
  async whenIdle(): Promise<void> {
    await this.lastTick
    while (this.runs.size > 0) await Promise.all([...this.runs.values()].map(({ done }) => done))
  }

  health(): UpkeepHealth {
    return {
      by: this.lastSummaryBy,
      running: this.runs.size,
      done: this.completedSteps,
      degraded: latestFaults([...this.faults].flatMap(([, faults]) => faults)),
      recent: this.recentSteps,
    }
  }

  /** Aborts work in progress and accepts no more. Unfinished steps stay due in the store. */
  async stop(): Promise<void> {
    this.stopped.abort()
    for (const resume of this.waitingForSlot.splice(0)) resume()
    await this.whenIdle()
  }

  /** Sets the budget that contexts of a session are built for; due steps depend on it. */
  private setBudget(name: string, budget: Tokens): void {
    const { profile } = this.deps
    if (Math.max(budget, profile.budget) === (this.budgets.get(name) ?? profile.budget)) return
    this.nextDue.delete(name)
    if (budget <= profile.budget) this.budgets.delete(name)
    else this.budgets.set(name, budget)
  }

  /** Waits twice: messages appended during the first run may have started a second one. */
  private async waitForRun(name: string): Promise<void> {
    await this.runs.get(name)?.done
    await this.runs.get(name)?.done
  }

  private isNothingDue(name: string, newest: NewestMessage | undefined, epoch: number | undefined): boolean {
    const nextDue = newest && this.nextDue.get(name)
    if (newest === undefined || nextDue === undefined) return false
    return (
      epoch === nextDue.epoch &&
      newest.offset + newest.weight <= nextDue.tokens &&
      newest.sequence < nextDue.sequence &&
      this.deps.clock() < nextDue.at
    )
  }

  /**
   * Performs the due steps of a session now, then work before it is due: a summary if `summarise` is set, and the facts
   * of all messages. Resolves to the faults of the session when all is done.
   */
  async runNow(key: Key, summarise: boolean): Promise<readonly Degradation[]> {
    const name = formatKey(key)
    this.notify(key, 'tick')
    while (this.runs.has(name)) await this.waitForRun(name)
    this.startRun(name, key, () => this.runEarly(key, summarise ? ['summary', 'facts'] : ['facts']))
    await this.waitForRun(name)
    return this.faults.get(name) ?? []
  }

  private startRun(name: string, key: Key, work: () => Promise<void>): void {
    const run: SessionRun = { done: Promise.resolve(), rerun: undefined }
    this.runs.set(name, run)
    run.done = work().then(() => {
      this.runs.delete(name)
      if (run.rerun !== undefined) this.notify(key, run.rerun)
    })
  }

  private run(key: Key, trigger: UpkeepTrigger): Promise<void> {
    return this.recordFaults(key, async () => {
      for (let steps = 0; steps < maxStepsPerRun && !this.stopped.signal.aborted; steps++)
        if (!(await this.runNextStep(key, trigger))) return
    })
  }

  private runEarly(key: Key, wanted: readonly ('facts' | 'summary')[]): Promise<void> {
    return this.recordFaults(key, async () => {
      for (const kind of wanted) {
        const head = await this.deps.store.readHead(key, 2)
        const step = planEarly(kind, head, this.deps.profile)
        if (step !== undefined && !this.stopped.signal.aborted) await this.performLeased(step, head)
      }
    })
  }

  private async recordFaults(key: Key, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      // Work that was interrupted by a stop stays due.
      if (this.stopped.signal.aborted) return
      // Only the code is recorded: the error message may quote user content.
      this.setFaults(key, [{ step: 'upkeep', why: error instanceof MemoryError ? error.code : 'failed' }])
    }
  }

  /** Limits concurrent model calls. Steps without a model do not pass through here. */
  private async withModelSlot<T>(work: () => Promise<T>): Promise<T> {
    if (this.modelCalls >= maxConcurrentModelCalls)
      await new Promise<void>((resume) => this.waitingForSlot.push(resume))
    this.modelCalls++
    try {
      return await work()
    } finally {
      this.modelCalls--
      this.waitingForSlot.shift()?.()
    }
  }

  /** Runs the next due step. Resolves to true if another one may be due. */
  private async runNextStep(key: Key, trigger: UpkeepTrigger): Promise<boolean> {
    const { store } = this.deps
    // After a message of this process its own cache suffices, because mostly nothing is due.
    if (trigger !== 'tick' && this.nextStep(await store.readHead(key, 2, 0), trigger) === undefined) return false
    const head = await store.readHead(key, 2)
    const step = this.nextStep(head, trigger)
    return step !== undefined && this.performLeased(step, head)
  }

  /** Performs a step, with a lease on the session if it calls a model. Resolves to true if another one may be due. */
  private async performLeased(step: UpkeepStep, head: SessionHead): Promise<boolean> {
    const modelCall = this.deps.modelCallFor(head.key)
    if (modelCall === undefined || !mayUseModel(step)) return this.performStep(step, head, modelCall)
    return this.withModelSlot(async () => {
      const lease = await this.lease(head, modelCall)
      return lease === 'acquired' ? this.performStep(step, head, modelCall) : lease === 'conflict'
    })
  }

  /** Performs a step and commits its outcome. Without an outcome only the lease is released. */
  private async performStep(step: UpkeepStep, head: SessionHead, modelCall: ModelCall | undefined): Promise<boolean> {
    const { profile, store, tokenizer, clock, scopeTuning } = this.deps
    const { signal } = this.stopped
    const pause = this.pauseUnlessStopped
    let isCommitted = false
    try {
      const deps = { profile, store, tokenizer, modelCall, signal, pause, scopeTuning }
      const outcome = await perform(step, head, deps, clock())
      if (outcome === undefined || signal.aborted) return false
      await this.commit(head.key, outcome, pause)
      isCommitted = true
      this.recordStep(head.key, step, outcome)
      return true
    } finally {
      if (!isCommitted) await this.commit(head.key, emptyOutcome(head), this.deps.pause)
    }
  }

  /** Pauses long work of a step. Rejects once the scheduler was stopped, so that the work ends. */
  private readonly pauseUnlessStopped: Pause = () => {
    this.stopped.signal.throwIfAborted()
    return this.deps.pause()
  }

  private recordStep(key: Key, { kind }: UpkeepStep, { put, facts, notes }: StepOutcome): void {
    const at = this.deps.clock()
    const summaries = put.filter((entry) => entry.kind === 'summary').length
    const finished = { key: formatKey(key), at, step: kind, summaries, facts: facts.length }
    this.recentSteps = [{ ...finished, faults: notes.faults ?? [] }, ...this.recentSteps].slice(0, maxRecentSteps)
  }

  private nextStep(head: SessionHead, trigger: UpkeepTrigger): UpkeepStep | undefined {
    const { profile, tokenCost, clock } = this.deps
    const now = clock()
    const name = formatKey(head.key)
    if (head.revision === 0 || isExpired(head, now)) {
      this.watched.delete(name)
      return undefined
    }
    const input = { now, budget: this.budgets.get(name) ?? profile.budget, tokenCost: tokenCost }
    const [step] = planUpkeep(head, profile, trigger, input)
    if (step === undefined && trigger !== 'asked') this.setNextDue(name, nextDueOf(head, profile, input))
    if (step === undefined && trigger === 'tick' && !needsTick(head, profile)) this.watched.delete(name)
    return step
  }

  private setNextDue(name: string, nextDue: NextDue): void {
    if (this.nextDue.size >= maxTrackedSessions) this.nextDue.clear()
    this.nextDue.set(name, nextDue)
  }

  /** Leases a session for this process, so that two processes do not pay for the same model call. */
  private async lease(head: SessionHead, { timeout }: ModelCall): Promise<'acquired' | 'taken' | 'conflict'> {
    const { holder, clock } = this.deps
    const now = clock()
    const notes = head.derived.find((entry) => entry.kind === 'notes')
    // Two attempts of each call (summary, a second request for it, facts) plus time to commit. A lease that claims more
    // comes from a clock that is ahead, and is ignored.
    const maxLeaseMs = 6 * timeout + 30_000
    const leftMs = (notes?.lease?.until ?? now) - now
    if (notes?.lease?.holder !== holder && leftMs > 0 && leftMs <= maxLeaseMs) return 'taken'
    const lease = { holder, until: now + maxLeaseMs }
    const put: UpkeepNotes = { ...notes, kind: 'notes', id: 'notes', at: now, sources: [], lease }
    return (await tryCommit(this.deps.store, head, { put: [put], drop: [] })) ? 'acquired' : 'conflict'
  }

  /** Commits an outcome, retrying when the session changes meanwhile. An outcome that became invalid is discarded. */
  private async commit(key: Key, outcome: StepOutcome, pause: Pause): Promise<void> {
    const { store, clock, onPut, learn, shareTuning } = this.deps
    const applyInSteps = createOutcomeApplier(outcome)
    const revised = await revise(store, key, (head) => runInSlices(applyInSteps(head, clock()), pause))
    if (revised === undefined) return
    this.completedSteps++
    for (const entry of outcome.put) if (entry.kind === 'summary') this.lastSummaryBy = entry.by
    const before = this.faults.get(formatKey(key)) ?? []
    this.setFaults(key, outcome.notes.faults ?? before.filter(({ step }) => step !== 'upkeep'))
    onPut(key, revised.head.epoch, revised.put)
    const { tuning } = outcome.notes
    if (outcome.basis.optimizerRuns !== undefined && tuning !== undefined && tuning.runs > 0)
      await shareTuning(key, tuning)
    if (outcome.knowledge !== undefined) await learn(key, outcome.knowledge)
  }

  /** Replaces the faults of a session. */
  private setFaults(key: Key, faults: readonly Degradation[]): void {
    const name = formatKey(key)
    const at = this.deps.clock()
    const timed = faults.map((fault) => ({ ...fault, at }))
    if (timed.length === 0) this.faults.delete(name)
    else this.faults.set(name, timed)
  }
}

const mayUseModel = (step: UpkeepStep): boolean => (step.kind === 'learn' ? step.usesModel : 'task' in step)

/** Returns the latest occurrence of each fault across all sessions. */
function latestFaults(faults: readonly TimedDegradation[]): UpkeepHealth['degraded'] {
  const latest = new Map<string, TimedDegradation>()
  for (const fault of faults) {
    const name = `${fault.step} ${fault.why}`
    if (fault.at >= (latest.get(name)?.at ?? Number.NEGATIVE_INFINITY)) latest.set(name, fault)
  }
  return [...latest.values()]
}

/** Changes nothing except that committing it releases the lease. */
const emptyOutcome = ({ epoch }: SessionHead): StepOutcome => ({
  basis: { epoch, messages: [], summaries: [] },
  put: [],
  drop: [],
  facts: [],
  notes: {},
})
