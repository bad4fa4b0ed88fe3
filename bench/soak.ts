// Soak: a server process on an SQLite file under constant load of all kinds. Samples its memory and exits with 1 if
// resident memory rises by more than 5 % after the first third.
// npm run bench -- soak [--minutes 30] [--connections 16] [--rate 60] [--every 10] [--snapshots DIR]

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './measure.ts'
import type { MemorySample, MeterCommand } from './soak/meter.ts'
import { SoakClients } from './soak/operations.ts'
import { startSoakUpstream } from './soak/upstream.ts'

const { values } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '30' },
    connections: { type: 'string', default: '16' },
    /** Operations per second; the load is constant as long as the server keeps up. */
    rate: { type: 'string', default: '60' },
    /** Seconds between samples. */
    every: { type: 'string', default: '10' },
    /** Folder for heap snapshots after a third and at the end. */
    snapshots: { type: 'string' },
    /** Further Node flags of the server, separated by spaces. */
    flags: { type: 'string', default: '' },
  },
})
const [minutes, connections, rate, every] = [values.minutes, values.connections, values.rate, values.every].map(Number)
const maxRise = 0.05

type Sample = MemorySample & { readonly seconds: number; readonly databaseBytes: number; readonly operations: number }

async function startSoakServer(folder: string, upstream: string): Promise<{ child: ChildProcess; origin: string }> {
  const config = {
    listen: { port: 0 },
    store: `sqlite:${join(folder, 'soak.db')}`,
    upstreams: [
      { name: 'openai', base: `${upstream}/v1`, protocol: 'openai' },
      { name: 'anthropic', base: upstream, protocol: 'anthropic', models: ['claude-*'] },
    ],
    templates: { ram: { profile: 'support' } },
    retries: { attempts: 2, baseDelay: 10, maxDelay: 50 },
    limits: { ramBytes: 16_000_000 },
    log: { level: 'silent' },
    mcp: {},
  }
  const file = join(folder, 'threadkeep.config.json')
  writeFileSync(file, JSON.stringify(config))
  const meter = new URL('./soak/meter.ts', import.meta.url).href
  const command = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url))
  const child = fork(command, ['serve', '--config', file, '--json'], {
    cwd: folder,
    execArgv: ['--import', meter, ...values.flags.split(' ').filter((flag) => flag !== '')],
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const [output] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer]
  child.stdout?.resume()
  return { child, origin: (JSON.parse(output.toString()) as { url: string }).url }
}

async function ask(child: ChildProcess, command: MeterCommand): Promise<MemorySample> {
  const reply = once(child, 'message')
  child.send(command)
  return (await reply)[0] as MemorySample
}

/** Bytes of the database with its log, which SQLite keeps beside it. */
const sizeOfDatabase = (folder: string): number =>
  ['soak.db', 'soak.db-wal']
    .map((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, size) => sum + size)

/** Starts operations at a constant rate on a fixed number of connections until time is up. */
async function runLoad(clients: SoakClients, endsAt: number, onOperation: () => void): Promise<void> {
  const intervalMs = (1_000 * (connections as number)) / (rate as number)
  const runConnection = async (_: unknown, connection: number): Promise<void> => {
    let next = performance.now() + (intervalMs * connection) / (connections as number)
    while (performance.now() < endsAt) {
      await delay(Math.max(0, next - performance.now()))
      await clients.runOne()
      onOperation()
      // A server that falls behind is not punished with a burst.
      next = Math.max(next + intervalMs, performance.now() - intervalMs)
    }
  }
  await Promise.all(Array.from({ length: connections as number }, runConnection))
}

const toMegabytes = (bytes: number): string => (bytes / 1_000_000).toFixed(1)
const columns = ['time', 'rss', 'anon', 'heapUsed', 'heapTotal', 'external', 'buffers', 'handles', 'database', 'ops']

