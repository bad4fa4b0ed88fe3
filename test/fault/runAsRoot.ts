import { execFileSync } from 'node:child_process'

const sudo = process.getuid?.() === 0 ? [] : ['sudo', '-n']

/** Runs a command as root, without a password prompt; returns whether it succeeded. */
export function runAsRoot(...command: readonly string[]): boolean {
  const [program, ...args] = [...sudo, ...command] as [string, ...string[]]
  try {
    execFileSync(program, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
