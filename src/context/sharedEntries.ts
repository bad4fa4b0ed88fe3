import type { Derived, Knowledge, Tokens } from '../domain/entry.ts'
import type { Origin } from '../domain/ledger.ts'
import type { Hit } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { Gathered } from './gatherCandidates.ts'

/** Entries from outside the session, by origin. */
export type Shared = { readonly from: Origin; readonly entries: readonly Derived[] }

/** True if the profile shows entries of this origin. Files belong to the scope. */
export const isSeen = ({ sees }: Profile, from: Origin): boolean =>
  sees.includes(from === 'person' ? 'person' : 'scope')

/** Passages of files searched per question. */
export const mostPassages = 4

/** True if the passage itself matches the question, not only its neighbours, and scores at least half as high as the best. */
const isRelevant = ({ score, why }: Hit, best: Hit): boolean => why.words !== 0 && 2 * score >= best.score

/**
 * Converts search hits in files to knowledge entries without a key, which render as `[handbook.pdf] …`. The id has a prefix, so
 * that it cannot be confused with a message id of the session.
 */
export const passagesOf = (hits: readonly Hit[]): readonly Knowledge[] =>
  hits.flatMap((hit) => {
    const { entry } = hit
    if (entry.kind !== 'message' || !isRelevant(hit, hits[0] as Hit)) return []
    const { id, at, name = 'file', content: value } = entry
    return [
      {
        kind: 'knowledge',
        id: `files/${id}`,
        at,
        category: name.replace(/\s+/g, ' '),
        key: '',
        value,
        confidence: 1,
        usedAt: at,
        sources: [],
      },
    ]
  })

/**
 * Adds file passages as candidates of the knowledge band, within its limits. They are shown just before the newest turn, because
 * they change with every question, and without a heading, because each names its file.
 */
export function withPassages(candidates: Gathered, entries: readonly Derived[], budget: Tokens): Gathered {
  if (entries.length === 0) return candidates
  const knowledgeBand = candidates.bands.find(
    ({ band: { claim } }) => 'kind' in claim && claim.kind === 'knowledge',
  )?.band
  if (knowledgeBand === undefined) return candidates
  const { heading: _, ...band } = knowledgeBand
  const origins = new Map([...candidates.origins, ...entries.map((entry) => [entry, 'files'] as const)])
  const passages = {
    band: { ...band, volatile: true, patience: mostPassages },
    units: [],
    derived: entries,
    limit: budget,
    shortenedRuns: [],
  }
  return { ...candidates, derived: [...candidates.derived, ...entries], origins, passages }
}
