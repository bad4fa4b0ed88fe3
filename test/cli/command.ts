import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { root } from '../shape/source.ts'

export type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string }
export type Running = {
  readonly process: ChildProcess
  /** The lines written so far that end with this text; waits for it. */
  until(text: string): Promise<string>
  readonly ended: Promise<Ended>
}

/** Where Node keeps what it has compiled: the same program is started hundreds of times. */
export const compiled = { NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/compiled') }

/** Only what a test sets: the keys and addresses of whoever runs it are none of the command's business. Nothing is kept unless it says where. */
const environment = (given: Readonly<Record<string, string>>): NodeJS.ProcessEnv => {
  const own = Object.entries(process.env).filter(([name]) => !/^(THREADKEEP|OPENAI|ANTHROPIC|GEMINI|XAI)_/.test(name))
  return { ...Object.fromEntries(own), ...compiled, THREADKEEP_STORE: 'ram:', ...given }
}

/** Starts a program of the repository with the Node that runs the tests. */
export function start(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input?: string,
  cwd: string = root,
): Running {
  const child = spawn(process.execPath, [join(root, file), ...args], {
    cwd,
    env: environment(env),
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  if (input !== undefined) child.stdin.end(input)
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, stdout, stderr }))
  const until = async (text: string): Promise<string> => {
    while (!stdout.includes(text)) {
      const more = await Promise.race([once(child.stdout, 'data'), ended])
      if (!Array.isArray(more))
        throw new Error(
          `The command ended with ${more.code} before it said ${JSON.stringify(text)}: ${more.stdout}${more.stderr}`,
        )
    }
    return stdout
  }
  return { process: child, until, ended }
}

export const command = (args: readonly string[], env?: Readonly<Record<string, string>>, cwd?: string): Running =>
  start('src/cli/main.ts', args, env, undefined, cwd)

/** Runs the command to its end. */
export const run = (args: readonly string[], input = '', env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  start('src/cli/main.ts', args, env, input).ended
