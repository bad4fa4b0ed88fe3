import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { describeStoreFault, type ErrorCode, MemoryError, shortenMessage } from '../domain/error.ts'
import { normalizeSecrets } from '../text/secrets.ts'

/** Error as a client sees it, without internal details. */
export type ClientError = { readonly code: ErrorCode | 'internal'; readonly message: string }

/** Converts an error for a client. The message of an unexpected error is hidden, because it may contain anything. */
export function toClientError(error: unknown): ClientError {
  if (error instanceof MemoryError)
    return { code: error.code, message: describeStoreFault(error) ?? normalizeSecrets(shortenMessage(error.message)) }
  return {
    code: 'internal',
    message: "Internal error in Threadkeep (internal). Try again; the server's log or standard error has the details.",
  }
}

/** True if the operator should be notified of an error. */
export const isServerError = (error: unknown): boolean =>
  !(error instanceof ProtocolError) && (!(error instanceof MemoryError) || describeStoreFault(error) !== undefined)

/** Runs a request handler and converts its errors to protocol errors. */
export async function withProtocolErrors<T>(onFault: (error: unknown) => void, handle: () => Promise<T>): Promise<T> {
  try {
    return await handle()
  } catch (error) {
    if (error instanceof ProtocolError) throw error
    if (isServerError(error)) onFault(error)
    const { code, message } = toClientError(error)
    throw new ProtocolError(
      isServerError(error) ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams,
      message,
      { code },
    )
  }
}
