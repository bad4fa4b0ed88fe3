import type { Turn } from '../../../src/server/observability/turnRecord.ts'

/** Creates a turn record with some fields overridden. */
export const createTurnRecord = (overrides: Partial<Turn> = {}): Turn => ({
  key: 'acme:ann',
  scope: 'acme',
  protocol: 'chat',
  model: 'gpt-5.4-mini',
  upstream: 'openai',
  profile: 'support',
  status: 200,
  streamed: false,
  millis: { total: 800, memory: 2, first: 300 },
  tokens: { shown: 400, history: 1_000, saved: 600, cacheable: 300, prompt: 410, completion: 20, cached: 256 },
  retries: 0,
  aborted: false,
  stored: true,
  appended: 2,
  passedOver: [],
  degraded: [],
  ...overrides,
})
