import type { Derived, Knowledge, Tokens } from '../domain/entry.ts'
import type { Origin } from '../domain/ledger.ts'
import type { Hit } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { Gathered } from './gather.ts'

/** Entries that are not the session's own, by where they come from. */
export type Shared = { readonly from: Origin; readonly entries: readonly Derived[] }

/** Whether a profile lets a session see what comes from there; files are the scope's. */
export const isSeen = ({ sees }: Profile, from: Origin): boolean =>
  sees.includes(from === 'person' ? 'person' : 'scope')

/** So many passages are looked for. */
export const mostPassages = 4

/** Whether a passage speaks of the question itself, not only the ones beside it, and at least half as much as the best. */
const isTelling = ({ score, why }: Hit, best: Hit): boolean => why.words !== 0 && 2 * score >= best.score

/**
 * What was found in files as knowledge without a key, which is shown as `[handbook.pdf] …`. The id of a passage must not pass
 * for that of a message of the session.
 */
export const passagesOf = (hits: readonly Hit[]): readonly Knowledge[] =>
  hits.flatMap((hit) => {
    const { entry } = hit
    if (entry.kind !== 'message' || !isTelling(hit, hits[0] as Hit)) return []
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
 * What was gathered, with passages for the band that shows knowledge, out of its share. They are read just before the newest
 * turn, because each question finds others, and need no heading: each says where it comes from.
 */
export function withPassages(gathered: Gathered, entries: readonly Derived[], budget: Tokens): Gathered {
  if (entries.length === 0) return gathered
  const known = gathered.wishes.find(({ band: { claim } }) => 'kind' in claim && claim.kind === 'knowledge')?.band
  if (known === undefined) return gathered
  const { heading: _, ...band } = known
  const origins = new Map([...gathered.origins, ...entries.map((entry) => [entry, 'files'] as const)])
  const passages = {
    band: { ...band, volatile: true, patience: mostPassages },
    units: [],
    derived: entries,
    limit: budget,
    shorter: [],
  }
  return { ...gathered, derived: [...gathered.derived, ...entries], origins, passages }
}
