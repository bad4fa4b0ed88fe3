import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { type ErrorCode, MemoryError } from '../domain/error.ts'

/** What a client is told of an error: what to do about it, and nothing of what is inside. */
export type Failure = { readonly code: ErrorCode | 'internal'; readonly message: string }

/** What concerns the machine, and may name its folders, is for whoever runs it. */
const inner: ReadonlySet<ErrorCode> = new Set(['corrupt', 'bad-store', 'bad-secret', 'closed'])

/** A store that failed by itself names its file too; with a limit of the profile, or what waits for it, there is nothing behind it. */
const isOfStore = ({ code, cause }: MemoryError): boolean =>
  code === 'busy' || ((code === 'full' || code === 'not-durable') && cause !== undefined)

/** An error as a client hears it; what nobody foresaw is told without its details, which may hold anything. */
export function failureOf(error: unknown): Failure {
  if (error instanceof MemoryError && isOfStore(error))
    return {
      code: error.code,
      message: `The store failed (${error.code}); nothing is known to be stored. Try again in a moment.`,
    }
  if (error instanceof MemoryError && !inner.has(error.code)) return { code: error.code, message: error.message }
  const code = error instanceof MemoryError ? error.code : 'internal'
  return {
    code,
    message: `Something went wrong inside Threadkeep (${code}). What it writes to its standard error or log tells more; try again.`,
  }
}

/** Whether whoever runs the server should hear of an error. */
export const isFault = (error: unknown): boolean =>
  !(error instanceof ProtocolError) && (!(error instanceof MemoryError) || inner.has(error.code) || isOfStore(error))

/** Answers, or says what went wrong as the protocol does where an answer has no other place for it. */
export async function answering<T>(onFault: (error: unknown) => void, answer: () => Promise<T>): Promise<T> {
  try {
    return await answer()
  } catch (error) {
    if (error instanceof ProtocolError) throw error
    if (isFault(error)) onFault(error)
    const { code, message } = failureOf(error)
    throw new ProtocolError(
      isFault(error) ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams,
      message,
      { code },
    )
  }
}
