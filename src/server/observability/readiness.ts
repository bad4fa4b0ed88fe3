import { describeDegradation } from '../../domain/degradation.ts'
import type { Degradation } from '../../domain/ledger.ts'
import type { EmbeddingProgress } from '../../memory/embedding.ts'

/** Recent health of an upstream: all requests succeeded, some failed, or all failed. */
export type UpstreamState = 'ok' | 'failing' | 'down'

/** Everything that determines the readiness of the server. */
export type ServerHealth = {
  readonly store: 'ok' | { readonly fault: string }
  readonly upstreams: readonly { readonly name: string; readonly state: UpstreamState }[]
  /** True during shutdown: running requests finish, new ones are refused. */
  readonly draining: boolean
  readonly upkeep: readonly Degradation[]
  /** Progress of embedding; undefined without an embedder. */
  readonly embedding?: EmbeddingProgress | undefined
  /** Bytes that sessions use in RAM, and their limit. */
  readonly bytes: { readonly used: number; readonly limit?: number }
  /** Session ends whose delivery failed and will be retried. */
  readonly pendingDeliveries: number
}

/** Health report. A server that is not ready always lists a reason in `degraded`. */
export type Readiness = {
  readonly ready: boolean
  readonly status: 'ok' | 'degraded' | 'draining' | 'unavailable'
  readonly degraded: readonly {
    readonly part: 'server' | 'store' | 'upstream' | 'upkeep' | 'embedder' | 'memory' | 'outbox'
    readonly why: string
    /** Stable code of a step that fell back, for upkeep. */
    readonly code?: string
  }[]
}

/**
 * Reports the readiness of the server. It is not ready only when every request would fail: while draining, without a
 * working store, or when all upstreams are down.
 *
 * @example
 * checkReadiness({ store: 'ok', upstreams: [], draining: false, upkeep: [], bytes: { used: 0 }, waiting: 0 }).ready // true
 */
export function checkReadiness(state: ServerHealth): Readiness {
  const { store, upstreams, draining, upkeep, embedding, bytes, pendingDeliveries } = state
  const allUpstreamsDown = upstreams.length > 0 && upstreams.every(({ state }) => state === 'down')
  const isUnavailable = store !== 'ok' || allUpstreamsDown
  const isRamFull = bytes.limit !== undefined && bytes.used >= bytes.limit
  const degraded: Readiness['degraded'][number][] = []
  if (draining) degraded.push({ part: 'server', why: 'shutting down' })
  if (store !== 'ok') degraded.push({ part: 'store', why: store.fault })
  for (const { name, state } of upstreams)
    if (state !== 'ok') degraded.push({ part: 'upstream', why: `${name} is ${state}` })
  for (const fault of upkeep) {
    const { code, message } = describeDegradation(fault)
    degraded.push({ part: 'upkeep', why: message, code })
  }
  if (embedding?.fault !== undefined)
    degraded.push({ part: 'embedder', why: `${embedding.model} fails; search and recall use words only` })
  if (isRamFull) {
    const why = `${bytes.used} of ${bytes.limit} bytes are used; the least recently used sessions are ended`
    degraded.push({ part: 'memory', why })
  }
  if (pendingDeliveries > 0)
    degraded.push({ part: 'outbox', why: `${pendingDeliveries} session ends wait for delivery` })
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
