import type { Millis, TuningParameters, TuningState, UpkeepNotes } from '../../domain/entry.ts'
import { type Key, scopeKey } from '../../domain/key.ts'
import type { Store } from '../../domain/ports.ts'
import { revise } from '../revise.ts'

/** Optimizer parameters that the sessions of a scope share, by profile. A new session begins with them. */
export class ScopeTuning {
  private readonly store: Store
  private readonly id: string

  constructor(store: Store, profile: string) {
    this.store = store
    this.id = `tuning.${profile}`
  }

  async read(key: Key): Promise<TuningParameters | undefined> {
    const { derived } = await this.store.readHead(scopeKey(key), 0)
    return derived.find((entry): entry is UpkeepNotes => entry.kind === 'notes' && entry.id === this.id)?.tuning
      ?.parameters
  }

  /** Stores the parameters of the last run. The statistics stay with the sessions. */
  async write(key: Key, { parameters }: TuningState, now: Millis): Promise<void> {
    const tuning: TuningState = { parameters, runs: 0, saved: 0, snapshots: [] }
    const notes: UpkeepNotes = { kind: 'notes', id: this.id, at: now, tuning, sources: [] }
    const isCurrent = JSON.stringify(await this.read(key)) === JSON.stringify(parameters)
    if (!isCurrent) await revise(this.store, scopeKey(key), () => ({ put: [notes], drop: [] }), now)
  }
}
