import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { root } from '../shape/source.ts'
import { asRoot } from './asRoot.ts'

const tracer = 'strace'

/** Makes sure of the program that watches system calls and makes them fail: it is put on the machine if it is missing. */
export function findStrace(): void {
  if (spawnSync(tracer, ['--version']).status === 0) return
  const apt = (...args: readonly string[]): boolean => asRoot('apt-get', '-o', 'DPkg::Lock::Timeout=120', ...args)
  const install = (): boolean => apt('install', '-y', tracer)
  if (install() || (apt('update') && install())) return
  throw new Error(
    'These tests make system calls fail with strace, which is missing and could not be installed. They need Linux: apt-get install strace',
  )
}

export type Ended = {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}
export type Watched = {
  readonly ended: Promise<Ended>
  /** Resolves when the program has written a text that matches. */
  until(pattern: RegExp): Promise<RegExpExecArray>
  /** Asks the program, not the one that watches it, to stop. */
  stop(): void
}

/** Longer than anything here takes: what is still running then hangs, and is stopped. */
const longest = 120_000

/** Runs a program of the repository under strace, with all its threads. */
export function watch(options: readonly string[], program: readonly string[], input = ''): Watched {
  // The settings of whoever runs the tests are none of the program's business.
  const env = { PATH: process.env.PATH, HOME: process.env.HOME }
  const child = spawn(tracer, ['-f', '-qq', ...options, process.execPath, ...program], {
    cwd: root,
    env,
    timeout: longest,
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  // A program that is killed does not read what it is given.
  child.stdin.on('error', () => undefined).end(input)
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, stdout, stderr }) as Ended)
  const until = async (pattern: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const found = pattern.exec(stdout)
      if (found !== null) return found
      const more = await Promise.race([once(child.stdout, 'data'), ended])
      if (!Array.isArray(more))
        throw new Error(`The program ended with ${more.code} before it wrote ${pattern}: ${stdout}${stderr}`)
    }
  }
  const stop = (): void => {
    const [watched] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ')
    process.kill(Number(watched))
  }
  return { ended, until, stop }
}
