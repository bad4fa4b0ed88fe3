import { checkOptions } from '../domain/checkOptions.ts'
import type { DerivedEntry, Fact, Json, Knowledge, Message, Millis, Summary, TuningState } from '../domain/entry.ts'
import {
  anyFunction,
  anyText,
  anyValue,
  finiteNumber,
  integerAtLeast,
  MemoryError,
  positiveNumber,
  trueOrFalse,
} from '../domain/error.ts'
import { formatKey, type Key, knowledgeKey, parseKey, type Scope } from '../domain/key.ts'
import type { Degradation } from '../domain/ledger.ts'
import type { Model, Store } from '../domain/ports.ts'
import { isExpired, type SessionHead } from '../domain/session.ts'
import { type Pause, runInSlices, runSync } from '../domain/work.ts'
import { ageKnowledge, changeKnowledge, restoreKnowledge } from './confidence.ts'
import { factsAsOf } from './extract/merge.ts'
import type { KnowledgeProposal } from './learn/learn.ts'
import type { ModelCall } from './modelCall.ts'
import { buildOptimizerStatus, type OptimizerStatus } from './optimizer/optimizer.ts'
import { ScopeTuning } from './optimizer/scopeTuning.ts'
import { createOutcomeApplier, updateNotes } from './outcome.ts'
import { summariesOfTier, type UpkeepTrigger } from './plan.ts'
import { buildRecord, type MemoryRecord } from './record.ts'
import { rederive } from './rederive.ts'
import { revise } from './revise.ts'
import { type NewestMessage, type SchedulerDeps, type UpkeepHealth, UpkeepScheduler } from './scheduler.ts'
import { checkRecordUpdate, planRecordUpdate, type RecordUpdate } from './updateRecord.ts'
import { findLossesInSteps, type Loss } from './verify.ts'

/** Dependencies of upkeep that a memory provides. */
export type UpkeepDeps = Omit<
  SchedulerDeps,
  'store' | 'modelCallFor' | 'pause' | 'holder' | 'learn' | 'scopeTuning' | 'shareTuning'
> & {
  readonly sessions: Store
  readonly store: Store
  /** Stores knowledge in the memory of a scope. Default: nothing is learnt. */
  readonly remember?: ((scope: Scope, knowledge: LearnedKnowledge) => Promise<unknown>) | undefined
  /** Masks the secrets of texts that are stored for a session. */
  readonly masker?: Masker | undefined
}

/** Knowledge that a session has learnt. */
type LearnedKnowledge = KnowledgeProposal & { readonly session: string }

type Masker = {
  maskText(key: Key, text: string): Promise<string>
  maskJson(key: Key, value: Json): Promise<Json>
}

/** One model for all sessions, or a function that returns the model of a session. */
export type ModelChoice = Model | ((key: Key) => Model | undefined)

/** Options of `createUpkeep`. */
export type UpkeepOptions = {
  /** Model that writes summaries and extracts facts. Default: none, the built-in rules are used. */
  readonly model?: ModelChoice | undefined
  /** Time limit of one model call in milliseconds. Default: 30 000. */
  readonly timeout?: Millis | undefined
  /** Time a context waits for upkeep that blocks it, in milliseconds. Default: 10 000. */
  readonly maxContextWait?: Millis | undefined
  /** Creates a signal that aborts after a delay. Default: `AbortSignal.timeout`. */
  readonly timeoutSignal?: ModelCall['timeoutSignal'] | undefined
  /** Yields to other work during long computations, for example with `setImmediate`. Default: no yielding. */
  readonly pause?: Pause | undefined
}

/** The owner of knowledge: a person or, without one, the scope. */
export type KnowledgeOwner = { readonly person?: string }
/** Options of `knowledge`. */
export type KnowledgeListOptions = KnowledgeOwner & {
  /** Includes archived entries; default false. */
  readonly archived?: boolean
}

const noPause: Pause = () => Promise.resolve()

/** Content that a summary omits, each item with the message that still has it. */
export type SummaryLosses = { readonly summary: string; readonly losses: readonly Loss[] }

/** Facts and summaries that a run of upkeep has stored, and its faults. */
export type UpkeepRunResult = {
  readonly facts: readonly Fact[]
  readonly summaries: readonly Summary[]
  readonly degraded: readonly Degradation[]
}

/** Maintains the derived entries of a memory: summaries, facts, optimizer notes and knowledge. */
export class Upkeep {
  private readonly deps: UpkeepDeps
  private readonly scheduler: UpkeepScheduler
  private readonly pause: Pause
  private nextAgingAt = Number.NEGATIVE_INFINITY

