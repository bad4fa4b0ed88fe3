import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'

export type Command = {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}
export type Output = { readonly stdout: string; readonly stderr: string; readonly code: number | null }

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) killGroup(child)
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

/** Starts a command in a process group of its own, which ends with this process at the latest. */
function startGroup({ command, args, env, cwd }: Command): ChildProcessByStdio<null, Readable, Readable> {
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  running.add(child)
  child.on('close', () => running.delete(child))
  return child
}

/** Runs a command in a process group of its own, and kills the group at the deadline and at the end. */
export async function run(command: Command, timeoutMs = 60_000): Promise<Output> {
  const child = startGroup(command)
  const timer = setTimeout(() => killGroup(child), timeoutMs)
  // Background processes may keep the pipes open after the command has ended.
  void once(child, 'exit').then(() => setTimeout(() => killGroup(child), 500))
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  clearTimeout(timer)
  return { stdout, stderr, code: code as number | null }
}

/** Starts a server and waits until its output matches; `match` is the first group of the pattern. */
export async function start(
  command: Command,
  pattern: RegExp,
  timeoutMs = 30_000,
): Promise<{ readonly match: string; stop(): void }> {
  const child = startGroup(command)
  child.stderr.resume()
  const timer = setTimeout(() => killGroup(child), timeoutMs)
  let output = ''
  const found = new Promise<string | undefined>((resolve) => {
    child.stdout.on('data', (chunk) => {
      output += chunk
      const match = pattern.exec(output)?.[1]
      if (match !== undefined) resolve(match)
    })
    child.on('close', () => resolve(undefined))
  })
  const match = await found
  clearTimeout(timer)
  if (match === undefined) throw new Error(`${command.command} printed no address: ${output.slice(-300)}`)
  return { match, stop: () => killGroup(child) }
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // The group has ended.
  }
}

/** Kills daemons that a command left behind: the processes whose HOME is this temporary folder. Needs `/proc`. */
export function killDaemons(home: string): void {
  let pids: readonly string[] = []
  try {
    pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    return
  }
  for (const pid of pids) {
    try {
      if (readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`HOME=${home}`))
        process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It has ended, or belongs to another user.
    }
  }
}
