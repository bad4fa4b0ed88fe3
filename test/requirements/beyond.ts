import type { Row } from './row.ts'

const source = 'Threadkeep'

export const beyond: readonly Row[] = [
  {
    id: 'X-01',
    source,
    behaviour:
      "Budget guarantee: for any input and every profile, the context is at most the budget by the exact tokenizer (in a browser, by a safe upper bound) and contains the newest user turn, shortened if necessary; otherwise a typed error names the minimum. The documents' estimators (E-11, A-04) can be selected by name and verify the documents' own figures; the guarantee does not depend on them.",
    status: 'kept',
    in: ['src/context/allocateBudget.ts', 'src/text/upperBound.ts'],
  },
  {
    id: 'X-02',
    source,
    behaviour:
      'Receipt: every context has a ledger that lists each entry (or run of entries) exactly once, with verdict, tokens and reason; the total spent is the sum of the lines and at least the exact count; building a context writes nothing, and identical inputs give identical bytes (use is counted with the reply; recency is relative to the newest entry). `replay(trace, otherProfile)` shows the difference.',
    status: 'kept',
    in: ['src/context/receipt.ts', 'src/context/replay.ts'],
  },
  {
    id: 'X-03',
    source,
    behaviour:
      "Provider validity: after any trimming, recall, compaction, deletion or resume the message list is accepted by OpenAI's and Anthropic's rules (tool calls with their results, roles, no empty content).",
    status: 'kept',
    in: ['src/context/render.ts', 'src/context/anthropic.ts'],
  },
  {
    id: 'X-04',
    source,
    behaviour:
      'Verified compaction: a summary is committed only if the URLs, paths, identifiers, numbers and negated constraints it must cover are covered, it introduces no unseen identifier, and it is shorter; otherwise the built-in summary is used. A loss ledger names the omitted items.',
    status: 'kept',
    in: ['src/upkeep/verify.ts', 'src/upkeep/draft.ts'],
  },
  {
    id: 'X-05',
    source,
    behaviour:
      'Erase with proof: forgetting a message, a session or a scope removes or re-derives everything derived from it (summaries, facts, vectors, search rows, snapshots, caches), also in the WAL, in free pages and in the unused parts of pages. It returns a receipt, and a tombstone rejects late writers.',
    status: 'kept',
    in: ['src/memory/forget.ts', 'src/upkeep/rederive.ts', 'src/stores/sqlite/wipe/wipeFile.ts'],
  },
  {
    id: 'X-06',
    source,
    behaviour:
      'Non-interference: contexts and results of scope A are byte-identical with and without scope B in the store, ranking statistics included.',
    status: 'kept',
    in: ['src/search/storeSearch.ts', 'src/search/ranking.ts', 'src/stores/sqlite/read.ts'],
  },
  {
    id: 'X-07',
    source,
    behaviour:
      'Exactly once: with operation ids, a sequence per session and compare-and-set, the surviving messages equal the acknowledged ones across processes, retries and `kill -9`.',
    status: 'kept',
    in: ['src/stores/sqlite/write.ts', 'src/stores/sqlite/batchWriter.ts', 'src/stores/sqlite/writeQueue.ts'],
  },
  {
    id: 'X-08',
    source,
    behaviour:
      "Secret masking: keys, tokens, passwords, card numbers and PEM blocks never reach disk, summariser, embedder or logs. A stable placeholder (numbered by keyed digest) replaces them, in the transcript too. Resent history is compared in masked form. The value stays in RAM, for its session only, and is sent to the user's own model in prompts of that session.",
    status: 'kept',
    in: ['src/memory/secretMasker.ts', 'src/memory/secretScan.ts', 'src/text/secrets.ts'],
  },
  {
    id: 'X-09',
    source,
    behaviour:
      "Grounded facts and echo guard: each fact cites a message and a span; recalled text, system text and tool results never become a user's fact.",
    status: 'kept',
    in: ['src/upkeep/extract/ground.ts', 'src/upkeep/extract/extract.ts'],
  },
  {
    id: 'X-10',
    source,
    behaviour: 'Supersession: a changed value supersedes the old one, which remains queryable as of a time.',
    status: 'kept',
    in: ['src/upkeep/extract/merge.ts'],
  },
  {
    id: 'X-11',
    source,
    behaviour:
      'Stable prefix: between compactions the serialised prompt is append-only up to a declared boundary, so provider prompt caches hit; the receipt reports the cacheable share.',
    status: 'kept',
    in: ['src/profiles/thread.ts', 'src/context/gatherCandidates.ts', 'src/context/composeContext.ts'],
  },
  {
    id: 'X-12',
    source,
    behaviour: 'Portable bundle: export, import, export is byte-equal across stores, and a flipped bit is detected.',
    status: 'kept',
    in: ['src/portable/export.ts', 'src/portable/import.ts', 'src/portable/chain.ts', 'src/portable/encrypt.ts'],
  },
]
