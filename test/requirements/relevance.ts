import type { Row } from './row.ts'

const source = 'Threadkeep'

export const relevance: readonly Row[] = [
  {
    id: 'K-01',
    source,
    behaviour:
      'Knowledge and files are selected by the question; unrelated ones are not shown. The facts of the session itself are shown while they fit, so that the prompt keeps its beginning. Entries written by an operator never decay; learned ones are archived, not deleted.',
    status: 'kept',
    in: ['src/context/chooseByQuestion.ts', 'src/memory/knowledge.ts', 'src/upkeep/confidence.ts'],
  },
  {
    id: 'K-02',
    source,
    behaviour:
      'The budget is used: while an unshown entry would fit, at least 90 % of min(budget, history) is spent. Every ledger reason is true. Settled: up to its threshold of 3,000 tokens, `summary` makes the prompt small on purpose (C-03).',
    status: 'kept',
    in: ['src/context/allocateBudget.ts', 'src/context/sessionReader.ts', 'src/profiles/shared.ts'],
  },
  {
    id: 'K-03',
    source,
    behaviour:
      'A new value for the same slot supersedes the old one, for facts, preferences and decisions alike. Quoted, pasted and reported speech yields no facts.',
    status: 'kept',
    in: [
      'src/upkeep/extract/slots.ts',
      'src/upkeep/extract/merge.ts',
      'src/upkeep/extract/ownText.ts',
      'src/upkeep/remind.ts',
    ],
  },
  {
    id: 'K-04',
    source,
    behaviour:
      'Compaction has hysteresis: at most one per (high − low) tokens of new text, whatever the message sizes.',
    status: 'kept',
    in: ['src/upkeep/plan.ts', 'src/upkeep/perform.ts'],
  },
  {
    id: 'K-05',
    source,
    behaviour:
      'A faithful model summary is accepted, after trimming, repair or one more request; an unfaithful or empty one never is.',
    status: 'kept',
    in: [
      'src/upkeep/verify.ts',
      'src/upkeep/draft.ts',
      'src/upkeep/prompts.ts',
      'src/upkeep/summarise/modelText.ts',
      'src/upkeep/summarise/claims.ts',
      'src/upkeep/summarise/contradictions.ts',
      'src/text/values.ts',
    ],
  },
  {
    id: 'K-06',
    source,
    behaviour:
      'Recall ranks passages, not only whole messages, and statements above questions. It beats BM25 with dates and neighbours, and the clipped window, on every measured set and budget.',
    status: 'kept',
    in: ['src/search/ranking.ts', 'src/search/features.ts', 'src/text/passages.ts', 'data/word-table.bin'],
  },
]
