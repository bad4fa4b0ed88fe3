import { crowded, isSession } from '../domain/admission.ts'
import type { Millis } from '../domain/entry.ts'
import type { Key } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { Barrier } from '../memory/secretMasker.ts'

type Means = { readonly sessions: Store; readonly profile: Profile; readonly barrier: Barrier | undefined }

/** Ends sessions that are over, and the oldest ones when there are too many, where there is no lifecycle: nobody is told. */
export async function eraseOver({ sessions, profile, barrier }: Means, now: Millis): Promise<readonly Key[]> {
  const limit = Number.MAX_SAFE_INTEGER
  const over = (await sessions.list({ expiredBy: now, limit })).map((session) => session.key)
  for (const key of over) await sessions.erase(key, { expiredBy: now })
  const others = crowded((await sessions.list({ limit })).filter(isSession), profile.lifetime)
  for (const key of others) await sessions.erase(key)
  for (const key of [...over, ...others]) barrier?.drop(key.scope, key.id)
  return [...over, ...others]
}
