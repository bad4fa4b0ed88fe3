import type { TurnRecord } from '../../../src/server/observability/usageStats.ts'

/** Creates a turn record with some fields overridden. */
export const createTurnRecord = (overrides: Partial<TurnRecord> = {}): TurnRecord => ({
  key: 'acme:ann',
  scope: 'acme',
  protocol: 'chat',
  model: 'gpt-5.4-mini',
  upstream: 'openai',
  profile: 'support',
  status: 200,
  isStreaming: false,
  durationMs: { total: 800, memory: 2, firstByte: 300 },
  tokens: { shown: 400, history: 1_000, saved: 600, cacheable: 300, prompt: 410, completion: 20, cached: 256 },
  retries: 0,
  isAborted: false,
  isStored: true,
  appendedMessages: 2,
  failedUpstreams: [],
  degraded: [],
  ...overrides,
})
