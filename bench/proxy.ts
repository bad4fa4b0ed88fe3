// What a turn through the proxy costs with memory on, side by side with a bare pass-through and with a gateway that keeps nothing.
// npm run bench -- proxy [--quick]

import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Child, start, startServer } from './proxy/child.ts'
import type { Job, Outcome } from './proxy/load.ts'
import { type Contenders, type Figures, inTurn, median, report, type Target } from './rounds.ts'

const { quick = false } = parseArgs({ allowPositionals: true, options: { quick: { type: 'boolean' } } }).values
const [rounds, warm, sessions] = quick ? [3, 6, 1] : [9, 4, 3]
const turns = 20
const [memory, bare, gateway] = ['memory', 'pass-through', '@portkey-ai/gateway'] as const
const targets: readonly Target[] = [
  { ours: memory, peer: bare, atMost: 2.5 },
  { ours: memory, peer: gateway, atMost: 0.5 },
]
/** What the first byte of a stream may wait longer than through the pass-through, in milliseconds. */
const longestWait = 1

type Proxy = Child & Pick<Job, 'headers' | 'keyed'>

async function proxies(upstream: string): Promise<Map<string, Proxy>> {
  const started = new Map<string, Proxy>()
  started.set(memory, { ...(await start('./ours.ts', upstream)), headers: {}, keyed: true })
  started.set(bare, { ...(await start('./passThrough.ts', upstream)), headers: {}, keyed: false })
  if (!existsSync(fileURLToPath(new URL('./node_modules/@portkey-ai/gateway', import.meta.url)))) {
    console.log(`${gateway} is left out: it is not installed (npm --prefix bench ci installs it)`)
    return started
  }
  const headers = {
    authorization: 'Bearer none',
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `${upstream}/v1`,
  }
  started.set(gateway, {
    ...(await startServer('./gateway.ts', (port) => [`--port=${port}`, '--headless'])),
    headers,
    keyed: false,
  })
  return started
}

let jobs = 0

/** The CPU time of a proxy for each request, in microseconds, and the wait for the first byte. */
async function measured(
  load: Child,
  proxy: Proxy,
  shape: Pick<Job, 'connections' | 'stream'>,
): Promise<Outcome & { readonly cpu: number }> {
  const { origin, headers, keyed } = proxy
  const before = await proxy.cpu()
  const outcome = await load.ask<Outcome>({
    origin,
    headers,
    keyed,
    ...shape,
    sessions,
    turns,
    name: `j${jobs++}`,
  } satisfies Job)
  return { ...outcome, cpu: ((await proxy.cpu()) - before) / outcome.requests }
}

function contenders(started: ReadonlyMap<string, Proxy>, measure: (proxy: Proxy) => Promise<number>): Contenders {
  return Object.fromEntries([...started].map(([name, proxy]) => [name, () => measure(proxy)]))
}

function reportWait(figures: Figures): void {
  const theirs = figures.get(bare) ?? []
  const longer = median((figures.get(memory) ?? []).map((wait, round) => wait - (theirs[round] as number)))
  console.log(
    `  → ${memory}: ${longer.toFixed(2)} ms after ${bare}; target at most ${longestWait} ms: ${longer <= longestWait ? 'met' : 'MISSED'}`,
  )
}

const upstream = await start('./upstream.ts')
const load = await start('./load.ts')
const started = await proxies(upstream.origin)
const present = targets.filter(({ peer }) => started.has(peer))
try {
  for (const stream of [false, true]) {
    const figures = await inTurn(
      contenders(started, async (proxy) => (await measured(load, proxy, { connections: 32, stream })).cpu),
      rounds,
      warm,
    )
    report(
      `CPU of a request ${stream ? 'that is streamed' : 'in one'}, µs, 32 connections, conversations of ${turns} turns`,
      figures,
      present,
    )
  }
  const waits = await inTurn(
    contenders(started, async (proxy) => (await measured(load, proxy, { connections: 1, stream: true })).firstByte),
    rounds,
    warm,
  )
  report('first byte of a stream, ms, one connection', waits)
  reportWait(waits)
} finally {
  for (const child of [upstream, load, ...started.values()]) child.stop()
}
