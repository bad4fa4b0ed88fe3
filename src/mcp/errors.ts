import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { type ErrorCode, MemoryError } from '../domain/error.ts'
import { normalizeSecrets } from '../text/secrets.ts'

/** Error as a client sees it, without internal details. */
export type ClientError = { readonly code: ErrorCode | 'internal'; readonly message: string }

/** Codes whose messages concern the operator and may name local paths. */
const internalCodes: ReadonlySet<ErrorCode> = new Set(['corrupt', 'bad-store', 'bad-secret', 'closed'])

/** Store failures name the store's file. `full` and `not-durable` without a cause come from a profile limit instead. */
const isStoreFailure = ({ code, cause }: MemoryError): boolean =>
  code === 'busy' || ((code === 'full' || code === 'not-durable') && cause !== undefined)

/** Converts an error for a client. The message of an unexpected error is hidden, because it may contain anything. */
export function toClientError(error: unknown): ClientError {
  if (error instanceof MemoryError && isStoreFailure(error))
    return {
      code: error.code,
      message: `The store failed (${error.code}); the data may not be stored. Try again in a moment.`,
    }
  if (error instanceof MemoryError && !internalCodes.has(error.code))
    return { code: error.code, message: normalizeSecrets(error.message) }
  const code = error instanceof MemoryError ? error.code : 'internal'
  return {
    code,
    message: `Internal error in Threadkeep (${code}). Try again; the server's log or standard error has the details.`,
  }
}

/** True if the operator should be notified of an error. */
export const isServerError = (error: unknown): boolean =>
  !(error instanceof ProtocolError) &&
  (!(error instanceof MemoryError) || internalCodes.has(error.code) || isStoreFailure(error))

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
