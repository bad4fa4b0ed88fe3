import { CommanderError } from 'commander'
import { MemoryError } from '../domain/error.ts'

/** An error as a user is told it, with the code the command then ends with. */
export type Failure = {
  readonly code: string
  readonly message: string
  readonly param: string | null
  readonly exit: number
}

/** What the exit codes mean, as every help text says. */
export const exitCodes = 'Exit codes: 0 fine, 1 failed, 2 wrong usage, 130 interrupted.'

const misuse: ReadonlySet<string> = new Set(['bad-key', 'bad-option', 'bad-profile'])
const listening: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use. Stop what listens there, or choose another with --port (0 takes a free one).',
  EACCES: 'may not be listened on. Choose a port from 1024 on with --port.',
  EADDRNOTAVAIL: 'cannot be listened on: this machine has no such address. Choose another with --host.',
  ENOTFOUND: 'cannot be listened on: nobody knows this host. Choose another with --host.',
}

/** One line for the user, never a stack trace. An empty message means that all has been said already. */
export function failureOf(error: unknown): Failure {
  if (error instanceof CommanderError) return usage(error)
  if (error instanceof MemoryError)
    return {
      code: error.code,
      message: error.message,
      param: error.param ?? null,
      exit: misuse.has(error.code) ? 2 : 1,
    }
  if (!(error instanceof Error)) return { code: 'internal', message: 'Something went wrong.', param: null, exit: 1 }
  const {
    code = 'internal',
    address,
    hostname,
    port,
  } = error as Error & { code?: string; address?: string; hostname?: string; port?: number }
  const known = Object.hasOwn(listening, code) ? listening[code] : undefined
  if (known === undefined) return { code, message: oneLine(error.message), param: null, exit: 1 }
  const at = port === undefined ? `Host ${hostname ?? address}` : `Port ${port} of ${address}`
  return {
    code,
    message: `${at} ${known}`,
    param: code === 'EADDRINUSE' || code === 'EACCES' ? 'port' : 'host',
    exit: 1,
  }
}

function usage(error: CommanderError): Failure {
  const said = error.exitCode === 0 || error.code === 'commander.help'
  const message = said ? '' : `${oneLine(error.message.replace(/^error: /, ''))} (threadkeep --help tells more)`
  return { code: 'usage', message, param: null, exit: error.exitCode === 0 ? 0 : 2 }
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()
