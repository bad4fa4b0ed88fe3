import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { root } from '../shape/source.ts'

/** Exit code and output of a process that has ended. */
export type ProcessResult = { readonly code: number | null; readonly stdout: string; readonly stderr: string }

/** Process started by a test. */
export type RunningProcess = {
  readonly process: ChildProcess
  /** Waits until standard output contains this text, and returns all output so far. */
  waitForOutput(text: string): Promise<string>
  readonly result: Promise<ProcessResult>
}

/** Caches compiled code between runs, because tests start the same program hundreds of times. */
export const compileCacheEnv = { NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/compiled') }

/** Removes provider keys and Threadkeep settings of the developer from the environment; the default store is RAM. */
export const cleanEnvironment = (overrides: Readonly<Record<string, string>>): NodeJS.ProcessEnv => {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(THREADKEEP|OPENAI|ANTHROPIC|GEMINI|XAI)_/.test(name),
  )
  return { ...Object.fromEntries(inherited), ...compileCacheEnv, THREADKEEP_STORE: 'ram:', ...overrides }
}

/** Starts a program of the repository with the Node version that runs the tests. */
export function startProgram(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input?: string,
  cwd: string = root,
): RunningProcess {
  const child = spawn(process.execPath, [join(root, file), ...args], {
    cwd,
    env: cleanEnvironment(env),
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  if (input !== undefined) child.stdin.end(input)
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, stdout, stderr }))
  const until = async (text: string): Promise<string> => {
    while (!stdout.includes(text)) {
      const event = await Promise.race([once(child.stdout, 'data'), ended])
      if (!Array.isArray(event))
        throw new Error(
          `The command exited with ${event.code} before it printed ${JSON.stringify(text)}: ${event.stdout}${event.stderr}`,
        )
    }
    return stdout
  }
  return { process: child, waitForOutput: until, result: ended }
}

/** Starts the `threadkeep` command. */
export const startCommand = (
  args: readonly string[],
  env?: Readonly<Record<string, string>>,
  cwd?: string,
): RunningProcess => startProgram('src/cli/main.ts', args, env, undefined, cwd)

/** Runs the `threadkeep` command to its end. */
export const runCommand = (
  args: readonly string[],
  input = '',
  env: Readonly<Record<string, string>> = {},
): Promise<ProcessResult> => startProgram('src/cli/main.ts', args, env, input).result
