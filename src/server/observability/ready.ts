import type { Degradation } from '../../domain/ledger.ts'

/** How an upstream has answered lately: well, not always, or not at all. */
export type UpstreamState = 'ok' | 'failing' | 'down'

/** All that decides whether the server may be sent requests. */
export type State = {
  /** What keeps the store from being read or written, if anything does. */
  readonly store: 'ok' | { readonly fault: string }
  readonly upstreams: readonly { readonly name: string; readonly state: UpstreamState }[]
  /** Whether it is shutting down: what is under way is finished, nothing new is taken. */
  readonly draining: boolean
  readonly upkeep: readonly Degradation[]
  /** Bytes that sessions take in RAM, and how many they may. */
  readonly bytes: { readonly used: number; readonly limit?: number }
  /** Ends of sessions that wait to be delivered although it was tried. */
  readonly waiting: number
}

/** `degraded` names the part and why; a server that is not ready always has a reason there. */
export type Readiness = {
  readonly ready: boolean
  readonly status: 'ok' | 'degraded' | 'draining' | 'unavailable'
  readonly degraded: readonly {
    readonly part: 'server' | 'store' | 'upstream' | 'upkeep' | 'memory' | 'outbox'
    readonly why: string
  }[]
}

/**
 * Whether requests would be answered, and what is not as it should be. Only what concerns every request makes a server
 * not ready: it is draining, the store is out of order, or no upstream is left.
 *
 * @example
 * readiness({ store: 'ok', upstreams: [], draining: false, upkeep: [], bytes: { used: 0 }, waiting: 0 }).ready // true
 */
export function readiness(state: State): Readiness {
  const { store, upstreams, draining, upkeep, bytes, waiting } = state
  const isCutOff = upstreams.length > 0 && upstreams.every(({ state }) => state === 'down')
  const isUnavailable = store !== 'ok' || isCutOff
  const isFull = bytes.limit !== undefined && bytes.used >= bytes.limit
  const degraded: Readiness['degraded'] = [
    ...(draining ? [{ part: 'server' as const, why: 'is shutting down' }] : []),
    ...(store === 'ok' ? [] : [{ part: 'store' as const, why: store.fault }]),
    ...upstreams
      .filter(({ state }) => state !== 'ok')
      .map(({ name, state }) => ({ part: 'upstream' as const, why: `${name} is ${state}` })),
    ...upkeep.map(({ step, why }) => ({ part: 'upkeep' as const, why: `${step} ${why}` })),
    ...(isFull
      ? [
          {
            part: 'memory' as const,
            why: `${bytes.used} of ${bytes.limit} bytes are used: the oldest sessions are ended`,
          },
        ]
      : []),
    ...(waiting > 0 ? [{ part: 'outbox' as const, why: `${waiting} ends of sessions wait to be delivered` }] : []),
  ]
  return {
    ready: !draining && !isUnavailable,
    status: statusOf(draining, isUnavailable, degraded.length > 0),
    degraded,
  }
}

function statusOf(draining: boolean, isUnavailable: boolean, isDegraded: boolean): Readiness['status'] {
  if (draining) return 'draining'
  if (isUnavailable) return 'unavailable'
  return isDegraded ? 'degraded' : 'ok'
}
