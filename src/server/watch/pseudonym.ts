import { createHmac, randomBytes } from 'node:crypto'

/** Gives a session the name it has in logs and spans. */
export type Pseudonym = (key: string) => string

/**
 * Names sessions by a keyed hash, so that lines about one session can be told to belong together while nobody can tell
 * whose they are: ids such as telephone numbers are few enough to try out a plain hash on all of them. The names change
 * with each start unless a secret of one's own is given.
 */
export function pseudonyms(secret: string | Uint8Array = randomBytes(32)): Pseudonym {
  return (key) => createHmac('sha256', secret).update(key).digest('base64url').slice(0, 16)
}