  constructor(deps: UpkeepDeps, options: UpkeepOptions = {}) {
    const {
      model,
      timeout = 30_000,
      maxContextWait = 10_000,
      timeoutSignal = (after) => AbortSignal.timeout(after),
      pause = noPause,
    } = options
    this.deps = deps
    this.pause = pause
    const modelCallFor = (key: Key): ModelCall | undefined => {
      const chosen = typeof model === 'function' ? model(key) : model
      return chosen && { model: chosen, timeout, maxContextWait, timeoutSignal }
    }
    const holder = crypto.randomUUID()
    const tuning = new ScopeTuning(deps.store, deps.profile.name)
    this.scheduler = new UpkeepScheduler({
      ...deps,
      store: deps.sessions,
      modelCallFor,
      pause,
      holder,
      learn: (key, knowledge) => this.learn(key, knowledge),
      scopeTuning: (key) => tuning.read(key),
      shareTuning: (key, state) => tuning.write(key, state, deps.clock()),
    })
  }

  /** Stores what a session has learnt. It never changes what was stored for the scope itself. */
  private async learn(key: Key, proposals: readonly KnowledgeProposal[]): Promise<void> {
    const { remember } = this.deps
    if (remember === undefined || proposals.length === 0) return
    const known = await this.knowledge(key.scope)
    for (const { confidence, ...proposal } of proposals) {
      const before = known.find(({ category, key: name }) => category === proposal.category && name === proposal.key)
      if (before?.sources.some(({ session }) => session === '')) continue
      const given = before === undefined && confidence !== undefined ? { confidence } : {}
      await remember(key.scope, { ...proposal, ...given, session: key.id })
    }
  }

  /** Schedules a check of a session and returns at once. */
  notify(key: Key, trigger: UpkeepTrigger, newest?: NewestMessage, epoch?: number): void {
    this.scheduler.notify(key, trigger, newest, epoch)
  }

  /** Stores at once what the user asks to remember in new messages. Returns undefined if they ask for nothing. */
  storeReminders(key: Key, epoch: number, messages: readonly Message[]): Promise<void> | undefined {
    return this.scheduler.storeReminders(key, epoch, messages)
  }

  /** Discards cached state of a scope after something in it was forgotten. */
  invalidate(scope: Scope): void {
    this.scheduler.invalidate(scope)
  }

  /** Resolves when the upkeep that blocks the next context is done. Returns undefined when there is none. */
  whenReady(key: Key, budget: number): Promise<void> | undefined {
    return this.scheduler.whenReady(key, budget)
  }

  /**
   * Runs the rules that depend on time: the optimizer and knowledge ageing. The host decides the interval; `sweep`
   * calls this too.
   */
  async tick(now: Millis = this.deps.clock()): Promise<void> {
    this.scheduler.tick()
    const rule = this.deps.profile.upkeep.find(({ do: task }) => 'age' in task)
    if (rule === undefined || !('every' in rule.when)) return
    const { every } = rule.when
    // A time more than one interval ahead was set by a clock that has been corrected since.
    if (now < this.nextAgingAt && this.nextAgingAt <= now + every) return
    // At least once per interval, because new knowledge may have been added.
    this.nextAgingAt = Math.min(await ageKnowledge(this.deps.store, now), now + every)
  }

  /**
   * Performs the upkeep of a session now, and extracts the facts of all its messages without waiting for the session to
   * grow. With `summarise`, also summarises all but the last exchange, even if the session is short.
   *
   * @throws {MemoryError} `bad-option` if the session does not exist.
   */
  async run(key: string | Key, options: { readonly summarise?: boolean } = {}): Promise<UpkeepRunResult> {
    const parsed = parseKey(key)
    checkOptions<{ summarise?: boolean }>('run', options, { summarise: trueOrFalse })
    const before = await this.head(parsed)
    if (parsed.id === '' || before.revision === 0) throw missingSession(parsed)
    const degraded = await this.scheduler.runNow(parsed, options.summarise === true)
    const known = new Set(before.derived.map(entryVersion))
    const { derived } = await this.head(parsed)
    const stored = derived.filter((entry) => !known.has(entryVersion(entry)))
    return {
      facts: stored.filter((entry) => entry.kind === 'fact'),
      summaries: stored.filter((entry) => entry.kind === 'summary'),
      degraded,
    }
  }

