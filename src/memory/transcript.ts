import { checkOptions, type OptionChecks } from '../domain/checkOptions.ts'
import type { Message } from '../domain/entry.ts'
import { integerAtLeast, trueOrFalse } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import type { Clock, Store } from '../domain/ports.ts'
import { isExpired } from '../domain/session.ts'
import type { Lifecycle } from '../lifecycle/lifecycle.ts'

/** Options of `transcript`. */
export type TranscriptOptions = {
  /** Returns messages with a higher sequence number; default 0. */
  readonly after?: number
  /** Maximum number of messages; default unlimited. */
  readonly limit?: number
  /** Returns the newest messages instead of the oldest; default false. */
  readonly newest?: boolean
}

const transcriptOptionChecks: OptionChecks<TranscriptOptions> = {
  after: integerAtLeast(0),
  limit: integerAtLeast(0),
  newest: trueOrFalse,
}

/** Reads the messages of a session that has not expired. */
export async function readTranscript(
  { sessions, clock }: { readonly sessions: Store; readonly clock: Clock },
  lifecycle: Lifecycle | undefined,
  key: Key,
  options: TranscriptOptions,
): Promise<readonly Message[]> {
  checkOptions<TranscriptOptions>('transcript', options, transcriptOptionChecks)
  const { after = 0, limit = Number.MAX_SAFE_INTEGER, newest = false } = options
  const isTail = newest && after === 0
  const head = await sessions.readHead(key, isTail ? limit : 0)
  if (isExpired(head, clock())) return []
  await lifecycle?.refresh(head)
  return isTail ? head.recent : sessions.readMessages(key, { after, limit, newest })
}
