import { CommanderError } from 'commander'
import { MemoryError } from '../domain/error.ts'
import { normalizeSecrets } from '../text/secrets.ts'
import { UsageError } from './terminal/help.ts'
import { interruptedExitCode } from './terminal/interrupt.ts'
import { toSingleLine } from './terminal/output.ts'

/** An error as the command reports it, with the exit code of the process. */
export type CliError = {
  readonly code: string
  readonly message: string
  readonly param: string | null
  readonly exitCode: number
}

const usageErrorCodes: ReadonlySet<string> = new Set(['bad-key', 'bad-option', 'bad-profile'])
const listenErrors: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use. Stop the process that listens there, or choose another port with --port (0 for a free port).',
  EACCES: 'requires more privileges. Choose a port from 1024 up with --port.',
  EADDRNOTAVAIL: 'is not an address of this machine. Choose another with --host.',
  ENOTFOUND: 'cannot be resolved. Choose another with --host.',
}

/**
 * Converts any error to one line for the user, never a stack trace. The message is empty when Commander has printed the
 * help already. Secrets in it are masked: an argument may contain one, and standard error is often logged.
 */
export function toCliError(error: unknown): CliError {
  const { message, ...details } = describeError(error)
  return { ...details, message: normalizeSecrets(message) }
}

function describeError(error: unknown): CliError {
  if (error instanceof CommanderError) return toUsageError(error)
  if (error instanceof MemoryError)
    return {
      code: error.code,
      message: error.message,
      param: error.param ?? null,
      exitCode: usageErrorCodes.has(error.code) ? 2 : error.code === 'aborted' ? interruptedExitCode : 1,
    }
  if (!(error instanceof Error)) return { code: 'internal', message: 'Internal error.', param: null, exitCode: 1 }
  const {
    code = 'internal',
    address,
    hostname,
    port,
  } = error as Error & { code?: string; address?: string; hostname?: string; port?: number }
  const listenError = Object.hasOwn(listenErrors, code) ? listenErrors[code] : undefined
  if (listenError === undefined) return { code, message: toSingleLine(error.message), param: null, exitCode: 1 }
  const subject = port === undefined ? `Host ${hostname ?? address}` : `Port ${port} of ${address}`
  return {
    code,
    message: `${subject} ${listenError}`,
    param: code === 'EADDRINUSE' || code === 'EACCES' ? 'port' : 'host',
    exitCode: 1,
  }
}

function toUsageError(error: CommanderError): CliError {
  const isPrinted = error.exitCode === 0 || error.code === 'commander.help'
  const problem = toSingleLine(error.message.replace(/^error: /, '')).replace(/\.$/, '')
  const command = error instanceof UsageError ? error.commandPath : 'threadkeep'
  const message = isPrinted ? '' : `${problem}. See ${command} --help.`
  return { code: 'usage', message, param: null, exitCode: error.exitCode === 0 ? 0 : 2 }
}
