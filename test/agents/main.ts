import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { codingAgents } from './codingAgents.ts'
import { type Result, runScenario, scenarios } from './scenarios.ts'

const folder = fileURLToPath(new URL('.', import.meta.url))

const usage = `Runs coding agents through the proxy: npm run agents -- [--agent NAME] [--scenario NAME] [--direct] [--record FOLDER]
--direct runs them without the proxy, as a check of the scenarios themselves.
--record writes the requests of each scenario, as sent and as forwarded, to a folder.`

/** Version of an installed package; undefined if it is not installed. */
function readVersion(name: string): string | undefined {
  const path = join(folder, 'node_modules', name, 'package.json')
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).version : undefined
}

/**
 * Installs the agents, unless the declared versions are there. Their platform packages contain the programs, so no
 * install script is needed.
 */
function install(): void {
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (Object.entries(dependencies).every(([name, version]) => readVersion(name) === version)) return
  console.log('Installing the agents (1.8 GB) …')
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error']
  const { status } = spawnSync('npm', ['install', ...flags], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error('npm install failed in test/agents. Run it there to see why.')
}

const columns = [12, 9, 11, 6, 9, 10] as const
const formatRow = (cells: readonly string[]): string =>
  cells
    .map((cell, index) => cell.padEnd(columns[index] ?? 0))
    .join(' ')
    .trimEnd()

function record(target: string, name: string, { sent, forwarded }: Result): void {
  mkdirSync(target, { recursive: true })
  writeFileSync(join(target, `${name.replace(/\W+/g, '-')}.json`), JSON.stringify({ sent, forwarded }, null, 1))
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      agent: { type: 'string' },
      scenario: { type: 'string' },
      direct: { type: 'boolean', default: false },
      record: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) return console.log(usage)
  const matches = (name: string, wanted: string | undefined): boolean =>
    wanted === undefined || name.toLowerCase().includes(wanted.toLowerCase())
  install()
  console.log(formatRow(['agent', 'version', 'scenario', 'result', 'requests', 'differing', 'auxiliary']))
  for (const agent of codingAgents.filter(({ name }) => matches(name, values.agent)))
    for (const scenario of scenarios.filter(({ name }) => matches(name, values.scenario))) {
      const head = [agent.name, readVersion(agent.package) ?? '', scenario.name]
      const result = await runScenario(agent, scenario, values.direct)
      if (result === undefined) {
        console.log(formatRow([...head, '-']))
        continue
      }
      const { faults, requests, differences, auxiliary } = result
      const hasPassed = faults.length === 0 && differences.length === 0
      const counts = [requests, differences.length, auxiliary].map(String)
      console.log(formatRow([...head, hasPassed ? 'pass' : 'FAIL', ...counts]))
      for (const line of [...faults, ...differences.map((text) => `request ${text}`)]) console.log(`  ${line}`)
      if (!hasPassed) process.exitCode = 1
      if (values.record !== undefined) record(values.record, `${agent.name} ${scenario.name}`, result)
    }
}

await main()
