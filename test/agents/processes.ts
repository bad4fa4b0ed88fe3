import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'

export type Command = {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}
export type Output = { readonly stdout: string; readonly stderr: string; readonly code: number | null }

/** Runs a command in a process group of its own, and kills the group at the deadline and at the end. */
export async function run({ command, args, env, cwd }: Command, timeoutMs = 60_000): Promise<Output> {
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const timer = setTimeout(() => killGroup(child), timeoutMs)
  // Background processes may keep the pipes open after the command has ended.
  void once(child, 'exit').then(() => setTimeout(() => killGroup(child), 500))
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  clearTimeout(timer)
  return { stdout, stderr, code: code as number | null }
}

/** Starts a server and waits until its output matches; `match` is the first group of the pattern. */
export async function start(
  { command, args, env, cwd }: Command,
  pattern: RegExp,
  timeoutMs = 30_000,
): Promise<{ readonly match: string; stop(): void }> {
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const timer = setTimeout(() => killGroup(child), timeoutMs)
  let output = ''
  child.stderr.resume()
  for await (const chunk of child.stdout) {
    output += chunk
    const match = pattern.exec(output)?.[1]
    if (match === undefined) continue
    clearTimeout(timer)
    return { match, stop: () => killGroup(child) }
  }
  throw new Error(`${command} printed no address: ${output}`)
}

export function killGroup({ pid }: ChildProcess): void {
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
