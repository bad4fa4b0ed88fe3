import { hash } from 'node:crypto'

/** Gives a session the name it has in logs and spans. */
export type Pseudonym = (key: string) => string

/**
 * Names sessions by a keyed hash, so that lines about one session can be told to belong together while nobody can tell
 * whose they are: ids such as telephone numbers are few enough to try out a plain hash on all of them. The names change
 * with each start unless a secret of one's own is given.
 */
export function pseudonyms(secret: string = crypto.randomUUID()): Pseudonym {
  const prefix = hash('sha256', secret, 'hex')
  // Every request has its session named, and an HMAC takes many times as long. What it guards against, a hash that is
  // gone on with, is no danger to one that is cut short.
  return (key) => hash('sha256', prefix + key, 'base64url').slice(0, 16)
}
