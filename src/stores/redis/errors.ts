import { MemoryError } from '../../domain/error.ts'

/** Replies that stop once Redis has finished something else. */
const passing = /^(BUSY|LOADING|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|NOREPLICAS|MOVED|ASK|UNBLOCKED)/

/** True for an error that Redis itself has sent: the command was not executed. */
export const isErrorReply = (error: unknown): error is Error => error instanceof Error && /^[A-Z]+ /.test(error.message)

/** Converts an error of the connection. Its own text is quoted only in part: Redis repeats arguments of commands. */
export function toMemoryError(error: unknown, address: string): MemoryError {
  if (error instanceof MemoryError) return error
  const message = error instanceof Error ? error.message : ''
  if (message.startsWith('OOM'))
    return new MemoryError(
      'disk-full',
      `Redis at ${address} has reached its maxmemory; nothing was stored. Raise maxmemory, or end sessions. Reading still works.`,
    )
  if (/^(NOAUTH|WRONGPASS|NOPERM)/.test(message))
    return new MemoryError(
      'bad-store',
      `Redis at ${address} refused the user, password or token, or does not let the user run a command that Threadkeep needs. Correct the URL, or the user's permissions.`,
    )
  if (message.startsWith('MISCONF'))
    return new MemoryError(
      'bad-store',
      `Redis at ${address} refuses writes because it cannot save to disk. Turn persistence off: CONFIG SET save "".`,
    )
  if (message.startsWith('READONLY'))
    return new MemoryError(
      'busy',
      `Redis at ${address} is a read-only replica; nothing was stored. Connect to the primary server, or use redis+sentinel: or redis+cluster: to follow it.`,
    )
  if (isErrorReply(error) && !passing.test(message))
    return new MemoryError(
      'bad-store',
      `Redis at ${address} rejected a command: ${message.split(/[,:]/, 1)[0]}. Check the URL, and the version and settings of Redis.`,
    )
  const reason = describeReason(error)
  return new MemoryError(
    'busy',
    `Redis at ${address} cannot be reached (${reason}); the request may not be stored. Check that it runs, and that redis: or rediss: fits its port, and try again.`,
  )
}

function describeReason(error: unknown): string {
  if (!(error instanceof Error)) return 'no connection'
  const { code } = error as NodeJS.ErrnoException
  const cause = (error.cause as NodeJS.ErrnoException | undefined)?.code
  return code ?? cause ?? /^[A-Z]+ /.exec(error.message)?.[0].trim() ?? error.message
}
