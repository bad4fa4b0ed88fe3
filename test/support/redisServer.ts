import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installPackage } from '../../scripts/installPackage.ts'

/** A redis-server that runs in a temporary folder. */
export type RedisServer = {
  readonly port: number
  readonly url: string
  readonly folder: string
  readonly process: ChildProcess
  /** Ends the server with a signal and waits for its end. */
  stop(signal?: NodeJS.Signals): Promise<void>
  /** Sends a command and returns the raw reply. */
  ask(...command: readonly string[]): string
}

/** Settings under which sessions stay in memory. */
const ephemeral = ['--save', '', '--appendonly', 'no', '--maxmemory-policy', 'noeviction']

/** Finds redis-server, or installs it where that is allowed. */
function findBinary(): string {
  const find = (): string => spawnSync('sh', ['-c', 'command -v redis-server'], { encoding: 'utf8' }).stdout.trim()
  if (find() === '') installPackage('redis-server')
  const found = find()
  if (found === '')
    throw new Error(
      'Install redis-server 7 or newer (Debian: apt install redis-server) to run the tests of the Redis store.',
    )
  return found
}

export function getFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

export type StartOptions = {
  /** Settings after those for ephemeral sessions; later ones have precedence. */
  readonly settings?: readonly string[]
  readonly port?: number
  /** Folder to use again, after a restart. */
  readonly folder?: string
  /** First argument, such as a configuration file. */
  readonly file?: string
}

/** Starts a server on a free port; `remove` ends it and deletes its files. */
export async function startRedisServer(options: StartOptions = {}): Promise<RedisServer & { remove(): Promise<void> }> {
  const { settings = [], port = await getFreePort(), file } = options
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'threadkeep-redis-'))
  const common = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    folder,
    '--logfile',
    join(folder, 'redis.log'),
  ]
  const args = file === undefined ? [...common, ...ephemeral, ...settings] : [file, ...settings]
  const process = spawn(findBinary(), args, { stdio: 'ignore' })
  const ended = new Promise<void>((resolve) => process.once('exit', () => resolve()))
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<void> => {
    if (process.exitCode === null && process.signalCode === null) process.kill(signal)
    await ended
  }
  const remove = async (): Promise<void> => {
    await stop('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  const isTls = settings.includes('--tls-port')
  if (!isTls) await waitForPort(port)
  const ask = (...command: readonly string[]): string =>
    execFileSync('redis-cli', ['-p', String(port), ...command], { encoding: 'utf8' }).trim()
  return { port, url: `redis://127.0.0.1:${port}`, folder, process, stop, ask, remove }
}

/** Waits until something accepts connections. */
export async function waitForPort(port: number): Promise<void> {
  for (let attempts = 0; attempts < 400; attempts++) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (isOpen) return
    await new Promise((resume) => setTimeout(resume, 10))
  }
  throw new Error(`Nothing listens on port ${port}.`)
}
