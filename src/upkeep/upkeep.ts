import type { Derived, Fact, Knowledge, Message, Millis, Summary } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { type Key, parseKey, type Scope, scopeKey } from '../domain/key.ts'
import type { Model, Store } from '../domain/ports.ts'
import type { Head } from '../domain/session.ts'
import { ageKnowledge } from './age.ts'
import type { Asking } from './ask.ts'
import { noted } from './fold.ts'
import { Keeper, type Means, type Newest, type UpkeepHealth } from './keeper.ts'
import { factsAsOf } from './merge.ts'
import { type Occasion, summariesIn } from './plan.ts'
import { type MemoryRecord, recordOf } from './record.ts'
import { rederived } from './rederive.ts'
import { revise } from './revise.ts'
import { type OptimizerStatus, statusOf } from './tune.ts'
import { type Loss, lossesOf } from './verify.ts'
import type { Pause } from './work.ts'

/** What upkeep needs of a memory. */
export type UpkeepMeans = Omit<Means, 'store' | 'asking' | 'pause' | 'holder'> & {
  readonly sessions: Store
  readonly store: Store
}

export type ModelChoice = Model | ((key: Key) => Model | undefined)

export type UpkeepOptions = {
  /** Makes summaries and finds important data, the same model for all sessions or one for each; without one, the built-in rules do. */
  readonly model?: ModelChoice | undefined
  /** How long a model may take for an answer; 30 seconds when left out. */
  readonly timeout?: Millis | undefined
  /** How long a context waits for a summary it should wait for, before it does without; 10 seconds when left out. */
  readonly patience?: Millis | undefined
  readonly expire?: Asking['expire'] | undefined
  /** Lets others have their turn while much is summed up, as a timer or `setImmediate` does; nobody is when left out. */
  readonly pause?: Pause | undefined
}

const noPause: Pause = () => Promise.resolve()

/** What a summary does not say, and where it still stands. */
export type Lost = { readonly summary: string; readonly losses: readonly Loss[] }

/** What is old and how it is kept small: does it, and tells what was done. */
export class Upkeep {
  private readonly means: UpkeepMeans
  private readonly keeper: Keeper
  private agesAt = Number.NEGATIVE_INFINITY

  constructor(means: UpkeepMeans, options: UpkeepOptions = {}) {
    const {
      model,
      timeout = 30_000,
      patience = 10_000,
      expire = (after) => AbortSignal.timeout(after),
      pause = noPause,
    } = options
    this.means = means
    const asking = (key: Key): Asking | undefined => {
      const chosen = typeof model === 'function' ? model(key) : model
      return chosen && { model: chosen, timeout, patience, expire }
    }
    this.keeper = new Keeper({ ...means, store: means.sessions, asking, pause, holder: crypto.randomUUID() })
  }

  /** Takes note that something was said, and returns at once. */
  heard(key: Key, occasion: Occasion, newest?: Newest, epoch?: number): void {
    this.keeper.heard(key, occasion, newest, epoch)
  }

  /** Takes note that something of a scope was forgotten. */
  forgot(scope: Scope): void {
    this.keeper.drop(scope)
  }

  /** Resolves when what the next context waits for is done; nothing, if that is now. */
  ready(key: Key, budget: number): Promise<void> | undefined {
    return this.keeper.ready(key, budget)
  }

  /** Does what is due by the clock: the optimizer, and ageing of knowledge. The host decides how often; `sweep` does it too. */
  async tick(now: Millis = this.means.clock()): Promise<void> {
    this.keeper.tick()
    const rule = this.means.profile.upkeep.find(({ do: task }) => 'age' in task)
    if (rule === undefined || !('every' in rule.when)) return
    const { every } = rule.when
    // A time further ahead than it is ever set was set by a clock that has gone back since.
    if (now < this.agesAt && this.agesAt <= now + every) return
    // Not before something is due, but often enough to see what has come meanwhile.
    this.agesAt = Math.min(await ageKnowledge(this.means.store, now), now + every)
  }

  /** Resolves when nothing is under way. */
  settled(): Promise<void> {
    return this.keeper.settled()
  }

  /** Who does upkeep, how much is under way, and what last went wrong. */
  health(): UpkeepHealth {
    return this.keeper.health()
  }

  async stop(): Promise<void> {
    await this.keeper.stop()
  }

  /** A derived entry made anew from the messages that are left of its sources. */
  async rederive(entry: Derived, left: readonly Message[]): Promise<Derived | undefined> {
    return rederived(entry, left, this.means.profile, this.means.tokenizer)
  }

