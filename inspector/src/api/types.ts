import type { Fact, Knowledge, Message, Source, Summary } from '../../../src/domain/entry.ts'
import type { Context, Ledger, LedgerLine, Verdict } from '../../../src/domain/ledger.ts'
import type { UsageReport } from '../../../src/server/observability/usageStats.ts'
import type { Receipt, StoredReceipt } from '../../../src/server/receipts.ts'
import type { FinishedStep } from '../../../src/upkeep/scheduler.ts'

export type { Context, Fact, Knowledge, Ledger, LedgerLine, Receipt, Source, StoredReceipt, Summary, Verdict }
export type Usage = UsageReport

/** Rights of the current key. */
export type Access = {
  readonly scopes: readonly string[]
  readonly isOperator: boolean
  readonly hasKey: boolean
  readonly profiles: readonly string[]
  readonly templates: readonly string[]
}

/** The present context under another profile; `was` is the ledger of the session's own profile. */
export type Replay = Context & { readonly was: Ledger }

export type Page<T> = { readonly items: readonly T[]; readonly next: string | null }

export type Session = {
  readonly key: string
  readonly startedAt: number
  readonly touchedAt: number
  readonly expiresAt: number | null
  readonly messages: number
  readonly lastSequence: number
  readonly tokens?: number
  readonly template?: string
  readonly person?: string
  readonly metadata?: unknown
}

export type TranscriptMessage = Pick<
  Message,
  'id' | 'sequence' | 'at' | 'role' | 'name' | 'content' | 'toolCalls' | 'toolCallId' | 'branch' | 'tokens'
>

export type SearchHit = {
  readonly key: string
  readonly from?: 'files'
  readonly entry: {
    readonly kind: string
    readonly id: string
    readonly at: number
    readonly name?: string
    readonly content?: string
    readonly text?: string
    readonly key?: string
    readonly value?: unknown
    readonly sources?: readonly Source[]
  }
  /** Part of the text that matches best: [start, end). */
  readonly passage?: readonly [start: number, end: number]
  readonly score: number
  readonly repeats?: readonly { readonly key: string; readonly id: string }[]
}

export type { ForgetResult as ForgetReceipt } from '../../../src/memory/forget.ts'
export type { ForgetPreview } from '../../../src/server/forget/preview.ts'

export type FileInfo = {
  readonly id: string
  readonly name: string
  readonly bytes: number
  readonly chunks: number
  readonly done: number
  readonly at: number
  readonly status: 'indexing' | 'ready' | 'failed'
  readonly why?: string
}

export type GraphNode = {
  readonly id: string
  readonly type: string
  readonly properties: unknown
  readonly sources: readonly { readonly session: string; readonly message: string }[]
}
export type GraphLink = { readonly from: string; readonly to: string; readonly type: string }
export type Graph = {
  readonly nodes: readonly GraphNode[]
  readonly links: readonly GraphLink[]
  readonly total: number
}

export type { UsagePoint } from '../../../src/server/observability/usageSeries.ts'

export type OperationsReport = {
  readonly status: 'ok' | 'degraded' | 'draining' | 'unavailable'
  readonly degraded: readonly { readonly part: string; readonly why: string }[]
  readonly upstreams: readonly { readonly name: string; readonly state: 'ok' | 'failing' | 'down' }[]
  readonly upkeep: readonly {
    readonly profile: string
    readonly by: string
    readonly running: number
    readonly done: number
  }[]
  readonly steps: readonly (Omit<FinishedStep, 'faults'> & { readonly faults: readonly string[] })[]
  readonly ram: { readonly used: number; readonly limit?: number }
  readonly pendingDeliveries: number
}

export type { OptimizerStatus } from '../../../src/upkeep/optimizer/optimizer.ts'
