import type { Millis } from '../domain/entry.ts'
import type { Key } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import { isUserSession, selectExcessSessions } from '../domain/session.ts'
import type { SecretMasker } from '../memory/secretMasker.ts'

type SweepDeps = { readonly sessions: Store; readonly profile: Profile; readonly masker: SecretMasker | undefined }

/**
 * Erases expired sessions and the oldest ones above the limit, for memories without a lifecycle. Sends no end events.
 */
export async function sweepSessions({ sessions, profile, masker }: SweepDeps, now: Millis): Promise<readonly Key[]> {
  const limit = Number.MAX_SAFE_INTEGER
  const expired = (await sessions.list({ expiredBy: now, limit })).map((session) => session.key)
  for (const key of expired) await sessions.erase(key, { expiredBy: now })
  const excess = selectExcessSessions((await sessions.list({ limit })).filter(isUserSession), profile.lifetime)
  for (const key of excess) await sessions.erase(key)
  for (const key of [...expired, ...excess]) masker?.drop(key.scope, key.id)
  return [...expired, ...excess]
}
