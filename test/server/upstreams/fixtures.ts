import type { Answer, Call } from '../../../src/server/upstreams/backend.ts'
import { type PoolOptions, poolBackend } from '../../../src/server/upstreams/pool.ts'
import type { Patience, UpstreamOptions } from '../../../src/server/upstreams/upstream.ts'
import { all } from '../start.ts'

type TestPoolOptions = {
  readonly upstreams: readonly UpstreamOptions[]
  readonly timeouts?: Partial<Patience>
  readonly sleep?: PoolOptions['pause']
}

/** Longer than any test: a request that waits for it fails its test. */
const tenMinutes = 600_000
const defaultTimeouts: Patience = { first: tenMinutes, idle: tenMinutes, total: tenMinutes }

/** Creates a pool that records its retry delays in `delays` instead of waiting. */
export function createPool({ upstreams, timeouts, sleep }: TestPoolOptions) {
  const delays: number[] = []
  const { ask, models, states, close } = poolBackend({
    upstreams,
    patience: { ...defaultTimeouts, ...timeouts },
    persistence: { tries: 3, wait: 500, longest: 20_000 },
    pause: async (delay, signal) => {
      delays.push(delay)
      await sleep?.(delay, signal)
    },
    random: () => 1,
  })
  return { ask, models, states, delays, [Symbol.asyncDispose]: close }
}

export const openaiUpstream = (base: string, more: Partial<UpstreamOptions> = {}): UpstreamOptions => ({
  name: 'first',
  base,
  protocol: 'openai',
  ...more,
})

export const createRequest = (more: Partial<Call> = {}): Call => ({
  dialect: 'chat',
  body: { model: 'm', messages: [] },
  spent: 0,
  headers: {},
  isGuarded: false,
  signal: new AbortController().signal,
  ...more,
})

export const readBody = async ({ body }: Answer): Promise<string> => Buffer.concat(await all(body)).toString('utf8')
