import type { Derived, Json, Knowledge, Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import { type Category, parseKnowledge } from '../domain/knowledge.ts'
import type { Clock, Store } from '../domain/ports.ts'

/** Something worth knowing in every session of a scope. */
export type Remembered = { readonly category: Category; readonly key: string; readonly value: Json; readonly confidence?: number }

/** Puts knowledge into a scope's own memory, whoever else is writing there. */
export async function remember(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  key: Key,
  given: Remembered,
): Promise<{ readonly entry: Knowledge; readonly epoch: number }> {
  const knowledge = parseKnowledge(given)
  for (;;) {
    const { derived, revision: base, epoch, expiresAt } = await store.head(key, 0)
    const at = clock()
    const isMeant = (known: Derived): known is Knowledge => known.kind === 'knowledge' && known.category === knowledge.category && known.key === knowledge.key
    const entry = believed(knowledge, derived.find(isMeant), { at, id: `k${base + 1}` })
    try {
      await store.commit({ key, at, epoch, base, append: [], put: [entry], drop: [], expiresAt })
      return { entry, epoch }
    } catch (error) {
      // Somebody else was quicker: what they wrote is read again.
      if (!(error instanceof MemoryError && error.code === 'conflict')) throw error
    }
  }
}

/** What is known after it was told, perhaps again. */
function believed(
  { category, key, value, confidence }: Remembered,
  known: Knowledge | undefined,
  fresh: { readonly at: Millis; readonly id: string },
): Knowledge {
  return {
    kind: 'knowledge',
    // An id can be read where the rest is encrypted, so it tells nothing; each revision is there once.
    id: known?.id ?? fresh.id,
    at: fresh.at,
    category,
    key,
    value,
    confidence: confidence ?? (known === undefined ? 0.5 : Math.min(1, known.confidence + 0.1)),
    usedAt: known?.usedAt ?? fresh.at,
    sources: known?.sources ?? [],
  }
}
