import { LruCache } from '../../domain/lruCache.ts'
import type { OptimizerStatus } from '../../upkeep/optimizer/optimizer.ts'
import type { MemoryRegistry } from '../memoryRegistry.ts'

/** A result that was read this quickly is not used again. */
const quickMs = 50
/** Others are used again for this many times as long as reading them took. */
const reuseFactor = 20
const maxTargets = 1_000

type Reading = {
  readonly status: Promise<OptimizerStatus>
  /** When the status must be read anew; infinite while it is being read. */
  validUntil: number
}

/**
 * Optimizer statistics of a session, a tenant or all sessions. Reading those of many takes as long as there are
 * sessions: requests at the same time share a reading, and a slow one is used again, so that probes take a twentieth of
 * the time at most.
 */
export class OptimizerStatusReader {
  private readonly memories: MemoryRegistry
  private readonly readings = new LruCache<string, Reading>({ maxEntries: maxTargets })

  constructor(memories: MemoryRegistry) {
    this.memories = memories
  }

  /** @param key session or tenant; default: all sessions */
  read(key?: string): Promise<OptimizerStatus> {
    const name = key ?? ''
    const latest = this.readings.get(name)
    if (latest !== undefined && performance.now() < latest.validUntil) return latest.status
    const reading: Reading = { status: this.readNow(key), validUntil: Number.POSITIVE_INFINITY }
    this.readings.set(name, reading)
    const startedAt = performance.now()
    const setValidity = (factor: number): void => {
      const now = performance.now()
      const took = now - startedAt
      reading.validUntil = took < quickMs ? now : now + factor * took
    }
    reading.status.then(
      () => setValidity(reuseFactor),
      () => setValidity(0),
    )
    return reading.status
  }

  private async readNow(key: string | undefined): Promise<OptimizerStatus> {
    const memories = [...this.memories.bySessionStore().values()]
    return mergeStatuses(await Promise.all(memories.map((memory) => memory.upkeep.optimizerStatus(key))))
  }
}

/** Sums the status of several stores, with the parameters of the one with the most runs. */
function mergeStatuses(statuses: readonly OptimizerStatus[]): OptimizerStatus {
  const sum = (name: 'totalOptimizations' | 'totalTokensSaved'): number =>
    statuses.reduce((total, status) => total + status[name], 0)
  const [runs, saved] = [sum('totalOptimizations'), sum('totalTokensSaved')]
  const busiest = statuses.reduce((best, status) =>
    status.totalOptimizations > best.totalOptimizations ? status : best,
  )
  return {
    ...busiest,
    totalOptimizations: runs,
    totalTokensSaved: saved,
    avgSavingsPerRun: runs === 0 ? 0 : Math.round(saved / runs),
  }
}
