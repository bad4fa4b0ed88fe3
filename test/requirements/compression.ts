import type { Row } from './row.ts'

const source = 'Memory Management and Compression System'

export const compression: readonly Row[] = [
  {
    id: 'C-01',
    source,
    behaviour:
      "Exact BPE token counts (`cl100k_base`, `o200k_base`, chosen by model name), role and per-message overhead included, equal to OpenAI's tokenizer; an estimate is used if counting fails. Unbroken runs over 4,096 characters may be bounded from above instead of counted, and are flagged. Settled: gpt-4o models use `o200k_base`, not `cl100k_base` as the document says.",
    status: 'kept',
    in: ['src/tokenizers/tokenizers.ts'],
  },
  {
    id: 'C-02',
    source,
    behaviour:
      'Summarise when the prompt exceeds 3,000 tokens. The messages since the last summary are counted, not the whole history (the original pays two model calls on every message past the threshold).',
    status: 'kept',
    in: ['src/upkeep/plan.ts', 'src/profiles/summary.ts'],
  },
  {
    id: 'C-03',
    source,
    behaviour:
      'A keep window of recent messages stays whole, at most 2,500 tokens. Settled: compaction shrinks the prompt to a low-water mark (about 1,000 tokens the first time), so the next one is many messages away.',
    status: 'kept',
    in: ['src/upkeep/plan.ts', 'src/profiles/summary.ts'],
  },
  {
    id: 'C-04',
    source,
    behaviour:
      'The record: `important_data` (`user_preferences`, `key_decisions`, `important_facts`, `source_urls`, `document_structure`, `entities`, `custom_fields`), `conversation_summary`, `summary_version`, `last_summarized_at`, `messages_summarized_count`, `last_keep_window_index`; readable, updatable and clearable through the library and the REST API.',
    status: 'kept',
    in: ['src/upkeep/record.ts', 'src/upkeep/updateRecord.ts', 'src/server/api/transcript.ts'],
  },
  {
    id: 'C-05',
    source,
    behaviour:
      'A model extracts important data (JSON validated against a schema); without a model the built-in rules do. Prompts follow the document. Empty input gives the empty structure.',
    status: 'kept',
    in: ['src/upkeep/extract/extract.ts', 'src/upkeep/draft.ts'],
  },
  {
    id: 'C-06',
    source,
    behaviour:
      'Merge: objects merge by key, arrays are de-duplicated and stay chronological; a newer value for the same preference supersedes the older one, which stays in the history. Keys such as `__proto__` are harmless. Settled: important data has its own token share, so it cannot displace the recent window.',
    status: 'kept',
    in: ['src/upkeep/extract/merge.ts', 'src/profiles/summary.ts'],
  },
  {
    id: 'C-07',
    source,
    behaviour: 'The progressive summary has 100–150, 200–250, 300–350, 400–450, then 500–750 words, by version.',
    status: 'kept',
    in: ['src/upkeep/perform.ts', 'src/upkeep/summarise/summarise.ts'],
  },
  {
    id: 'C-08',
    source,
    behaviour:
      'Summaries are incremental: input is the new messages and the previous summary, never the whole history.',
    status: 'kept',
    in: ['src/upkeep/perform.ts', 'src/upkeep/draft.ts'],
  },
  {
    id: 'C-09',
    source,
    behaviour: "Prompt order: system, important data, summary, recent messages, under the document's headings.",
    status: 'kept',
    in: ['src/profiles/summary.ts', 'src/context/composeContext.ts'],
  },
  {
    id: 'C-10',
    source,
    behaviour: 'Every message is stored and returned to the user in full, whatever the model receives.',
    status: 'kept',
    in: ['src/stores/sqlite/write.ts', 'src/memory.ts'],
  },
  {
    id: 'C-11',
    source,
    behaviour:
      'A model call that fails or times out is retried once; then the built-in summariser is used. An empty summary never replaces the previous one. The reply is still sent. The receipt, the health endpoint and a header report the degradation.',
    status: 'kept',
    in: ['src/upkeep/modelCall.ts', 'src/upkeep/draft.ts', 'src/server/observability/readiness.ts'],
  },
  {
    id: 'C-12',
    source,
    behaviour:
      'Edge cases are handled: a single message larger than the budget, an empty history, a corrupt record (quarantined and rebuilt from the messages), and concurrent summarisation of one session (one wins, no update is lost).',
    status: 'kept',
    in: ['src/upkeep/scheduler.ts', 'src/stores/sqlite/repair.ts'],
  },
  {
    id: 'C-13',
    source,
    behaviour: "All eight scenarios of the document's phase 9 are tests.",
    status: 'kept',
    in: ['src/upkeep/upkeep.ts', 'src/profiles/summary.ts'],
  },
]
