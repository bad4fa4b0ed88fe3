import type { IncomingHttpHeaders } from 'node:http'
import type { Millis } from '../../domain/entry.ts'
import { Refusal } from '../http/httpError.ts'
import type { Credential } from './credential.ts'
import type { Credentials } from './credentials.ts'
import { presented } from './identity.ts'

const wanted = { headers: { 'www-authenticate': 'Bearer' } }

/**
 * Who asks: the holder of a good key, or `undefined` where no keys are asked for. Why a key is refused, whether it is
 * unknown, expired or revoked, is not told.
 */
export function admit(
  credentials: Credentials | undefined,
  headers: IncomingHttpHeaders,
  now: Millis,
): Credential | undefined {
  if (credentials === undefined || !credentials.isRequired(now)) return undefined
  const key = presented(headers)
  const credential = credentials.check(key, now)
  if (credential !== undefined) return credential
  const message =
    key === undefined
      ? 'A Threadkeep key is missing. Send one as Authorization: Bearer tk_…, or in the header x-api-key or x-threadkeep-api-key.'
      : 'This Threadkeep key is not accepted. Ask whoever runs this server for another one.'
  throw new Refusal(401, 'invalid_api_key', message, null, wanted)
}
