import { formatKey, type Key } from '../../domain/key.ts'

/** Explains why a session has no facts, and how to get some. */
export const explainNoFacts = (key: Key, asOf: string | undefined): string =>
  asOf === undefined
    ? `No facts yet: they are extracted when a session has grown. Run "threadkeep upkeep run ${formatKey(key)}" to extract what the user has stated.`
    : `No facts of ${formatKey(key)} were known on ${asOf}.`

/** Explains why a session has no summaries, and how to get one. */
export const explainNoSummaries = (key: Key): string =>
  `No summaries yet: a session is summarised when it has grown. Run "threadkeep upkeep run ${formatKey(key)} --force" to summarise it now.`

/** Explains why there are no sessions. */
export const explainNoSessions = (scope: string | undefined): string =>
  scope === undefined
    ? 'No sessions yet. Start one with "threadkeep chat", or import some with "threadkeep import".'
    : `No sessions in ${scope}. Run "threadkeep sessions list" to see all sessions.`
