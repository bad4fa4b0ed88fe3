import type { Row } from './row.ts'

const source = 'BrowserOS memory system'

export const agent: readonly Row[] = [
  {
    id: 'A-01',
    source,
    behaviour: 'SQLite stores short-term and long-term entries, cross-session knowledge and their vectors.',
    status: 'kept',
    in: ['src/stores/sqlite.ts', 'src/stores/sqlite/schema.ts', 'src/memory/knowledge.ts'],
  },
  {
    id: 'A-02',
    source,
    behaviour:
      'Knowledge categories `domain`, `execution_pattern`, `user_preference`, `website_knowledge`, `error_pattern`. Settled: unique per (scope, category, key); the original has no owner column.',
    status: 'kept',
    in: ['src/memory/knowledge.ts', 'src/domain/knowledge.ts'],
  },
  {
    id: 'A-03',
    source,
    behaviour:
      'Confidence starts at 0.5 or the given value, +0.1 per repeated store, +0.05 per use, at most 1.0; learned entries lose 0.1 when unused for 30 days and are archived below 0.1. Settled: archived instead of deleted; decay applies once per 30 idle days, however often the sweep runs, and repetition by the same session counts once, so a loop cannot inflate it.',
    status: 'kept',
    in: ['src/upkeep/confidence.ts'],
  },
  {
    id: 'A-04',
    source,
    behaviour:
      'Budget 200,000 − 5,000 − 4,096 = 190,904 (`maxShortTermTokens` and the rest configurable); window 30; trigger 0.7; estimate `ceil(length/4)`.',
    status: 'kept',
    in: ['src/profiles/agent.ts', 'src/text/estimators.ts'],
  },
  {
    id: 'A-05',
    source,
    behaviour:
      'Partition: the last 30 whole; older ones whole up to 85 %, compressed (to about 20 %) up to 95 %, otherwise omitted from the prompt.',
    status: 'kept',
    in: ['src/profiles/agent.ts', 'src/context/allocateBudget.ts'],
  },
  {
    id: 'A-06',
    source,
    behaviour:
      "Relevance is scored with the document's signals, clamping and key-fact patterns. Settled: credential-like text raises the relevance of the event, while the secret itself is masked before anything is stored.",
    status: 'kept',
    in: ['src/upkeep/optimizer/triage.ts'],
  },
  {
    id: 'A-07',
    source,
    behaviour:
      "Redundancy is Jaccard ≥ 0.9 on word sets; the older message is marked. Results are exact at near-linear cost (the document's all-pairs scan is quadratic).",
    status: 'kept',
    in: ['src/upkeep/optimizer/redundancy.ts'],
  },
  {
    id: 'A-08',
    source,
    behaviour:
      "Actions compress, drop and promote with the document's conditions. Settled: promote moves the entry to long-term memory, default scores can reach the thresholds, and triage works on memory entries and leaves the transcript unchanged.",
    status: 'kept',
    in: ['src/upkeep/optimizer/triage.ts', 'src/upkeep/optimizer/optimizer.ts'],
  },
  {
    id: 'A-09',
    source,
    behaviour:
      'The fact-preserving compressor: the eight preserved patterns, the three-line output, the batch summary format; text under 200 characters is unchanged. Settled: the number of preserved facts is not limited to five, and compression never destroys the original.',
    status: 'kept',
    in: ['src/text/digest.ts'],
  },
  {
    id: 'A-10',
    source,
    behaviour:
      'The optimizer runs every 2 minutes (host-driven) with the documented rules, ranges and emergency step; its parameters are persisted, restored, and used by triage and by the budget.',
    status: 'kept',
    in: ['src/upkeep/optimizer/optimizer.ts', 'src/context/claimLimits.ts'],
  },
  {
    id: 'A-11',
    source,
    behaviour:
      'Each run stores a snapshot; the last 500 are kept. `GET /learning/optimizer/status` returns the documented fields.',
    status: 'kept',
    in: ['src/upkeep/optimizer/optimizer.ts', 'src/server/http/router.ts'],
  },
  {
    id: 'A-12',
    source,
    behaviour:
      'Persistent sessions: `getOrCreate`, `addMessage`, `compressMessages(olderThan, summary)` which inserts a `[CONTEXT SUMMARY]` message, `delete` with cascade; a cache in front; roles, timestamps, token counts, compressed flag.',
    status: 'kept',
    in: ['src/adapters/persistent-sessions.ts', 'src/stores/sqlite/headCache.ts'],
  },
  {
    id: 'A-13',
    source,
    behaviour:
      'Vector search with cosine similarity over stored Float32 vectors, by text or by a given vector, with a limit. Results include their similarity, are exact by default, and fast at 100,000 vectors.',
    status: 'kept',
    in: [
      'src/search/vectorIndex.ts',
      'src/search/matrix.ts',
      'src/memory/embedding.ts',
      'src/memory/embeddingCache.ts',
    ],
  },
  {
    id: 'A-14',
    source,
    behaviour: "The ten-step data flow of the document's example runs end to end as one test.",
    status: 'kept',
    in: ['src/upkeep/optimizer/optimizer.ts', 'src/upkeep/learn/learn.ts', 'src/memory.ts'],
  },
]
