// Soak: a server process on an SQLite file under constant load of all kinds. Samples its memory and exits with 1 if
// resident memory rises by more than 5 % after the first third, by the least-squares line through the samples, if the load
// was not constant, or if requests failed that nothing provoked.
// npm run bench -- soak [--minutes 30] [--connections 16] [--rate 60] [--every 10] [--idle 60] [--snapshots DIR]

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { MemorySample, MeterCommand } from './soak/meter.ts'
import { SoakClients } from './soak/operations.ts'
import { fitTrend } from './soak/trend.ts'
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
    /** Seconds without load at the end, after which memory is sampled again. */
    idle: { type: 'string', default: '60' },
    /** Folder for heap snapshots after a third and at the end. */
    snapshots: { type: 'string' },
    /** Further Node flags of the server, separated by spaces. */
    flags: { type: 'string', default: '' },
  },
})
const [minutes, connections, rate, every, idle] = [
  values.minutes,
  values.connections,
  values.rate,
  values.every,
  values.idle,
].map(Number) as [number, number, number, number, number]
const maxRise = 0.05
/** Largest difference between the rates of two thirds of the run, and between the rate and the requested one. */
const maxRateDifference = 0.05

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

/** Prints the resident memory by part. */
async function printParts(child: ChildProcess, when: string): Promise<void> {
  const { rss, cpuSeconds, parts } = await ask(child, 'parts')
  console.log(`\nresident memory ${when}: ${toMegabytes(rss)} MB, after ${cpuSeconds.toFixed(0)} s of processor time`)
  for (const [name, bytes] of Object.entries(parts ?? {}))
    if (bytes >= 500_000) console.log(`${toMegabytes(bytes).padStart(10)}  ${name}`)
}

/** Prints the operations per minute of each third; returns what is wrong with the load. */
function checkLoad(counts: readonly number[]): string | undefined {
  const rates = counts.map((count) => (3 * count) / minutes)
  const isConstant = Math.max(...rates) <= Math.min(...rates) * (1 + maxRateDifference)
  const printed = rates.map((perMinute) => perMinute.toFixed(0)).join(', ')
  console.log(
    `operations per minute in each third: ${printed}; ${isConstant ? 'constant' : 'NOT constant'} within ${maxRateDifference * 100} %`,
  )
  const isTooFast = Math.min(...rates) < rate * 60 * (1 - maxRateDifference)
  if (isTooFast) return `The server did not keep up with ${rate} operations per second. Use a lower --rate.`
  return isConstant ? undefined : 'The load was not constant. Run the soak again, without other work beside it.'
}

/** Bytes of the database with its log, which SQLite keeps beside it. */
const sizeOfDatabase = (folder: string): number =>
  ['soak.db', 'soak.db-wal']
    .map((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, size) => sum + size)

/** Starts operations at a constant rate on a fixed number of connections until time is up. */
async function runLoad(clients: SoakClients, endsAt: number, onOperation: () => void): Promise<void> {
  const intervalMs = (1_000 * connections) / rate
  const runConnection = async (_: unknown, connection: number): Promise<void> => {
    let next = performance.now() + (intervalMs * connection) / connections
    while (performance.now() < endsAt) {
      await delay(Math.max(0, next - performance.now()))
      await clients.runOne()
      onOperation()
      // A server that falls behind is not punished with a burst.
      next = Math.max(next + intervalMs, performance.now() - intervalMs)
    }
  }
  await Promise.all(Array.from({ length: connections }, runConnection))
}

const toMegabytes = (bytes: number): string => (bytes / 1_000_000).toFixed(1)
const columns = ['time', 'rss', 'anon', 'heapUsed', 'heapTotal', 'external', 'buffers', 'handles', 'database', 'ops']

function printSample(sample: Sample): void {
  const { rss, anonymous, heapUsed, heapTotal, external, arrayBuffers, databaseBytes } = sample
  const sizes = [rss, anonymous, heapUsed, heapTotal, external, arrayBuffers].map(toMegabytes)
  const cells = [`${sample.seconds} s`, ...sizes, sample.handles, toMegabytes(databaseBytes), sample.operations]
  console.log(cells.map((cell) => String(cell).padStart(10)).join(''))
}

/** Prints the rise of a series from the end of the first third to the end, by the line through its samples. Returns it. */
function reportRise(name: string, samples: readonly Sample[], read: (sample: Sample) => number): number {
  const steady = samples.slice(Math.floor(samples.length / 3))
  const { first, last, rise, slope } = fitTrend(steady.map((sample) => [sample.seconds / 60, read(sample)]))
  console.log(
    `${name}: ${toMegabytes(first)} MB after a third to ${toMegabytes(last)} MB at the end (least-squares line), ${(rise * 100).toFixed(1)} %; ${toMegabytes(slope)} MB a minute`,
  )
  return rise
}

async function sampleUntil(child: ChildProcess, folder: string, endsAt: number, count: () => number) {
  const samples: Sample[] = []
  const startedAt = performance.now()
  const total = endsAt - startedAt
  let hasSnapshot = values.snapshots === undefined
  console.log(columns.map((name) => name.padStart(10)).join(''))
  for (let next = startedAt; next < endsAt; next += every * 1_000) {
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
const clients = new SoakClients(origin, connections, upstream)
try {
  const startedAt = performance.now()
  const endsAt = startedAt + minutes * 60_000
  const thirds = [0, 0, 0]
  const countOperations = (): number => thirds.reduce((sum, count) => sum + count)
  const addOperation = (): void => {
    const third = Math.min(2, Math.floor((3 * (performance.now() - startedAt)) / (endsAt - startedAt)))
    thirds[third] = (thirds[third] as number) + 1
  }
  const [samples] = await Promise.all([
    sampleUntil(child, folder, endsAt, countOperations),
    runLoad(clients, endsAt, addOperation),
  ])
  console.log(`\n${countOperations()} operations: ${JSON.stringify(clients.outcomes.counts)}`)
  clients.outcomes.print()
  const rise = reportRise('resident memory', samples, ({ rss }) => rss)
  reportRise('heap in use', samples, ({ heapUsed }) => heapUsed)
  reportRise('buffers', samples, ({ arrayBuffers }) => arrayBuffers)
  await printParts(child, 'under load')
  await delay(idle * 1_000)
  await printParts(child, `after ${idle} s without load`)
  if (values.snapshots !== undefined) await ask(child, { snapshot: join(values.snapshots, 'end.heapsnapshot') })
  const { heapUsed, arrayBuffers } = await ask(child, 'collect')
  await printParts(child, 'after garbage collection')
  console.log(`heap in use ${toMegabytes(heapUsed)} MB, buffers ${toMegabytes(arrayBuffers)} MB\n`)
  console.log(`target at most ${maxRise * 100} % more resident memory: ${rise <= maxRise ? 'met' : 'MISSED'}`)
  const { unexpected } = clients.outcomes
  const problems = [
    checkLoad(thirds),
    unexpected === 0 ? undefined : `${unexpected} requests failed that nothing provoked. They are listed above.`,
  ].filter((problem) => problem !== undefined)
  for (const problem of problems) console.error(problem)
  process.exitCode = rise <= maxRise && problems.length === 0 ? 0 : 1
} finally {
  await clients.close()
  child.disconnect()
  upstream.close()
  await once(child, 'exit')
  rmSync(folder, { recursive: true, force: true })
}
