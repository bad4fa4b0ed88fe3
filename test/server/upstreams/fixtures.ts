import type { Timeouts } from '../../../src/providers/deadline.ts'
import type { UpstreamRequest, UpstreamResponse } from '../../../src/server/upstreams/backend.ts'
import { createUpstreamPool, type PoolOptions } from '../../../src/server/upstreams/pool.ts'
import type { UpstreamOptions } from '../../../src/server/upstreams/upstream.ts'
import { collectAll } from '../start.ts'

type TestPoolOptions = {
  readonly upstreams: readonly UpstreamOptions[]
  readonly timeouts?: Partial<Timeouts>
  readonly sleep?: PoolOptions['sleep']
}

/** Longer than any test: a request that waits for it fails its test. */
const tenMinutes = 600_000
const defaultTimeouts: Timeouts = { firstByte: tenMinutes, idle: tenMinutes, total: tenMinutes }

/** Creates a pool that records its retry delays in `delays` instead of waiting. */
export function createPool({ upstreams, timeouts, sleep }: TestPoolOptions) {
  const delays: number[] = []
  const { send, listModels, getHealth, close } = createUpstreamPool({
    upstreams,
    timeouts: { ...defaultTimeouts, ...timeouts },
    retryPolicy: { tries: 3, baseDelay: 500, maxDelay: 20_000 },
    sleep: async (delay, signal) => {
      delays.push(delay)
      await sleep?.(delay, signal)
    },
    random: () => 1,
  })
  return { ask: send, models: listModels, states: getHealth, delays, [Symbol.asyncDispose]: close }
}

export const openaiUpstream = (base: string, more: Partial<UpstreamOptions> = {}): UpstreamOptions => ({
  name: 'first',
  base,
  protocol: 'openai',
  ...more,
})

export const createRequest = (more: Partial<UpstreamRequest> = {}): UpstreamRequest => ({
  endpoint: 'chat',
  body: { model: 'm', messages: [] },
  promptTokens: 0,
  headers: {},
  withholdClientKey: false,
  signal: new AbortController().signal,
  ...more,
})

export const readBody = async ({ body }: UpstreamResponse): Promise<string> =>
  Buffer.concat(await collectAll(body)).toString('utf8')
