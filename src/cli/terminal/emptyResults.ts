import { formatKey, type Key } from '../../domain/key.ts'

/** Masks secrets: a key may contain one. Loaded on demand, so that help appears at once. */
async function mask(text: string): Promise<string> {
  const { normalizeSecrets } = await import('../../text/secrets.ts')
  return normalizeSecrets(text)
}

/** Explains why a session has no facts, and how to get some. */
export const explainNoFacts = (key: Key, asOf: string | undefined): Promise<string> =>
  mask(
    asOf === undefined
      ? `No facts yet: they are extracted when a session has grown. Run "threadkeep upkeep run ${formatKey(key)}" to extract what the user has stated.`
      : `No facts of ${formatKey(key)} were known on ${asOf}.`,
  )

/** Explains why a session has no summaries, and how to get one. */
export const explainNoSummaries = (key: Key): Promise<string> =>
  mask(
    `No summaries yet: a session is summarised when it has grown. Run "threadkeep upkeep run ${formatKey(key)} --force" to summarise it now.`,
  )

/** Explains why there are no sessions. */
export const explainNoSessions = (scope: string | undefined): Promise<string> =>
  mask(
    scope === undefined
      ? 'No sessions yet. Start one with "threadkeep chat", or import some with "threadkeep import".'
      : `No sessions in ${scope}. Run "threadkeep sessions list" to see all sessions.`,
  )

/** Explains why a scope has no knowledge, and how to add some. */
export const explainNoKnowledge = (scope: string): Promise<string> =>
  mask(`No knowledge in ${scope} yet. Add some: threadkeep remember ${scope} 'opening hours' 'nine to five'.`)