function printSample(sample: Sample): void {
  const { rss, anonymous, heapUsed, heapTotal, external, arrayBuffers, databaseBytes } = sample
  const sizes = [rss, anonymous, heapUsed, heapTotal, external, arrayBuffers].map(toMegabytes)
  const cells = [`${sample.seconds} s`, ...sizes, sample.handles, toMegabytes(databaseBytes), sample.operations]
  console.log(cells.map((cell) => String(cell).padStart(10)).join(''))
}

/** Slope of the least-squares line through the points, per unit of x. */
function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (index: 0 | 1): number => points.reduce((sum, point) => sum + point[index], 0) / points.length
  const [meanX, meanY] = [mean(0), mean(1)]
  const covariance = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0)
  return covariance / points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
}

/** Prints the rise of a series after the first third, and returns it. */
function reportRise(name: string, samples: readonly Sample[], read: (sample: Sample) => number): number {
  const steady = samples.slice(Math.floor(samples.length / 3))
  const quarter = Math.max(1, Math.floor(steady.length / 4))
  const [first, last] = [steady.slice(0, quarter), steady.slice(-quarter)].map((part) => median(part.map(read))) as [
    number,
    number,
  ]
  const slope = slopeOf(steady.map((sample) => [sample.seconds / 60, read(sample)]))
  const rise = last / first - 1
  console.log(
    `${name}: ${toMegabytes(first)} MB to ${toMegabytes(last)} MB (medians of the first and last quarter), ${(rise * 100).toFixed(1)} %; slope ${toMegabytes(slope)} MB a minute`,
  )
  return rise
}

async function sampleUntil(child: ChildProcess, folder: string, endsAt: number, count: () => number) {
  const samples: Sample[] = []
  const startedAt = performance.now()
  const total = endsAt - startedAt
  let hasSnapshot = values.snapshots === undefined
  console.log(columns.map((name) => name.padStart(10)).join(''))
  for (let next = startedAt; next < endsAt; next += (every as number) * 1_000) {
    await delay(Math.max(0, next - performance.now()))
    if (child.exitCode !== null) throw new Error(`The server exited with ${child.exitCode}.`)
    const seconds = Math.round((performance.now() - startedAt) / 1_000)
    const memory = await ask(child, 'sample')
    const sample = { ...memory, seconds, databaseBytes: sizeOfDatabase(folder), operations: count() }
    printSample(sample)
    samples.push(sample)
    if (hasSnapshot || performance.now() - startedAt < total / 3) continue
    hasSnapshot = true
    await ask(child, { snapshot: join(values.snapshots as string, 'third.heapsnapshot') })
  }
  return samples
}

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-soak-'))
const upstream = await startSoakUpstream()
const { child, origin } = await startSoakServer(folder, upstream.url)
const clients = new SoakClients(origin, connections as number)
try {
  const endsAt = performance.now() + (minutes as number) * 60_000
  let operations = 0
  const [samples] = await Promise.all([
    sampleUntil(child, folder, endsAt, () => operations),
    runLoad(clients, endsAt, () => operations++),
  ])
  console.log(`\n${operations} operations: ${JSON.stringify(clients.counts)}`)
  const rise = reportRise('resident memory', samples, ({ rss }) => rss)
  reportRise('heap in use', samples, ({ heapUsed }) => heapUsed)
  reportRise('buffers', samples, ({ arrayBuffers }) => arrayBuffers)
  if (values.snapshots !== undefined) await ask(child, { snapshot: join(values.snapshots, 'end.heapsnapshot') })
  const { heapUsed, arrayBuffers, rss } = await ask(child, 'collect')
  const [heap, buffers, resident] = [heapUsed, arrayBuffers, rss].map(toMegabytes)
  console.log(`after garbage collection: heap ${heap} MB, buffers ${buffers} MB, resident ${resident} MB`)
  console.log(`target at most ${maxRise * 100} % more resident memory: ${rise <= maxRise ? 'met' : 'MISSED'}`)
  process.exitCode = rise <= maxRise ? 0 : 1
} finally {
  await clients.close()
  child.disconnect()
  upstream.close()
  await once(child, 'exit')
  rmSync(folder, { recursive: true, force: true })
}
