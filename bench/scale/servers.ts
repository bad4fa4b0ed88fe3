import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { runSessions } from '../../test/server/cluster/clusterRuns.ts'
import { startPromptRecorder } from '../../test/server/cluster/promptRecorder.ts'
import { createRoundRobinClient } from '../../test/server/cluster/roundRobin.ts'
import { type Cluster, startCluster } from '../../test/server/cluster/serverProcesses.ts'
import type { PostgresServer } from '../../test/support/postgresServer.ts'
import { measureInterleaved, report } from '../measure.ts'

const turnsPerSession = 10
/** Most requests in flight per server: with more, a server stores several turns in one round trip and uses less CPU for each. */
const clientsPerServer = 4
const rounds = 5
/** Requests that each server has answered before it is measured: compiled code and caches differ less after that. */
const warmUpPerServer = 2_000
/** As often as balancers look: a hundred times per second would be part of the CPU per request. */
const readinessIntervalMs = 5_000

export type ServerLoad = {
  /** Turns of each server per measurement. */
  readonly turns: number
  /** Turns per second that each server gets; 0 for as many as it answers. */
  readonly rate: number
}

/**
 * Measures the CPU time of server processes per request behind a round-robin client, with the same load for each
 * server. Controls: four servers with sticky sessions, none of which reads what another one has written, and servers
 * that share nothing, because their sessions are in their own RAM. Those show what four processes cost on this machine.
 */
export async function measureServers(postgres: PostgresServer, { turns, rate }: ServerLoad): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-scale-'))
  await using model = await startPromptRecorder()
  // Each cluster has a folder of its own: servers follow changes of their configuration.
  const start = async (count: number, store: string): Promise<Cluster> =>
    startCluster({ folder: mkdtempSync(join(folder, 'cluster-')), count, upstream: model.url, store })
  await using one = await start(1, await postgres.createDatabase())
  await using four = await start(4, await postgres.createDatabase())
  await using sticky = await start(4, await postgres.createDatabase())
  await using oneInRam = await start(1, 'ram:')
  await using fourInRam = await start(4, 'ram:')
  const run = async (
    cluster: Cluster,
    turnsPerServer: number,
    name: string,
    turnsPerSecond: number,
  ): Promise<number> => {
    const isSticky = cluster === sticky || cluster === fourInRam
    await using client = createRoundRobinClient(cluster, { isSticky, readinessIntervalMs })
    const servers = cluster.pids().length
    const acknowledged = await runSessions(client, {
      sessions: Math.ceil((turnsPerServer * servers) / turnsPerSession),
      turns: turnsPerSession,
      concurrency: clientsPerServer * servers,
      name,
      ...(turnsPerSecond > 0 && { waitForStart: createPacer(turnsPerSecond * servers) }),
    })
    return acknowledged.length
  }
  const measure = (cluster: Cluster) => async (round: number) => {
    const before = readCpuSeconds(cluster)
    const done = await run(cluster, turns, `r${round}s`, rate)
    return ((readCpuSeconds(cluster) - before) / done) * 1_000
  }
  const contenders = {
    'one server': one,
    'four servers': four,
    'four servers, sticky sessions': sticky,
    'one server, RAM': oneInRam,
    'four servers, RAM': fourInRam,
  }
  for (const cluster of Object.values(contenders)) await run(cluster, warmUpPerServer, 'warm', 0)
  const measurements = await measureInterleaved(
    Object.fromEntries(Object.entries(contenders).map(([name, cluster]) => [name, measure(cluster)])),
    rounds,
    0,
  )
  const load = rate === 0 ? 'as many as they answer' : `${rate} per second and server`
  report(`CPU per request in milliseconds, ${turns} turns per server and round, ${load}`, measurements, [
    { ours: 'four servers', peer: 'one server', atMost: 1.15 },
    { ours: 'four servers', peer: 'four servers, sticky sessions', atMost: 1.15 },
    { ours: 'four servers, RAM', peer: 'one server, RAM' },
  ])
  rmSync(folder, { recursive: true, force: true })
}

/** Starts turns at a constant rate. */
function createPacer(turnsPerSecond: number): () => Promise<void> {
  const startedAt = performance.now()
  let turns = 0
  return async () => {
    const waitMs = startedAt + (turns++ * 1_000) / turnsPerSecond - performance.now()
    if (waitMs > 0) await delay(waitMs)
  }
}

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** CPU time of all threads of the servers of a cluster so far. */
const readCpuSeconds = (cluster: Cluster): number =>
  cluster.pids().reduce((sum, pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return sum + (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
  }, 0)
