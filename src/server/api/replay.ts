import type { Profile } from '../../domain/profile.ts'
import { profiles } from '../../profiles/index.ts'
import { HttpError } from '../http/httpError.ts'
import { type Handlers, type RequestContext, sendJson } from '../http/requestContext.ts'
import type { ServerContext } from '../serverContext.ts'
import { type SessionAccess, sessionHandler } from './access.ts'
import { invalidParameter } from './input.ts'
import { readContextOptions } from './transcript.ts'

/** Longest session that is replayed: the work is done in one piece. */
const maxReplayedMessages = 2_000

/** The present context of a session under another profile. */
export const replayRoutes: Handlers = {
  'GET /api/sessions/{key}/replay': sessionHandler(['profile', 'query', 'budget'], replaySession),
}

async function replaySession(context: RequestContext, session: SessionAccess): Promise<void> {
  const { key, memory, head } = session
  const profile = readProfile(context)
  if (head.messages > maxReplayedMessages) {
    const message = `The session has ${head.messages} messages; at most ${maxReplayedMessages} can be replayed here. Use threadkeep replay.`
    throw new HttpError(400, 'too_many_messages', message, 'key')
  }
  const trace = await memory.trace(key, readContextOptions(context, session))
  const { messages, text, ledger, differences } = memory.replay(trace, profile)
  sendJson(context.client.response, 200, { messages, text, ledger, was: trace.ledger, differences })
}

/** Profiles by name: the built-in ones, and those of the configuration. */
export const knownProfiles = ({ memories }: ServerContext): ReadonlyMap<string, Profile> =>
  new Map<string, Profile>([
    ...Object.entries(profiles),
    ...memories.all().map(({ profile }): [string, Profile] => [profile.name, profile]),
  ])

function readProfile({ server, query }: RequestContext): Profile {
  const name = query.get('profile') ?? ''
  const known = knownProfiles(server)
  const profile = known.get(name)
  if (profile !== undefined) return profile
  throw invalidParameter('profile', name, `one of ${[...known.keys()].join(', ')}`)
}
