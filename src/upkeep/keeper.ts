import type { Derived, Message, Millis, Notes, Tokens } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key, type Scope } from '../domain/key.ts'
import type { Degradation } from '../domain/ledger.ts'
import type { Clock, Store, Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import { type Head, isExpired } from '../domain/session.ts'
import { type Asking, aborted } from './ask.ts'
import { fold, type Outcome } from './fold.ts'
import { perform } from './perform.ts'
import { awaitsTick, type Occasion, occasions, plan, type Quiet, quietOf, type Step } from './plan.ts'
import { revise, wrote } from './revise.ts'
import type { Pause } from './work.ts'

/** What upkeep is done with. */
export type Means = {
  readonly profile: Profile
  readonly store: Store
  readonly tokenizer: Tokenizer
  readonly price: (entry: Derived) => Tokens
  /** The model for a session, if there is one. */
  readonly asking: (key: Key) => Asking | undefined
  readonly clock: Clock
  /** Lets whoever waits for an answer have it before the next piece of work. */
  readonly pause: Pause
  /** Tells this process from others that work on the same store. */
  readonly holder: string
  /** Hears of entries that were put into a session. */
  readonly onPut: (key: Key, epoch: number, entries: readonly Derived[]) => void
}

/** How upkeep is doing in this process. */
export type UpkeepHealth = {
  /** Who made the last summary: `builtin`, or the name of a model. */
  readonly by: string
  readonly running: number
  readonly done: number
  /** What last went wrong, step by step, and when; a step that goes well again is no longer here. */
  readonly degraded: readonly (Degradation & { readonly at: Millis })[]
}

/** What is asked of the newest message of a session. */
export type Newest = Pick<Message, 'sequence' | 'offset' | 'weight'>

/** So many models are asked at once. */
const abreast = 4
/** So many steps are done in one go. */
const mostSteps = 1_000
/** So many sessions are looked at again by the clock; more are looked at when they are next used. */
const mostAwake = 100_000

/** Of so many sessions it is known what went wrong. */
const mostFaulty = 1_000

/** A session that is being worked on, and why to look at it once more after that. */
type Lane = { running: Promise<void>; again: Occasion | undefined }

/**
 * Does what the rules of a profile ask for, one step of a session at a time: plan, perform, verify, commit. What is due
 * is decided from what is stored alone, so that whoever comes after a crash goes on where it stopped.
 */
export class Keeper {
  private readonly means: Means
  /** Whether contexts wait for any of it. */
  private readonly isWaitedFor: boolean
  private readonly lanes = new Map<string, Lane>()
  private readonly awake = new Map<string, Key>()
  private readonly budgets = new Map<string, Tokens>()
  private readonly quiet = new Map<string, Quiet>()
  /** What last went wrong, by session. */
  private readonly faults = new Map<string, readonly (Degradation & { readonly at: Millis })[]>()
  private readonly stopped = new AbortController()
  private readonly waiting: (() => void)[] = []
  private running = 0
  private done = 0
  private by = 'builtin'

  constructor(means: Means) {
    this.means = means
    this.isWaitedFor = means.profile.upkeep.some(({ blocking }) => blocking === true)
  }

  /** Takes note that something happened in a session, of which `newest` is known, said in this epoch, and returns at once. */
  heard(key: Key, occasion: Occasion, newest?: Newest, epoch?: number): void {
    if (this.means.profile.upkeep.length === 0 || this.stopped.signal.aborted) return
    const name = formatKey(key)
    // Not put there anew: each key would then outlive its request.
    if (!this.awake.has(name) && this.awake.size < mostAwake) this.awake.set(name, key)
    if ((occasion === 'asked' && !this.isWaitedFor) || this.isQuiet(name, newest, epoch)) return
    const lane = this.lanes.get(name)
    if (lane === undefined) this.open(name, key, occasion)
    else lane.again = occasions[Math.max(occasions.indexOf(occasion), occasions.indexOf(lane.again ?? 'asked'))]
  }

  /** Resolves when what the next context of a session waits for is done, or after its patience: then it is done later. Nothing, if that is now. Never fails. */
  ready(key: Key, budget: Tokens): Promise<void> | undefined {
    const name = formatKey(key)
    this.expect(name, budget)
    return this.isWaitedFor && this.lanes.has(name) ? this.patiently(name, this.means.asking(key)) : undefined
  }

  private async patiently(name: string, asking: Asking | undefined): Promise<void> {
    if (asking === undefined) return this.waited(name)
    const over = aborted(asking.expire(asking.patience))
    await Promise.race([this.waited(name), over.promise.catch(() => undefined)])
    over.end()
  }

  /** Looks again at the sessions in which something was said that a rule may still wait for: some are due by the clock alone. */
  tick(): void {
    for (const key of [...this.awake.values()]) this.heard(key, 'tick')
  }

  /** Lets go of what is known of a scope's sessions, some of which are gone or were changed. */
  drop(scope: Scope): void {
    for (const known of [this.quiet, this.faults])
      for (const name of known.keys()) if (name === scope || name.startsWith(`${scope}:`)) known.delete(name)
  }

  /** Resolves when nothing is under way any more. */
  async settled(): Promise<void> {
    while (this.lanes.size > 0) await Promise.all([...this.lanes.values()].map(({ running }) => running))
  }

  health(): UpkeepHealth {
    return {
      by: this.by,
      running: this.lanes.size,
      done: this.done,
      degraded: latestOf([...this.faults.values()].flat()),
    }
  }

  /** Stops for good; what is under way is given up, and done by whoever comes next. */
  async stop(): Promise<void> {
    this.stopped.abort()
    for (const resume of this.waiting.splice(0)) resume()
    await this.settled()
  }

  /** Contexts are built for this budget from now on; what is due depends on it. */
  private expect(name: string, budget: Tokens): void {
    const { profile } = this.means
    if (Math.max(budget, profile.budget) === (this.budgets.get(name) ?? profile.budget)) return
    this.quiet.delete(name)
    if (budget <= profile.budget) this.budgets.delete(name)
    else if (this.budgets.size < mostAwake) this.budgets.set(name, budget)
  }

  /** What was said while the first step was under way may ask for another. */
  private async waited(name: string): Promise<void> {
    await this.lanes.get(name)?.running
    await this.lanes.get(name)?.running
  }

  private isQuiet(name: string, newest: Newest | undefined, epoch: number | undefined): boolean {
    const quiet = newest && this.quiet.get(name)
    if (newest === undefined || quiet === undefined) return false
    return (
      epoch === quiet.epoch &&
      newest.offset + newest.weight <= quiet.weight &&
      newest.sequence < quiet.sequence &&
      this.means.clock() < quiet.until
    )
  }

  private open(name: string, key: Key, occasion: Occasion): void {
    const lane: Lane = { running: Promise.resolve(), again: undefined }
    this.lanes.set(name, lane)
    lane.running = this.work(key, occasion).then(() => {
      this.lanes.delete(name)
      if (lane.again !== undefined) this.heard(key, lane.again)
    })
  }

  private async work(key: Key, occasion: Occasion): Promise<void> {
    try {
      for (let steps = 0; steps < mostSteps && !this.stopped.signal.aborted; steps++)
        if (!(await this.next(key, occasion))) return
    } catch (error) {
      // Its message may quote what was said: only its kind is told.
      this.note(key, [{ step: 'upkeep', why: error instanceof MemoryError ? error.code : 'failed' }])
    }
  }

  /** Models are asked a few at a time; what needs none waits for nobody. */
  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.running >= abreast) await new Promise<void>((resume) => this.waiting.push(resume))
    this.running++
    try {
      return await work()
    } finally {
      this.running--
      this.waiting.shift()?.()
    }
  }

  /** Does the next step that is due, and tells whether to look for another. */
  private async next(key: Key, occasion: Occasion): Promise<boolean> {
    const asking = this.means.asking(key)
    const head = await this.means.store.head(key, 1)
    const step = this.due(head, occasion)
    if (step === undefined) return false
    if (asking === undefined || step.do === 'optimise' || step.do === 'refind') return this.take(step, head, asking)
    return this.inTurn(async () => {
      const leased = await this.lease(head, asking)
      return leased === 'mine' ? this.take(step, head, asking) : leased === 'moved on'
    })
  }

  /** Does a step and brings what comes of it into the session; what comes to nothing leaves no lease behind. */
  private async take(step: Step, head: Head, asking: Asking | undefined): Promise<boolean> {
    const { profile, store, tokenizer, clock, pause } = this.means
    const { signal } = this.stopped
    let outcome: Outcome | undefined
    try {
      outcome = await perform(step, head, { profile, store, tokenizer, asking, signal, pause }, clock())
    } finally {
      if (outcome === undefined || signal.aborted) await this.commit(head.key, nothing(head))
    }
    if (outcome === undefined || signal.aborted) return false
    await this.commit(head.key, outcome)
    return true
  }

  private due(head: Head, occasion: Occasion): Step | undefined {
    const { profile, price, clock } = this.means
    const now = clock()
    const name = formatKey(head.key)
    if (head.revision === 0 || isExpired(head, now)) {
      this.awake.delete(name)
      return undefined
    }
    const circumstances = { now, budget: this.budgets.get(name) ?? profile.budget, price }
    const [step] = plan(head, profile, occasion, circumstances)
    if (step === undefined && occasion !== 'asked') this.rest(name, quietOf(head, profile, circumstances))
    if (step === undefined && occasion === 'tick' && !awaitsTick(head, profile)) this.awake.delete(name)
    return step
  }

  private rest(name: string, quiet: Quiet): void {
    if (this.quiet.size >= mostAwake) this.quiet.clear()
    this.quiet.set(name, quiet)
  }

  /** Takes a session for this process, unless another is at work on it: a model is dear, and need not be asked twice. */
  private async lease(head: Head, { timeout }: Asking): Promise<'mine' | 'taken' | 'moved on'> {
    const { holder, clock } = this.means
    const now = clock()
    const notes = head.derived.find((entry) => entry.kind === 'notes')
    // Two attempts, and some time for what comes after. Who claims more has a clock that is wrong.
    const longest = 2 * timeout + 30_000
    const left = (notes?.lease?.until ?? now) - now
    if (notes?.lease?.holder !== holder && left > 0 && left <= longest) return 'taken'
    const lease = { holder, until: now + longest }
    const put: Notes = { ...notes, kind: 'notes', id: 'notes', at: now, sources: [], lease }
    return (await wrote(this.means.store, head, { put: [put], drop: [] })) ? 'mine' : 'moved on'
  }

  /** Brings an outcome into the session, however much is said in it meanwhile; one that no longer holds is let go. */
  private async commit(key: Key, outcome: Outcome): Promise<void> {
    const { store, clock, onPut } = this.means
    const revised = await revise(store, key, (head) => fold(head, outcome, clock()))
    if (revised === undefined) return
    this.done++
    for (const entry of outcome.put) if (entry.kind === 'summary') this.by = entry.by
    const before = this.faults.get(formatKey(key)) ?? []
    this.note(key, outcome.notes.faults ?? before.filter(({ step }) => step !== 'upkeep'))
    onPut(key, revised.head.epoch, revised.put)
  }

  /** What last went wrong in a session; what goes well again is forgotten. */
  private note(key: Key, faults: readonly Degradation[]): void {
    const name = formatKey(key)
    const at = this.means.clock()
    this.faults.delete(name)
    if (faults.length > 0)
      this.faults.set(
        name,
        faults.map((fault) => ({ ...fault, at })),
      )
    const [oldest] = this.faults.keys()
    if (this.faults.size > mostFaulty && oldest !== undefined) this.faults.delete(oldest)
  }
}

/** Of each thing that went wrong, in whichever session, the last time. */
function latestOf(faults: readonly (Degradation & { readonly at: Millis })[]): UpkeepHealth['degraded'] {
  const latest = new Map<string, Degradation & { readonly at: Millis }>()
  for (const fault of faults) {
    const name = `${fault.step} ${fault.why}`
    if (fault.at >= (latest.get(name)?.at ?? Number.NEGATIVE_INFINITY)) latest.set(name, fault)
  }
  return [...latest.values()]
}

/** Changes nothing but the lease, which ends with the work. */
const nothing = ({ epoch }: Head): Outcome => ({
  basis: { epoch, messages: [], summaries: [] },
  put: [],
  drop: [],
  found: [],
  notes: {},
})
