import { execFileSync } from 'node:child_process'

const sudo = process.getuid?.() === 0 ? [] : ['sudo', '-n']

/** Runs a command with the rights of the machine's owner, without asking for a password; whether it went well. */
export function asRoot(...command: readonly string[]): boolean {
  const [program, ...args] = [...sudo, ...command] as [string, ...string[]]
  try {
    execFileSync(program, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