  /** Resolves when no upkeep is in progress. */
  whenIdle(): Promise<void> {
    return this.scheduler.whenIdle()
  }

  /** Returns the author of the last summary, the work in progress and the latest faults. */
  health(): UpkeepHealth {
    return this.scheduler.health()
  }

  /** Aborts upkeep in progress. Unfinished steps are done by the next process. */
  async stop(): Promise<void> {
    await this.scheduler.stop()
  }

  /** Rebuilds a derived entry from the remaining messages of its sources; undefined if nothing remains of it. */
  async rederive(entry: DerivedEntry, remaining: readonly Message[]): Promise<DerivedEntry | undefined> {
    const { profile, tokenizer } = this.deps
    return runInSlices(rederive(entry, remaining, profile, tokenizer), this.pause)
  }

  /**
   * Returns the facts and the summary of a session as one record, optionally as of an earlier time.
   *
   * @example
   * (await memory.upkeep.record('acme:ann')).important_data.user_preferences // { theme: 'dark' }
   */
  async record(key: string | Key, options: { readonly asOf?: Millis } = {}): Promise<MemoryRecord> {
    const parsed = parseKey(key)
    checkOptions<{ asOf?: Millis }>('record', options, { asOf: finiteNumber })
    const { derived, gaps } = await this.head(parsed)
    return buildRecord(derived, options.asOf, gaps)
  }

  /**
   * Adds values to the record of a session, or replaces its summary, as stated by the caller. Returns the new record.
   *
   * @example
   * await memory.upkeep.update('acme:ann', { important_data: { user_preferences: { theme: 'dark' } } })
   * @throws {MemoryError} `bad-option` for an invalid update, or if the session does not exist.
   */
  async update(key: string | Key, update: RecordUpdate): Promise<MemoryRecord> {
    const parsed = parseKey(key)
    checkRecordUpdate(update)
    const { sessions, masker, clock, onPut } = this.deps
    const masked = masker === undefined ? update : await maskUpdate(masker, parsed, update)
    const now = clock()
    const revised = await revise(sessions, parsed, (head) => {
      if (parsed.id === '' || head.revision === 0 || isExpired(head, now)) throw missingSession(parsed)
      return runSync(createOutcomeApplier(planRecordUpdate(head, masked, now))(head, now))
    })
    if (revised !== undefined) onPut(parsed, revised.head.epoch, revised.put)
    this.scheduler.invalidate(parsed.scope)
    return this.record(parsed)
  }

  /** Deletes the facts and summaries of a session. Messages stay, and are summarised again when a rule is due. */
  async clear(key: string | Key): Promise<void> {
    this.scheduler.invalidate(parseKey(key).scope)
    await revise(this.deps.sessions, parseKey(key), (head) => {
      const notes = updateNotes(head, { faults: [] }, this.deps.clock())
      const drop = head.derived.filter((entry) => entry.kind === 'fact' || entry.kind === 'summary').map(({ id }) => id)
      return drop.length === 0 ? undefined : { put: notes.put, drop: [...drop, ...notes.drop] }
    })
  }

  /** Lists the facts that hold now, or held at `asOf`. With `history` superseded facts are included. */
  async facts(
    key: string | Key,
    options: { readonly asOf?: Millis; readonly history?: boolean } = {},
  ): Promise<readonly Fact[]> {
    checkOptions<{ asOf?: Millis; history?: boolean }>('facts', options, { asOf: finiteNumber, history: trueOrFalse })
    const facts = (await this.head(parseKey(key))).derived.filter((entry): entry is Fact => entry.kind === 'fact')
    if (options.history === true) return facts
    return options.asOf === undefined
      ? facts.filter(({ until }) => until === undefined)
      : factsAsOf(facts, options.asOf)
  }

  /** Lists the summaries of a session. */
  async summaries(key: string | Key): Promise<readonly Summary[]> {
    const { derived } = await this.head(parseKey(key))
    return (['session', 'hour', 'progressive', 'batch'] as const).flatMap((tier) => summariesOfTier(derived, tier))
  }

  /** Lists content that the summaries of a session omit, each item with the message that still has it. */
  async losses(key: string | Key): Promise<readonly SummaryLosses[]> {
    const parsed = parseKey(key)
    const result: SummaryLosses[] = []
    for (const summary of await this.summaries(parsed)) {
      const messages: Message[] = []
      for (const [first, last] of summary.lossyRanges) {
        const range = { after: first - 1, before: last + 1, limit: last - first + 1 }
        for (const message of await this.deps.sessions.readMessages(parsed, range)) messages.push(message)
      }
      const losses = await runInSlices(findLossesInSteps(summary.text, messages), this.pause)
      result.push({ summary: summary.id, losses })
    }
    return result
  }

