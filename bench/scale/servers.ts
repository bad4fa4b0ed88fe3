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

/** Measures the CPU time of server processes per request behind a round-robin client. */
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
  const measure = (cluster: Cluster) => async (round: number) => {
    await using client = createRoundRobinClient(cluster)
    const before = readCpuSeconds(cluster)
    const sessions = Math.ceil(turns / turnsPerSession)
    const done = await runSessions(client, {
      sessions,
      turns: turnsPerSession,
      concurrency: clients,
      name: `r${round}s`,
    })
    return ((readCpuSeconds(cluster) - before) / done.length) * 1_000
  }
  const measurements = await measureInterleaved({ 'one server': measure(one), 'four servers': measure(four) }, rounds)
  report(`CPU per request in milliseconds, ${turns} turns per round, PostgreSQL`, measurements, [
    { ours: 'four servers', peer: 'one server', atMost: 1.15 },
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
