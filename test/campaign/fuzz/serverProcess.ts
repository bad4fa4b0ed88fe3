/**
 * A server under test in a process of its own, so that the CPU time of its main thread is not mixed with the client's.
 * Answers questions of its parent about its longest uninterrupted work, faults and memory.
 */
import { existsSync, mkdirSync, openSync, readSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Credentials } from '../../../src/server/auth/credentials.ts'
import { parseConfig } from '../../../src/server/config/schema.ts'
import { resolveServerConfig } from '../../../src/server/config/serverConfig.ts'
import { mergeSettings, toConfigSource } from '../../../src/server/config/settings.ts'
import { silentLog } from '../../../src/server/observability/log.ts'
import { openServer } from '../../../src/server/openServer.ts'
import { examineFile } from '../../../src/stores/sqlite/repair.ts'

/** Settings of the process, as JSON in its first argument. */
export type ServerSettings = { readonly folder: string; readonly upstream?: string; readonly timeoutMs?: number }
export type ServerKeys = Readonly<Record<'acme' | 'globex' | 'operator', string>>
export type ServerReady = { readonly url: string; readonly keys: ServerKeys }
/** State since the last question. */
export type ServerState = {
  /** Time of the main thread in its longest stretch without returning to the event loop, without waits for a processor. */
  readonly stretchMs: number
  readonly faults: readonly string[]
  readonly rssBytes: number
  /** CPU time of the process since it started. */
  readonly cpuMs: number
}
/** Damage that was found in the store after the server had closed it. */
export type ServerEnd = { readonly damage: readonly string[] }

const { folder, upstream, timeoutMs } = JSON.parse(process.argv[2] as string) as ServerSettings
let faults: string[] = []
let longestMs = 0

/**
 * Time in which the main thread ran or was blocked, in ms: the time that passed without its waits for a processor, which
 * other processes cause. Without the scheduler's statistics it is the CPU time, which leaves out blocking calls.
 */
const schedulerFile = '/proc/self/schedstat'
const schedulerFd = existsSync(schedulerFile) ? openSync(schedulerFile, 'r') : undefined
const schedulerText = Buffer.alloc(100)
function ownTimeMs(): number {
  if (schedulerFd === undefined) {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1_000
  }
  const bytes = readSync(schedulerFd, schedulerText, 0, schedulerText.length, 0)
  const [, waitedNs = 0] = schedulerText.toString('latin1', 0, bytes).split(' ').map(Number)
  return performance.now() - waitedNs / 1e6
}

/** Reads the time once per millisecond: the difference of two reads is that of one stretch at most, and a millisecond. */
let lastMs = ownTimeMs()
setInterval(() => {
  const now = ownTimeMs()
  longestMs = Math.max(longestMs, now - lastMs)
  lastMs = now
}, 1).unref()

process.on('uncaughtException', (error) => faults.push(`uncaught: ${error.stack}`))
process.on('unhandledRejection', (reason) =>
  faults.push(`unhandled rejection: ${reason instanceof Error ? reason.stack : String(reason)}`),
)

const keyFile = join(folder, 'keys.json')
const credentials = new Credentials(keyFile, { fileExpected: false, onFault: () => undefined })
const createKey = async (scope: string, rights?: 'admin'): Promise<string> =>
  (await credentials.create({ scopes: [scope], ...(rights && { rights }) }, Date.now())).key
const keys: ServerKeys = {
  acme: await createKey('acme'),
  globex: await createKey('globex'),
  operator: await createKey('*', 'admin'),
}
const shared = join(folder, 'shared')
mkdirSync(shared)
writeFileSync(join(shared, 'a.txt'), 'Hello.\n')
const store = join(folder, 'a.db')
const config = parseConfig({
  listen: { port: 0 },
  store: `sqlite:${store}`,
  keys: { file: keyFile },
  templates: { support: { profile: 'support' } },
  mcp: { allow: [shared], write: true, audit: join(folder, 'audit.jsonl') },
  upkeep: 'builtin',
  ...(upstream !== undefined && { upstreams: [{ name: 'up', base: upstream }], retries: { attempts: 1 } }),
  ...(timeoutMs !== undefined && { timeouts: { firstByte: timeoutMs, idle: timeoutMs } }),
})
const settings = mergeSettings([toConfigSource(config, 'file')], undefined)
const server = await openServer(resolveServerConfig(settings, {}), {
  log: { ...silentLog, fault: (_, trace) => void faults.push(trace) },
})

process.on('message', async (question: 'state' | 'close') => {
  if (question === 'state') {
    const { user, system } = process.cpuUsage()
    const rssBytes = process.memoryUsage.rss()
    process.send?.({ stretchMs: longestMs, faults, rssBytes, cpuMs: (user + system) / 1_000 } satisfies ServerState)
    longestMs = 0
    faults = []
    return
  }
  await server.close(5_000)
  const { faults: damage } = await examineFile(store)
  process.send?.({ damage: damage.map((fault) => JSON.stringify(fault)) } satisfies ServerEnd)
  process.disconnect()
})
// A terminal sends its signals to all processes of the campaign. This one ends with its parent.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined)
process.on('disconnect', () => process.exit())
process.send?.({ url: server.url, keys } satisfies ServerReady)
