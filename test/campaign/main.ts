/** `npm run campaign`: without arguments, the property and fault tests with full counts; `hardening` searches for new failures; `servers` runs a cluster. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { startPostgres } from '../support/postgresServer.ts'
import { startRedisServer } from '../support/redisServer.ts'
import { formatReports, type HardeningOptions, type PartReport, runPart } from './hardening.ts'
import { partStores } from './part.ts'
import { parts } from './parts.ts'
import { formatPhase, runServers } from './servers.ts'

const partNames = parts.map(({ name }) => name).join(', ')

const help = `Usage: npm run campaign                       property, crash and fault tests with full counts
       npm run campaign -- hardening [options]  search for new failures
       npm run campaign -- servers [options]    four server processes on one store, with restarts and kills

Options of hardening:
  --part NAME    only this part, repeatable: ${partNames}
  --inputs N     inputs of each part (its full count)
  --seconds N    most seconds of each part (3600)
  --store NAME   store of the part isolation: ${partStores.join(', ')} (the first three in turns); starts servers of its own
  --seed N       seed (a new one)
  --workers N    processes (the number of processors)
  --json         print the result as JSON
  --out FILE     also write the result as JSON to a file, after each part

Options of servers:
  --store URL    store of the servers (a new SQLite file); postgres starts a new server
  --sessions URL store of the sessions of RAM-only profiles, such as support; redis starts a new server
  --profile NAME profile of the servers (thread)
  --parallel N   parallel requests on one session (1000)
  --inputs N     sessions of ten turns (10000)
  --workers N    clients at once (64)
  --seconds N    seconds of load with a kill every five seconds (60)

Parts:
${parts.map(({ name, description, fullCount, unit }) => `  ${name.padEnd(10)} ${description}; ${fullCount} ${unit}`).join('\n')}

Each kind of failure is shrunk and written to test/campaign/failures; a committed file is replayed by npm test.
SIGINT and SIGTERM end the run early; the result so far is printed.
Exit codes: 0 no failure, 1 failures or a part without inputs, 2 usage error, 130 interrupted without a failure.`

function fail(problem: string): never {
  process.stderr.write(`${problem} See npm run campaign -- --help.\n`)
  process.exit(2)
}

function parseNumber(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,10}$/.test(text)) return Number(text)
  return fail(`--${name} is ${JSON.stringify(text)}; it must be a whole number.`)
}

function parseOptions(args: readonly string[]) {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  try {
    return parseArgs({
      args: [...args],
      options: {
        part: { ...text, multiple: true },
        inputs: text,
        seconds: text,
        seed: text,
        workers: text,
        json: flag,
        out: text,
        store: text,
        sessions: text,
        profile: text,
        parallel: text,
        help: flag,
      },
    }).values
  } catch (error) {
    return fail((error as Error).message.split('. ')[0] as string)
  }
}

async function runHardening(args: readonly string[]): Promise<void> {
  const values = parseOptions(args)
  if (values.help === true) return void process.stdout.write(`${help}\n`)
  const unknown = values.part?.find((name) => !parts.some((part) => part.name === name))
  if (unknown !== undefined) fail(`Unknown part ${JSON.stringify(unknown)}. Use one of: ${partNames}.`)
  const store = partStores.find((name) => name === values.store)
  if (store !== values.store)
    fail(`Unknown store ${JSON.stringify(values.store)}. Use one of: ${partStores.join(', ')}.`)
  const options: HardeningOptions = {
    store,
    seed: parseNumber('seed', values.seed) ?? Date.now() % 2 ** 31,
    inputs: parseNumber('inputs', values.inputs),
    seconds: parseNumber('seconds', values.seconds) ?? 3_600,
    workers: parseNumber('workers', values.workers) ?? availableParallelism(),
  }
  process.stderr.write(`seed ${options.seed}\n`)
  let isInterrupted = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      isInterrupted = true
    })
  const reports: PartReport[] = []
  const toJson = (): string => JSON.stringify({ seed: options.seed, isInterrupted, reports }, undefined, 2)
  for (const part of parts) {
    if (isInterrupted || values.part?.includes(part.name) === false) continue
    reports.push(await runPart(part, options, () => isInterrupted))
    if (values.out !== undefined) writeFileSync(values.out, `${toJson()}\n`)
  }
  process.stdout.write(`${values.json === true ? toJson() : formatReports(reports, options.seed)}\n`)
  // A part that tried nothing has shown nothing.
  const hasFailed = reports.some(({ failures, done }) => failures.length > 0 || (done === 0 && !isInterrupted))
  process.exitCode = hasFailed ? 1 : isInterrupted ? 130 : 0
}

async function runServerCampaign(args: readonly string[]): Promise<void> {
  const values = parseOptions(args)
  if (values.help === true) return void process.stdout.write(`${help}\n`)
  const postgres = values.store === 'postgres' ? await startPostgres() : undefined
  const redis = values.sessions === 'redis' ? await startRedisServer() : undefined
  const store = (await postgres?.createDatabase()) ?? values.store
  const sessions = redis?.url ?? values.sessions
  const { profile } = values
  const config = Object.entries({ store, sessions, profile }).filter((entry): entry is [string, string] => !!entry[1])
  const options = {
    config: Object.fromEntries(config),
    servers: 4,
    parallel: parseNumber('parallel', values.parallel) ?? 1_000,
    sessions: parseNumber('inputs', values.inputs) ?? 10_000,
    turns: 10,
    clients: parseNumber('workers', values.workers) ?? 64,
    killSeconds: parseNumber('seconds', values.seconds) ?? 60,
  }
  try {
    await runServers(options, (phase) => {
      process.stdout.write(`${formatPhase(phase)}\n`)
      if (phase.deviations.length > 0) process.exitCode = 1
    })
  } finally {
    await redis?.remove()
    await postgres?.remove()
  }
}

const [command, ...rest] = process.argv.slice(2)
if (command === '--help') process.stdout.write(`${help}\n`)
else if (command === 'hardening') await runHardening(rest)
else if (command === 'servers') await runServerCampaign(rest)
else if (command !== undefined && !command.startsWith('-') && !command.startsWith('test/'))
  fail(`Unknown campaign ${JSON.stringify(command)}. Use hardening, servers, or none.`)
else {
  const env = { ...process.env, THREADKEEP_CAMPAIGN: '1' }
  const { status } = spawnSync('vitest', ['run', ...process.argv.slice(2)], { env, stdio: 'inherit' })
  process.exitCode = status ?? 1
}
