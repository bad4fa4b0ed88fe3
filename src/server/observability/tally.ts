import type { Millis, Tokens } from '../../domain/entry.ts'
import { Recent } from './recent.ts'
import { isAnswered, type Turn } from './turn.ts'

/** What the turns of a session, or of a tenant, add up to. A turn without a reply counts as failed, and in nothing else. */
export type Tally = {
  turns: number
  failed: number
  shown: Tokens
  history: Tokens
  saved: Tokens
  cacheable: Tokens
  /** As upstreams report them; those that report nothing add nothing. */
  prompt: Tokens
  completion: Tokens
  cached: Tokens
  readonly millis: { total: Millis; memory: Millis }
}

/** How conversations go, as the server's JSON tells it; null where there is nothing to divide by. */
export type Figures = {
  readonly turns: number
  readonly failed: number
  readonly tokens: Pick<Tally, 'shown' | 'history' | 'saved' | 'cacheable' | 'prompt' | 'completion' | 'cached'>
  /** Milliseconds of a turn on average, and what memory itself took of them. */
  readonly latency: { readonly mean: Millis; readonly memory: Millis } | null
  /** What was shown as a part of the whole history. */
  readonly compression: number | null
  /** What of the tokens shown came before in the same place, and what of the prompts the upstreams took from their caches. */
  readonly cache: { readonly cacheable: number | null; readonly taken: number | null }
}

export const nothing = (): Tally => ({
  turns: 0,
  failed: 0,
  shown: 0,
  history: 0,
  saved: 0,
  cacheable: 0,
  prompt: 0,
  completion: 0,
  cached: 0,
  millis: { total: 0, memory: 0 },
})

/** Adds one more turn to a tally. */
export function count(tally: Tally, turn: Turn): void {
  if (!isAnswered(turn)) {
    tally.failed++
    return
  }
  const { tokens, millis } = turn
  tally.turns++
  tally.shown += tokens.shown
  tally.history += tokens.history
  tally.saved += tokens.saved
  tally.cacheable += tokens.cacheable
  tally.prompt += tokens.prompt ?? 0
  tally.completion += tokens.completion ?? 0
  tally.cached += tokens.cached ?? 0
  tally.millis.total += millis.total
  tally.millis.memory += millis.memory
}

/** A tally as people read it. */
export function figuresOf({ turns, failed, millis, ...tokens }: Readonly<Tally>): Figures {
  return {
    turns,
    failed,
    tokens,
    latency: turns === 0 ? null : { mean: millis.total / turns, memory: millis.memory / turns },
    compression: part(tokens.shown, tokens.history),
    cache: { cacheable: part(tokens.cacheable, tokens.shown), taken: part(tokens.cached, tokens.prompt) },
  }
}

const part = (some: number, all: number): number | null => (all === 0 ? null : some / all)

/**
 * The tallies of sessions and of tenants, in RAM: the most recently used of each are kept. A tenant's is a sum of its
 * own, so that it does not shrink when a session is no longer among them.
 */
export class Tallies {
  private readonly sessions: Recent<Tally>
  private readonly scopes: Recent<Tally>

  constructor(most = 10_000) {
    this.sessions = new Recent(most, nothing)
    this.scopes = new Recent(most, nothing)
  }

  heard(turn: Turn): void {
    if (turn.key !== undefined) count(this.sessions.used(turn.key), turn)
    if (turn.scope !== undefined) count(this.scopes.used(turn.scope), turn)
  }

  session(key: string): Figures {
    return figuresOf(this.sessions.get(key) ?? nothing())
  }

  scope(scope: string): Figures {
    return figuresOf(this.scopes.get(scope) ?? nothing())
  }

  /** Forgets a session, or a tenant with all its sessions: an id may be somebody's name. */
  forget(target: { readonly key: string } | { readonly scope: string }): void {
    if ('key' in target) this.sessions.drop((key) => key === target.key)
    else {
      this.scopes.drop((scope) => scope === target.scope)
      this.sessions.drop((key) => key === target.scope || key.startsWith(`${target.scope}:`))
    }
  }
}
