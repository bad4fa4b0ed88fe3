import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runSessions } from '../../test/server/cluster/clusterRuns.ts'
import { startPromptRecorder } from '../../test/server/cluster/promptRecorder.ts'
import { createRoundRobinClient } from '../../test/server/cluster/roundRobin.ts'
import { type Cluster, startCluster } from '../../test/server/cluster/serverProcesses.ts'
import type { PostgresServer } from '../../test/support/postgresServer.ts'
import { measureInterleaved, report } from '../measure.ts'

const turnsPerSession = 10
const clients = 16
const rounds = 5
/** Requests that each server has answered before it is measured: compiled code and caches differ less after that. */
const warmUpPerServer = 2_000

/**
 * Measures the CPU time of server processes per request behind a round-robin client. Four servers with sticky sessions
 * show what four processes cost by themselves, because none of them reads what another one has written.
 */
export async function measureServers(postgres: PostgresServer, turns: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-scale-'))
  await using model = await startPromptRecorder()
  const start = async (count: number): Promise<Cluster> =>
    startCluster({
      folder,
      count,
      upstream: model.url,
      store: await postgres.createDatabase(),
    })
  await using one = await start(1)
  await using four = await start(4)
  await using sticky = await start(4)
  const run = async (cluster: Cluster, count: number, name: string): Promise<number> => {
    await using client = createRoundRobinClient(cluster, { isSticky: cluster === sticky })
    const sessions = Math.ceil(count / turnsPerSession)
    return (await runSessions(client, { sessions, turns: turnsPerSession, concurrency: clients, name })).length
  }
  const measure = (cluster: Cluster) => async (round: number) => {
    const before = readCpuSeconds(cluster)
    const done = await run(cluster, turns, `r${round}s`)
    return ((readCpuSeconds(cluster) - before) / done) * 1_000
  }
  for (const cluster of [one, four, sticky]) await run(cluster, warmUpPerServer * cluster.pids().length, 'warm')
  const contenders = {
    'one server': measure(one),
    'four servers': measure(four),
    'four servers, sticky sessions': measure(sticky),
  }
  const measurements = await measureInterleaved(contenders, rounds, 0)
  report(`CPU per request in milliseconds, ${turns} turns per round, PostgreSQL`, measurements, [
    { ours: 'four servers', peer: 'one server', atMost: 1.15 },
    { ours: 'four servers', peer: 'four servers, sticky sessions', atMost: 1.15 },
  ])
  rmSync(folder, { recursive: true, force: true })
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