  /**
   * Important data and summary of a session in one record, as they are or as they were at a time.
   *
   * @example
   * (await memory.upkeep.record('acme:ann')).important_data.user_preferences // { theme: 'dark' }
   */
  async record(key: string | Key, options: { readonly asOf?: Millis } = {}): Promise<MemoryRecord> {
    const { derived, gaps } = await this.head(parseKey(key))
    return recordOf(derived, options.asOf, gaps)
  }

  /** Takes the record of a session away; what was said stays, and is summed up anew when there is enough of it. */
  async clear(key: string | Key): Promise<void> {
    this.keeper.drop(parseKey(key).scope)
    await revise(this.means.sessions, parseKey(key), (head) => {
      const notes = noted(head, { faults: [] }, this.means.clock())
      const drop = head.derived.filter((entry) => entry.kind === 'fact' || entry.kind === 'summary').map(({ id }) => id)
      return drop.length === 0 ? undefined : { put: notes.put, drop: [...drop, ...notes.drop] }
    })
  }

  /** What a session's user has said that matters, as it holds now, or held at a time; with `history` also what was superseded. */
  async facts(
    key: string | Key,
    options: { readonly asOf?: Millis; readonly history?: boolean } = {},
  ): Promise<readonly Fact[]> {
    const facts = (await this.head(parseKey(key))).derived.filter((entry): entry is Fact => entry.kind === 'fact')
    if (options.history === true) return facts
    return options.asOf === undefined
      ? facts.filter(({ until }) => until === undefined)
      : factsAsOf(facts, options.asOf)
  }

  async summaries(key: string | Key): Promise<readonly Summary[]> {
    const { derived } = await this.head(parseKey(key))
    return (['session', 'hour', 'progressive', 'batch'] as const).flatMap((tier) => summariesIn(derived, tier))
  }

  /** What the summaries of a session do not say, each with the message that still does. */
  async losses(key: string | Key): Promise<readonly Lost[]> {
    const parsed = parseKey(key)
    const lost: Lost[] = []
    for (const summary of await this.summaries(parsed)) {
      const messages: Message[] = []
      for (const [first, last] of summary.lost)
        messages.push(
          ...(await this.means.sessions.page(parsed, { after: first - 1, before: last + 1, limit: last - first + 1 })),
        )
      lost.push({ summary: summary.id, losses: lossesOf(summary.text, messages) })
    }
    return lost
  }

  /** What a scope knows, also what waits for approval. */
  async knowledge(scope: Scope): Promise<readonly Knowledge[]> {
    const { derived } = await this.means.store.head(scopeKey(parseKey(scope)), 0)
    return derived.filter((entry): entry is Knowledge => entry.kind === 'knowledge')
  }

  /** Lets knowledge that waits for approval be shown. To reject it, forget it. */
  async approve(scope: Scope, id: string): Promise<Knowledge> {
    const approved = (derived: readonly Derived[]): Knowledge => {
      const known = derived.find((entry): entry is Knowledge => entry.kind === 'knowledge' && entry.id === id)
      if (known === undefined)
        throw new MemoryError('bad-option', `${scope} knows nothing with the id ${id}.`, { param: 'id' })
      const { pending: _, ...rest } = known
      return rest
    }
    const key = scopeKey(parseKey(scope))
    await revise(this.means.store, key, ({ derived }) => ({ put: [approved(derived)], drop: [] }))
    return approved((await this.head(key)).derived)
  }

  /** How the optimizer is doing in one session, in those of a scope, or in all. */
  async optimizer(where?: string): Promise<OptimizerStatus> {
    const { sessions } = this.means
    const key = where === undefined ? undefined : parseKey(where)
    const keys =
      key === undefined || key.id === ''
        ? (await sessions.list({ ...(key && { scope: key.scope }), limit: Number.MAX_SAFE_INTEGER })).map(
            (one) => one.key,
          )
        : [key]
    const heads = await Promise.all(keys.map((one) => sessions.head(one, 0)))
    return statusOf(
      heads.flatMap(({ derived }) =>
        derived.flatMap((entry) => (entry.kind === 'notes' && entry.tuning !== undefined ? [entry.tuning] : [])),
      ),
    )
  }

  private head(key: Key): Promise<Head> {
    return (key.id === '' ? this.means.store : this.means.sessions).head(key, 0)
  }
}

/** Upkeep by the built-in rules, or by a model as far as what it says holds. */
export const upkeepWith =
  (options: UpkeepOptions = {}): ((means: UpkeepMeans) => Upkeep) =>
  (means) =>
    new Upkeep(means, options)
