import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type RunningProcess, startCommand } from '../../cli/command.ts'

/** A server of a cluster, in a process of its own. */
type ServerProcess = { readonly url: string; readonly running: RunningProcess }

export type Cluster = AsyncDisposable & {
  /** Addresses of the servers that accept requests. */
  urls(): readonly string[]
  pids(): readonly number[]
  /** Stops a server with SIGTERM. Resolves to the exit code. */
  stop(index: number): Promise<number | null>
  /** Stops a server with SIGTERM and starts another one in its place. Resolves to the exit code. */
  restart(index: number): Promise<number | null>
  /** Kills a server with SIGKILL and starts another one in its place. */
  kill(index: number): Promise<void>
}

export type ClusterOptions = {
  readonly store: string
  /** Folder for the configuration. */
  readonly folder: string
  readonly count: number
  readonly upstream: string
  /** More configuration. */
  readonly config?: Readonly<Record<string, unknown>>
  /** More variables of a server. */
  readonly environment?: (index: number) => Readonly<Record<string, string>>
}

/** Time in which stopping servers are not ready but still listen; clients look more often. */
const drainDelayMs = 1_000

/** Starts `threadkeep serve` several times on one store. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { store, folder, count, upstream, config, environment } = options
  const file = join(folder, `cluster-${count}.config.json`)
  const settings = { store, shutdown: { delay: drainDelayMs }, log: { level: 'error' }, ...config }
  writeFileSync(file, JSON.stringify(settings))
  const start = async (index: number): Promise<ServerProcess> => {
    const running = startCommand(['serve', '--config', file, '--port', '0', '--json', '--upstream', upstream], {
      THREADKEEP_STORE: '',
      ...environment?.(index),
    })
    const { url } = JSON.parse(await running.waitForOutput('}\n')) as { readonly url: string }
    return { url, running }
  }
  const servers: (ServerProcess | undefined)[] = await Promise.all(
    Array.from({ length: count }, (_, index) => start(index)),
  )
  const stop = async (index: number, signal: NodeJS.Signals): Promise<number | null> => {
    const { running } = servers[index] as ServerProcess
    servers[index] = undefined
    running.process.kill(signal)
    const { code } = await running.result
    return code
  }
  return {
    urls: () => servers.flatMap((server) => server?.url ?? []),
    pids: () => servers.flatMap((server) => server?.running.process.pid ?? []),
    stop: (index) => stop(index, 'SIGTERM'),
    restart: async (index) => {
      const code = await stop(index, 'SIGTERM')
      servers[index] = await start(index)
      return code
    },
    kill: async (index) => {
      await stop(index, 'SIGKILL')
      servers[index] = await start(index)
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(servers.map((server, index) => server && stop(index, 'SIGKILL')))
    },
  }
}