  /**
   * Lists the knowledge of a scope or a person, including entries that wait for approval; with `archived`, also those
   * that have faded.
   */
  async knowledge(scope: Scope, options: KnowledgeListOptions = {}): Promise<readonly Knowledge[]> {
    checkOptions<KnowledgeListOptions>('knowledge', options, { person: anyText, archived: trueOrFalse })
    const { derived } = await this.deps.store.readHead(knowledgeKey(parseKey(scope), options.person), 0)
    return derived.filter(
      (entry): entry is Knowledge => entry.kind === 'knowledge' && (options.archived === true || !entry.archived),
    )
  }

  /**
   * Approves pending knowledge, so that contexts show it. Throws `bad-option` if the id is unknown. To reject it,
   * forget it.
   */
  async approve(scope: Scope, id: string, options: KnowledgeOwner = {}): Promise<Knowledge> {
    checkOptions<KnowledgeOwner>('approve', options, { person: anyText })
    const { store, clock } = this.deps
    return changeKnowledge(store, knowledgeKey(parseKey(scope), options.person), id, ({ pending: _, ...known }) =>
      restoreKnowledge(known, clock()),
    )
  }

  /** Brings archived knowledge back as if it were stated anew. Throws `bad-option` if the id is unknown. */
  async restore(scope: Scope, id: string, options: KnowledgeOwner = {}): Promise<Knowledge> {
    checkOptions<KnowledgeOwner>('restore', options, { person: anyText })
    const { store, clock } = this.deps
    const key = knowledgeKey(parseKey(scope), options.person)
    return changeKnowledge(store, key, id, (known) => restoreKnowledge(known, clock()))
  }

  /** Returns optimizer statistics of one session, of a scope, or of all sessions. */
  async optimizerStatus(target?: string): Promise<OptimizerStatus> {
    const { sessions } = this.deps
    const key = target === undefined ? undefined : parseKey(target)
    const keys =
      key === undefined || key.id === ''
        ? (await sessions.list({ ...(key && { scope: key.scope }), limit: Number.MAX_SAFE_INTEGER })).map(
            (session) => session.key,
          )
        : [key]
    const tunings: TuningState[] = []
    // One after the other: all heads of a large store at once would take gigabytes.
    for (const session of keys) {
      const { derived } = await sessions.readHead(session, 0)
      tunings.push(...derived.flatMap(lastTuning))
      await this.pause()
    }
    return buildOptimizerStatus(tunings)
  }

  private head(key: Key): Promise<SessionHead> {
    return (key.id === '' ? this.deps.store : this.deps.sessions).readHead(key, 0)
  }
}

/** The tuning of a session without the runs before the last one. */
const lastTuning = (entry: DerivedEntry): readonly TuningState[] =>
  entry.kind === 'notes' && entry.tuning !== undefined
    ? [{ ...entry.tuning, snapshots: entry.tuning.snapshots.slice(-1) }]
    : []

async function maskUpdate(masker: Masker, key: Key, update: RecordUpdate): Promise<RecordUpdate> {
  const { important_data: data, conversation_summary: text } = update
  return {
    ...update,
    ...(data !== undefined && { important_data: (await masker.maskJson(key, data as Json)) as typeof data }),
    ...(text !== undefined && { conversation_summary: await masker.maskText(key, text) }),
  }
}

const entryVersion = (entry: DerivedEntry): string =>
  `${entry.kind} ${entry.id} ${entry.kind === 'summary' ? entry.version : ''}`

const missingSession = (key: Key): MemoryError =>
  new MemoryError('bad-option', `There is no session ${formatKey(key)}. Append a message to it first.`, {
    param: 'key',
  })

/** Creates upkeep for `openMemory`: by the built-in rules, or by a model whose output is verified. */
export const createUpkeep = (options: UpkeepOptions = {}): ((deps: UpkeepDeps) => Upkeep) => {
  checkOptions<UpkeepOptions>('createUpkeep', options, {
    model: anyValue,
    timeout: positiveNumber,
    maxContextWait: integerAtLeast(0),
    timeoutSignal: anyFunction,
    pause: anyFunction,
  })
  return (deps) => new Upkeep(deps, options)
}
