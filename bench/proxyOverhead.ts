// Proxy overhead: CPU time and first-byte latency of a turn with memory, compared with a pass-through and a stateless
// gateway.
// npm run bench -- proxy [--quick]

import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Contenders, type Measurements, measureInterleaved, median, report, type Target } from './measure.ts'
import { type Child, startChild, startServer } from './proxy/childProcess.ts'
import type { LoadJob, LoadResult } from './proxy/loadGenerator.ts'

const { quick = false } = parseArgs({ allowPositionals: true, options: { quick: { type: 'boolean' } } }).values
const [rounds, warmUpRounds, sessions] = quick ? [3, 6, 1] : [9, 4, 3]
const turns = 20
const [memory, bare, gateway] = ['memory', 'pass-through', '@portkey-ai/gateway'] as const
const targets: readonly Target[] = [
  { ours: memory, peer: bare, atMost: 3 },
  { ours: memory, peer: gateway, atMost: 0.5 },
]
/** Limit for the first-byte latency added to that of the pass-through. */
const maxAddedLatencyMs = 1

type Proxy = Child & Pick<LoadJob, 'headers' | 'keyed'>

async function startProxies(upstream: string): Promise<Map<string, Proxy>> {
  const started = new Map<string, Proxy>()
  started.set(memory, { ...(await startChild('./threadkeep.ts', upstream)), headers: {}, keyed: true })
  started.set(bare, { ...(await startChild('./passThrough.ts', upstream)), headers: {}, keyed: false })
  if (!existsSync(fileURLToPath(new URL('./node_modules/@portkey-ai/gateway', import.meta.url)))) {
    console.log(`${gateway} is skipped: it is not installed (npm --prefix bench ci)`)
    return started
  }
  const headers = {
    authorization: 'Bearer none',
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `${upstream}/v1`,
  }
  started.set(gateway, {
    ...(await startServer('./portkeyGateway.ts', (port) => [`--port=${port}`, '--headless'])),
    headers,
    keyed: false,
  })
  return started
}

let jobCount = 0

/** Returns CPU time per request in microseconds, and first-byte latency. */
async function measureProxy(
  load: Child,
  proxy: Proxy,
  shape: Pick<LoadJob, 'connections' | 'stream'>,
): Promise<LoadResult & { readonly cpu: number }> {
  const { origin, headers, keyed } = proxy
  const cpuBefore = await proxy.readCpuTime()
  const result = await load.request<LoadResult>({
    origin,
    headers,
    keyed,
    ...shape,
    sessions,
    turns,
    name: `j${jobCount++}`,
  } satisfies LoadJob)
  return { ...result, cpu: ((await proxy.readCpuTime()) - cpuBefore) / result.requests }
}

function createContenders(started: ReadonlyMap<string, Proxy>, measure: (proxy: Proxy) => Promise<number>): Contenders {
  return Object.fromEntries([...started].map(([name, proxy]) => [name, () => measure(proxy)]))
}

function reportAddedLatency(latencies: Measurements): void {
  const theirs = latencies.get(bare) ?? []
  const addedMs = median((latencies.get(memory) ?? []).map((latency, round) => latency - (theirs[round] as number)))
  console.log(
    `  → ${memory}: ${addedMs.toFixed(2)} ms more than ${bare}; target at most ${maxAddedLatencyMs} ms: ${addedMs <= maxAddedLatencyMs ? 'met' : 'MISSED'}`,
  )
}

const upstream = await startChild('./upstream.ts')
const load = await startChild('./loadGenerator.ts')
const started = await startProxies(upstream.origin)
const availableTargets = targets.filter(({ peer }) => started.has(peer))
try {
  for (const stream of [false, true]) {
    const measurements = await measureInterleaved(
      createContenders(started, async (proxy) => (await measureProxy(load, proxy, { connections: 32, stream })).cpu),
      rounds,
      warmUpRounds,
    )
    report(
      `CPU time per ${stream ? 'streamed' : 'buffered'} request, µs, 32 connections, conversations of ${turns} turns`,
      measurements,
      availableTargets,
    )
  }
  const latencies = await measureInterleaved(
    createContenders(
      started,
      async (proxy) => (await measureProxy(load, proxy, { connections: 1, stream: true })).firstByte,
    ),
    rounds,
    warmUpRounds,
  )
  report('first byte of a stream, ms, one connection', latencies)
  reportAddedLatency(latencies)
} finally {
  for (const child of [upstream, load, ...started.values()]) child.stop()
}
