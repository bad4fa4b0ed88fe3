import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import baseline from './conformance.baseline.json' with { type: 'json' }
import { startTestServer } from './harness.ts'

const run = promisify(execFile)

type Check = { readonly name: string; readonly status: string }

/** Runs a version of the conformance suite against a server and returns the results of its checks. */
async function runChecks(program: string, args: readonly string[]): Promise<readonly Check[]> {
  await using server = await startTestServer()
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-conformance-'))
  try {
    // Exits with 1 if anything fails; the baseline lists the expected failures.
    await run(
      process.execPath,
      [fileURLToPath(program), 'server', '--url', `${server.url}/mcp`, '-o', folder, ...args],
      { maxBuffer: 2 ** 26 },
    ).catch(() => undefined)
    return readdirSync(folder).flatMap((scenario) => {
      const checks = JSON.parse(readFileSync(join(folder, scenario, 'checks.json'), 'utf8')) as readonly {
        readonly id: string
        readonly status: string
      }[]
      return checks.map(({ id, status }) => ({ name: `${nameOf(scenario)}/${id}`, status }))
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** `server-tools-list-2026-07-28T…` is the scenario `tools-list`. */
const nameOf = (folder: string): string => folder.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '')

/** Lists failures in the notation of the baseline, which may name a scenario as a whole. */
function failuresOf(checks: readonly Check[], expected: readonly string[]): readonly string[] {
  const names = checks.filter(({ status }) => status === 'FAILURE').map(({ name }) => name)
  const scenarios = expected.filter((name) => name.endsWith('/*')).map((name) => name.slice(0, -1))
  return [
    ...new Set(
      names.map((name) => (scenarios.some((prefix) => name.startsWith(prefix)) ? name.replace(/\/.*/, '/*') : name)),
    ),
  ].sort()
}

const [released, next] = [
  import.meta.resolve('@modelcontextprotocol/conformance/dist/index.js'),
  import.meta.resolve('@modelcontextprotocol/conformance-next/dist/index.js'),
]
const suites = [
  ['0.1.16', released, []],
  ['next 2025-11-25', next, ['--requirements', '2025-11-25']],
  ['next 2026-07-28', next, ['--requirements', '2026-07-28']],
] as const

describe('conformance suite', () => {
  for (const [name, program, args] of suites) {
    verifies('S-04', `${name} passes except for the failures of its baseline`, async () => {
      const expected = Object.values(baseline[name]).flat().sort()
      const checks = await runChecks(program, args)
      expect(failuresOf(checks, expected)).toEqual(expected)
      expect(checks.filter(({ status }) => status === 'SUCCESS').map(({ name }) => name)).toEqual(
        expect.arrayContaining(['tools-list/tools-list', 'resources-list/resources-list', 'prompts-list/prompts-list']),
      )
    })
  }
})
