import { Readable } from 'node:stream'
import { vi } from 'vitest'
import { runArguments } from '../../src/cli/run.ts'
import { cleanEnvironment, type ProcessResult } from './command.ts'

/** Commands that run until a signal or write to standard output as a protocol. */
const longRunning: ReadonlySet<string | undefined> = new Set(['serve', 'mcp'])

/** Tells whether a command can run in the process of the test, which saves its start-up. */
export const runsInProcess = (args: readonly string[]): boolean =>
  !longRunning.has(args[0]) || args.includes('--help') || args.includes('-h')

/** Runs a command in this process, as if it were started in a folder with an environment and a standard input. */
export async function runInProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  folder = process.cwd(),
  input = '',
): Promise<ProcessResult> {
  const [before, cwd] = [{ ...process.env }, process.cwd()]
  const stdin = Object.getOwnPropertyDescriptor(process, 'stdin') as PropertyDescriptor
  const interruptListeners = process.listeners('SIGINT')
  let [stdout, stderr] = ['', '']
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation((...call) => {
      stdout += capture(call)
      return true
    }),
    vi.spyOn(process.stderr, 'write').mockImplementation((...call) => {
      stderr += capture(call)
      return true
    }),
  ]
  try {
    process.env = cleanEnvironment(env)
    process.chdir(folder)
    process.exitCode = undefined
    Object.defineProperty(process, 'stdin', { value: Readable.from([Buffer.from(input)]), configurable: true })
    await runArguments(args)
    return { code: Number(process.exitCode ?? 0), stdout, stderr }
  } finally {
    for (const spy of spies) spy.mockRestore()
    Object.defineProperty(process, 'stdin', stdin)
    for (const listener of process.listeners('SIGINT'))
      if (!interruptListeners.includes(listener)) process.off('SIGINT', listener)
    process.exitCode = undefined
    process.chdir(cwd)
    process.env = before
  }
}

/** Returns the text of a call of `write`, and calls its callback. */
function capture(call: readonly unknown[]): string {
  const callback = call.find((argument) => typeof argument === 'function') as (() => void) | undefined
  callback?.()
  const [chunk] = call
  return typeof chunk === 'string' ? chunk : Buffer.from(chunk as Uint8Array).toString('utf8')
}
