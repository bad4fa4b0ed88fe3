import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { root } from '../shape/source.ts'
import { runAsRoot } from './runAsRoot.ts'

const strace = 'strace'

/** Installs strace if it is missing; throws if that is not possible. */
export function ensureStrace(): void {
  if (spawnSync(strace, ['--version']).status === 0) return
  const apt = (...args: readonly string[]): boolean => runAsRoot('apt-get', '-o', 'DPkg::Lock::Timeout=120', ...args)
  const install = (): boolean => apt('install', '-y', strace)
  if (install() || (apt('update') && install())) return
  throw new Error(
    'strace is missing and could not be installed. These tests need Linux and strace: apt-get install strace',
  )
}

export type ProcessResult = {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}
export type TracedProcess = {
  readonly result: Promise<ProcessResult>
  /** Resolves when the stdout of the program matches. */
  waitForOutput(pattern: RegExp): Promise<RegExpExecArray>
  /** Sends SIGTERM to the program, not to strace. */
  stop(): void
}

/** A process that runs longer hangs and is killed. */
const maxRunTimeMs = 120_000

/** Runs a program of the repository and all its threads under strace. */
export function runTraced(options: readonly string[], program: readonly string[], input = ''): TracedProcess {
  // Leaves out the other variables, which could configure the program.
  const env = { PATH: process.env.PATH, HOME: process.env.HOME }
  const child = spawn(strace, ['-f', '-qq', ...options, process.execPath, ...program], {
    cwd: root,
    env,
    timeout: maxRunTimeMs,
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  // A killed program does not read its input.
  child.stdin.on('error', () => undefined).end(input)
  const result = once(child, 'close').then(([code, signal]) => ({ code, signal, stdout, stderr }) as ProcessResult)
  const waitForOutput = async (pattern: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const match = pattern.exec(stdout)
      if (match !== null) return match
      const event = await Promise.race([once(child.stdout, 'data'), result])
      if (!Array.isArray(event))
        throw new Error(`The program ended with ${event.code} before it wrote ${pattern}: ${stdout}${stderr}`)
    }
  }
  const stop = (): void => {
    const [pid] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ')
    process.kill(Number(pid))
  }
  return { result, waitForOutput, stop }
}
