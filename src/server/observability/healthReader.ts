import { setTimeout as delay } from 'node:timers/promises'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, parseKey } from '../../domain/key.ts'
import type { Store } from '../../domain/ports.ts'
import { isUserSession } from '../../domain/session.ts'
import type { EmbeddingCounts, EmbeddingProgress, EmbeddingQueue } from '../../memory/embedding.ts'
import { sumProgress } from '../../memory/embedding.ts'
import { internalsOf } from '../../memory.ts'
import { toErrorResponse } from '../http/httpError.ts'
import type { MemoryRegistry } from '../memoryRegistry.ts'
import type { Backend } from '../upstreams/backend.ts'
import { BackgroundCount } from './backgroundCount.ts'
import type { GaugeValues } from './metrics.ts'
import type { ServerHealth } from './readiness.ts'

/** A session that never exists: reading it shows that the store can be read, at the cost of one lookup. */
const probeKey = parseKey('threadkeep:health')
/** Shorter than the time-outs of probes: while a database is down, its driver retries for much longer. */
const defaultProbeMs = 2_000
/** Parts of the deadline: while this process stands still, one passes at most, and the store may have answered. */
const probeParts = 4
/** Sessions read at once by a count. */
const pageSize = 500

/** Reads the state of a server for probes and metrics. No read grows with the number of sessions. */
export class HealthReader {
  private readonly memories: MemoryRegistry
  private readonly backend: Backend
  private readonly maxProbeMs: number
  private readonly sessionCounts = new WeakMap<Store, BackgroundCount<number>>()
  private readonly vectorCounts = new WeakMap<EmbeddingQueue, BackgroundCount<EmbeddingCounts>>()

  constructor(memories: MemoryRegistry, backend: Backend, maxProbeMs = defaultProbeMs) {
    this.memories = memories
    this.backend = backend
    this.maxProbeMs = maxProbeMs
  }

  /** Reports the store as healthy when it can be read; write failures are reported by the requests that write. */
  async readState(draining: boolean): Promise<ServerHealth> {
    const upkeep = this.memories.all().flatMap((memory) => memory.health().degraded)
    const base = { upstreams: this.backend.getHealth(), draining, upkeep }
    try {
      const { ramBytes, maxRamBytes: limit, pendingDeliveries } = this.readLimits()
      const bytes = { used: ramBytes, ...(limit !== undefined && { limit }) }
      await this.probeStores()
      return { ...base, store: 'ok', bytes, pendingDeliveries, embedding: await this.readEmbedding() }
    } catch (error) {
      // Anybody may ask for the health of the server: paths are in the log only.
      const { code, message } = toErrorResponse(error).error
      return { ...base, store: { fault: `${code}: ${message}` }, bytes: { used: 0 }, pendingDeliveries: 0 }
    }
  }

  /** Reads from every store. Throws `busy` if they do not answer in time. */
  private async probeStores(): Promise<void> {
    const probe = async (store: Store): Promise<void> => {
      store.capabilities.file?.check()
      await store.readHead(probeKey, 0)
    }
    const timer = new AbortController()
    const waitForDeadline = async (): Promise<never> => {
      for (let part = 0; part < probeParts; part++)
        await delay(this.maxProbeMs / probeParts, undefined, { signal: timer.signal, ref: false })
      throw new MemoryError('busy', 'The store has not answered in time. Check that it runs.')
    }
    try {
      await Promise.race([Promise.all([...this.stores()].map(probe)), waitForDeadline()])
    } finally {
      timer.abort()
    }
  }

  async readGauges(): Promise<GaugeValues> {
    const health = this.memories.all().map((memory) => memory.health())
    const sessions = await Promise.all([...this.stores()].map((store) => this.countSessions(store)))
    return {
      ...this.readLimits(),
      sessions: sessions.reduce((sum, count) => sum + count, 0),
      upkeep: {
        done: health.reduce((sum, { done }) => sum + done, 0),
        degraded: health.reduce((sum, { degraded }) => sum + degraded.length, 0),
      },
    }
  }

  private readLimits(): Pick<GaugeValues, 'ramBytes' | 'maxRamBytes' | 'pendingDeliveries'> {
    const bounded = [...this.stores()].flatMap((store) => store.capabilities.memoryLimit?.memoryUsage ?? [])
    return {
      ramBytes: bounded.reduce((sum, { usedBytes }) => sum + usedBytes, 0),
      maxRamBytes: bounded.find(({ maxBytes }) => maxBytes !== undefined)?.maxBytes,
      pendingDeliveries: Math.max(0, ...this.memories.all().map(({ lifecycle }) => lifecycle.failingDeliveries)),
    }
  }

  private stores(): ReadonlySet<Store> {
    return new Set(this.memories.all().flatMap((memory) => [internalsOf(memory).sessions, internalsOf(memory).store]))
  }

  /** NaN while the first count of a large store is running. */
  private async countSessions(store: Store): Promise<number> {
    const { sessionCounter } = store.capabilities
    if (sessionCounter !== undefined) return sessionCounter.countSessions()
    const count = this.sessionCounts.get(store) ?? new BackgroundCount(() => listSessions(store))
    this.sessionCounts.set(store, count)
    return (await count.read()) ?? Number.NaN
  }

  private async readEmbedding(): Promise<EmbeddingProgress | undefined> {
    const queues = internalsOf(this.memories.sessions).embeddings
    const progress: EmbeddingProgress[] = []
    for (const queue of queues) {
      const count = this.vectorCounts.get(queue) ?? new BackgroundCount(() => queue.count())
      this.vectorCounts.set(queue, count)
      progress.push(queue.describe((await count.read()) ?? { done: 0, total: 0 }))
    }
    return sumProgress(progress)
  }
}

async function listSessions(store: Store): Promise<number> {
  let count = 0
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page = await store.list({ after, limit: pageSize })
    count += page.filter(isUserSession).length
    const last = page.length < pageSize ? undefined : page.at(-1)
    after = last && formatKey(last.key)
    if (last !== undefined) await new Promise((resolve) => setImmediate(resolve))
  }
  return count
}
