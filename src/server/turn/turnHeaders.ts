import type { IncomingHttpHeaders } from 'node:http'
import { HttpError } from '../http/httpError.ts'

/** Options of a turn that clients set in headers. */
export type TurnHeaders = {
  /** `x-threadkeep-store: false`: answer with memory, store nothing. */
  readonly storeDisabled: boolean
  /** `x-threadkeep-template`: template to begin a new session with. */
  readonly template: string | undefined
  /** `x-threadkeep-person`: the person speaking, for profiles that read a person's memory. */
  readonly person: string | undefined
  /** The SDKs of OpenAI and Anthropic count their retries in `x-stainless-retry-count`. */
  readonly isRetry: boolean
  /** `x-threadkeep-body: receipt`: add the receipt's id to the response body. */
  readonly addReceiptToBody: boolean
}

/** Reads the headers of a turn; throws for a value of `x-threadkeep-store` other than true or false. */
export const readTurnHeaders = (headers: IncomingHttpHeaders): TurnHeaders => ({
  storeDisabled: isStoreDisabled(headers['x-threadkeep-store']),
  template: readHeader(headers, 'x-threadkeep-template'),
  person: readHeader(headers, 'x-threadkeep-person'),
  isRetry: Number(headers['x-stainless-retry-count'] ?? 0) > 0,
  addReceiptToBody: headers['x-threadkeep-body'] === 'receipt',
})

/** An unclear value is refused: a client that means "do not store" must not be stored. */
function isStoreDisabled(value: string | readonly string[] | undefined): boolean {
  if (value === undefined) return false
  const word = String(value).trim().toLowerCase()
  if (word === 'true' || word === 'false') return word === 'false'
  throw new HttpError(
    400,
    'bad_header',
    `x-threadkeep-store is ${JSON.stringify(word.slice(0, 40))}; it must be true or false.`,
    'x-threadkeep-store',
  )
}

/** Value of a header that occurs once and is not blank. */
export function readHeader(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}
