import { isBlank, type Message } from '../domain/entry.ts'
import { metadataOf, type SessionMetadata } from './records.ts'
import { listed, sessionRow } from './sessions.ts'
import type { HandoffParts } from './settings.ts'

/** A session that a new chat may be going on with. */
export type Suggestion = Pick<SessionMetadata, 'sessionId' | 'title' | 'summary' | 'savedAt'> & {
  readonly why: 'most recent' | 'about the same'
}

/** A session that another one speaks of, or that is about the same. */
export type Reference = { readonly session: string; readonly found: 'named' | 'search' }

const most = { hits: 50, named: 20 }
/** A session matches that is found by at least this part of what the best one is found by. */
const near = 0.5

/**
 * The most recent session that matches how a new chat begins, judged by what was said; with nothing to go by, the most
 * recent one.
 *
 * @example
 * (await suggested(parts, 'default', 'Back to the login page: the tests still fail.'))?.sessionId // 'session_1763236000000_1f0c'
 */
export async function suggested(
  parts: HandoffParts,
  workspace: string,
  text: string,
  except: ReadonlySet<string> = new Set(),
): Promise<Suggestion | undefined> {
  if (isBlank(text)) {
    const newest = (await listed(parts, workspace, { limit: 1 + except.size })).sessions.find(
      ({ sessionId }) => !except.has(sessionId),
    )
    return newest === undefined ? undefined : offered(newest, 'most recent')
  }
  const matching = await matched(parts, workspace, text, except)
  const newest = [...matching].sort((left, right) => (left.savedAt < right.savedAt ? 1 : -1))[0]
  return newest === undefined ? undefined : offered(newest, 'about the same')
}

const offered = ({ sessionId, title, summary, savedAt }: SessionMetadata, why: Suggestion['why']): Suggestion => ({
  sessionId,
  title,
  summary,
  savedAt,
  why,
})

/** Saved sessions in which a text is spoken of, the best match first. */
export async function matched(
  parts: HandoffParts,
  workspace: string,
  text: string,
  except: ReadonlySet<string>,
): Promise<readonly SessionMetadata[]> {
  const scores = new Map<string, number>()
  for (const { key, score } of await parts.memory.search(workspace, text, { limit: most.hits, kinds: ['message'] })) {
    const session = key.slice(workspace.length + 1)
    if (session !== '' && !except.has(session)) scores.set(session, (scores.get(session) ?? 0) + score)
  }
  const best = Math.max(0, ...scores.values())
  const ranked = [...scores].filter(([, score]) => score >= near * best).sort(([, left], [, right]) => right - left)
  const rows = await Promise.all(ranked.map(([session]) => sessionRow(parts, workspace, session)))
  return rows.filter((row) => row !== undefined).map(metadataOf)
}

/** Other sessions of the workspace that are named in what was said. */
export async function namedIn(
  parts: HandoffParts,
  workspace: string,
  self: string,
  messages: readonly Pick<Message, 'content'>[],
): Promise<readonly Reference[]> {
  const names = new Set<string>()
  for (const { content } of messages)
    for (const [name] of content.matchAll(/\bsession_[\w+\-.@]*\w/g))
      if (name !== self && name.length <= 128) names.add(name)
  const some = [...names].slice(0, most.named)
  const rows = await Promise.all(some.map((name) => sessionRow(parts, workspace, name)))
  return some.filter((_, at) => rows[at] !== undefined).map((session) => ({ session, found: 'named' }))
}
