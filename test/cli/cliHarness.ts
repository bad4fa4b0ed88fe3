import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect } from 'vitest'
import { type ProcessResult, startProgram } from './command.ts'
import { runInProcess, runsInProcess } from './inProcess.ts'

type Env = Readonly<Record<string, string>>

export type CliHarness = {
  /** Working directory of the commands, removed after the test file. */
  readonly folder: string
  /** Runs the command to its end: in this process, or in one of its own if it runs until it is stopped. */
  run(args: readonly string[], input?: string, env?: Env): Promise<ProcessResult>
  /** Runs the command, expects success and an empty standard error, and returns standard output. */
  output(...args: readonly string[]): Promise<string>
  /** Runs the command with `--json` and parses its output. */
  json<T = Record<string, unknown>>(...args: readonly string[]): Promise<T>
}

/**
 * Creates a harness that runs commands in a temporary folder, with the default store in that folder unless `env`
 * overrides it.
 */
export function createCliHarness(name: string, prefix: readonly string[] = [], env: Env = {}): CliHarness {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), `threadkeep-${name}-`))
  afterAll(() => rmSync(folder, { recursive: true }))
  const run: CliHarness['run'] = (args, input = '', extra = {}) => {
    const all = [...prefix, ...args]
    const variables = { THREADKEEP_STORE: '', ...env, ...extra }
    if (runsInProcess(all)) return runInProcess(all, variables, folder, input)
    return startProgram('src/cli/main.ts', all, variables, input, folder).result
  }
  const output: CliHarness['output'] = async (...args) => {
    const { code, stdout, stderr } = await run(args)
    expect([code, stderr]).toEqual([0, ''])
    return stdout
  }
  return { folder, run, output, json: async (...args) => JSON.parse(await output(...args, '--json')) }
}

/** Joins lines, each with a newline. */
export const lines = (...all: readonly string[]): string => all.map((line) => `${line}\n`).join('')

/** Asserts that a help text has a usage line, examples and exit codes. */
export function expectHelp(help: string, command: string): void {
  expect(help).toMatch(new RegExp(`^Usage: threadkeep ${command} `))
  expect(help).toContain(`\nExamples:\n  threadkeep ${command.split(' ')[0]}`)
  expect(help).toContain(exitCodes)
}

export const exitCodes = 'Exit codes: 0 success, 1 failure, 2 usage error, 130 interrupted.'
