import { join } from 'node:path'
import { createTempFolder } from '../fault/tempFolder.ts'
import { findDeviations, findOtherPrompts, runSessions } from '../server/cluster/clusterRuns.ts'
import { type PromptRecorder, replyTo, startPromptRecorder } from '../server/cluster/promptRecorder.ts'
import { createRoundRobinClient, type Turn } from '../server/cluster/roundRobin.ts'
import { type Cluster, startCluster } from '../server/cluster/serverProcesses.ts'

export type ServersOptions = {
  /** Configuration of the servers, such as `store`, `sessions` and `profile`. Default: a new SQLite file. */
  readonly config: Readonly<Record<string, string>>
  readonly servers: number
  /** Parallel requests on one session. */
  readonly parallel: number
  readonly sessions: number
  readonly turns: number
  /** Clients at once. */
  readonly clients: number
  /** Seconds of load with a kill every five seconds. */
  readonly killSeconds: number
}

/** Figures and deviations of one phase. */
export type Phase = {
  readonly name: string
  readonly seconds: number
  readonly turns: number
  readonly figures: Readonly<Record<string, number>>
  readonly deviations: readonly string[]
}

const killIntervalMs = 5_000

/** Runs server processes behind a round-robin client: parallel turns, sessions without stickiness, restarts and kills. */
export async function runServers(options: ServersOptions, onPhase: (phase: Phase) => void): Promise<void> {
  using folder = createTempFolder()
  await using model = await startPromptRecorder()
  const start = (count: number, upstream: string, name: string): Promise<Cluster> => {
    const { profile = 'thread', store = `sqlite:${join(folder.path, `${name}.db`)}`, ...config } = options.config
    const unlimited = {
      extends: profile,
      lifetime: { messages: 1_000_000, bytes: 1_000_000_000, sessionsPerScope: 1_000_000 },
    }
    const profiles = { profile: 'unlimited', profiles: { unlimited } }
    return startCluster({ folder: folder.path, count, upstream, store, config: { ...config, ...profiles } })
  }
  await using cluster = await start(options.servers, model.url, 'cluster')
  const measure = async (name: string, run: () => Promise<Omit<Phase, 'name' | 'seconds'>>): Promise<void> => {
    const startedAt = performance.now()
    const result = await run()
    onPhase({ name, seconds: Math.round((performance.now() - startedAt) / 1_000), ...result })
  }
  await measure('one session, parallel', () => runParallel(cluster, options))
  await measure('sessions without stickiness', () =>
    runWithoutStickiness(cluster, model, options, (upstream) => start(1, upstream, 'single')),
  )
  await measure('rolling restart', () => runDisturbed(cluster, options, 'restart'))
  await measure('kills, idempotency key', () => runDisturbed(cluster, options, 'kill'))
}

async function runParallel(cluster: Cluster, { parallel }: ServersOptions): Promise<Omit<Phase, 'name' | 'seconds'>> {
  await using client = createRoundRobinClient(cluster)
  const key = `acme:hot${Date.now()}`
  const turns: readonly Turn[] = Array.from({ length: parallel }, (_, index) => ({
    key,
    question: `Question ${index}`,
  }))
  const replies = await Promise.all(turns.map((turn) => client.ask(turn)))
  const wrong = turns.filter(({ question }, index) => replies[index] !== replyTo(question))
  const deviations = await findDeviations(client, turns, { isOrdered: false })
  return {
    turns: parallel,
    figures: Object.fromEntries(client.failures),
    deviations: [...deviations, ...wrong.map(({ question }) => `another reply for ${question}`)],
  }
}

/** Compares the prompts with those of a single server; scopes of the two runs differ, so that they can share a store. */
async function runWithoutStickiness(
  cluster: Cluster,
  model: PromptRecorder,
  { sessions, turns, clients }: ServersOptions,
  startSingle: (upstream: string) => Promise<Cluster>,
): Promise<Omit<Phase, 'name' | 'seconds'>> {
  await using client = createRoundRobinClient(cluster)
  const load = { sessions, turns, concurrency: clients, name: 's' }
  const acknowledged = await runSessions(client, { ...load, scope: `many${Date.now()}` })
  const deviations = await findDeviations(client, acknowledged, { isOrdered: true })
  await using alone = await startPromptRecorder()
  await using single = await startSingle(alone.url)
  await using singleClient = createRoundRobinClient(single)
  await runSessions(singleClient, { ...load, scope: `single${Date.now()}` })
  const others = findOtherPrompts(acknowledged, model, alone)
  return {
    turns: acknowledged.length,
    figures: { ...Object.fromEntries(client.failures), 'other prompts': others.length },
    deviations: [...deviations, ...others.map((question) => `another prompt for ${question}`)],
  }
}

/** Runs sessions while servers are restarted or killed one after the other. */
async function runDisturbed(
  cluster: Cluster,
  { servers, clients, turns, killSeconds }: ServersOptions,
  kind: 'restart' | 'kill',
): Promise<Omit<Phase, 'name' | 'seconds'>> {
  await using client = createRoundRobinClient(cluster)
  const scope = `${kind}${Date.now()}`
  let isOver = false
  const load = Promise.all(
    Array.from({ length: clients }, async (_, index) => {
      const acknowledged: Turn[] = []
      for (let round = 0; !isOver; round++) {
        const name = `c${index}x${round}s`
        acknowledged.push(...(await runSessions(client, { sessions: 1, turns, concurrency: 1, name, scope })))
      }
      return acknowledged
    }),
  )
  const end = performance.now() + killSeconds * 1_000
  let disturbances = 0
  for (; kind === 'restart' ? disturbances < servers : performance.now() < end; disturbances++) {
    const pause = kind === 'kill' ? new Promise((resume) => setTimeout(resume, killIntervalMs)) : undefined
    await cluster[kind](disturbances % servers)
    await pause
  }
  isOver = true
  const acknowledged = (await load).flat()
  const deviations = [...(await findDeviations(client, acknowledged, { isOrdered: true }))]
  const failures = [...client.failures].filter(([cause]) => cause !== 'ECONNREFUSED')
  if (kind === 'restart') deviations.push(...failures.map(([cause, count]) => `${count} requests failed: ${cause}`))
  return {
    turns: acknowledged.length,
    figures: { [`${kind}s`]: disturbances, ...Object.fromEntries(client.failures) },
    deviations,
  }
}

/** Formats a phase as one line, with its deviations below. */
export const formatPhase = ({ name, seconds, turns, figures, deviations }: Phase): string =>
  [
    `${name}: ${turns} turns in ${seconds} s, ${deviations.length} deviations${Object.entries(figures)
      .map(([figure, value]) => `, ${figure} ${value}`)
      .join('')}`,
    ...deviations.slice(0, 20).map((deviation) => `  ${deviation.slice(0, 500)}`),
  ].join('\n')
