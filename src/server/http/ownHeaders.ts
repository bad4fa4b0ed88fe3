import type { IncomingHttpHeaders } from 'node:http'
import { describeUnknownName } from '../../domain/checkOptions.ts'
import { shortenText } from '../../domain/error.ts'
import { HttpError } from './httpError.ts'

const prefix = 'x-threadkeep-'

/** Request headers of this server. */
const ownHeaders: readonly string[] = ['api-key', 'body', 'history', 'key', 'person', 'store', 'template'].map(
  (name) => prefix + name,
)

/** Throws 400 for an unknown `x-threadkeep-…` header: a misspelt one must not be ignored. */
export function checkOwnHeaders(headers: IncomingHttpHeaders): void {
  for (const name in headers) {
    if (!name.startsWith(prefix) || ownHeaders.includes(name)) continue
    const message = `Unknown header ${describeUnknownName(name, ownHeaders)}`
    throw new HttpError(400, 'unknown_header', message, shortenText(name, 40))
  }
}
