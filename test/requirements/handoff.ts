import type { Row } from './row.ts'

const source = 'Session Persistence'

export const handoff: readonly Row[] = [
  {
    id: 'H-01',
    source,
    behaviour:
      'Entities `session`, `conversation`, `context_item` (code, file, data, concept, task; importance 1–10), `file_reference` (path, hash, mtime) and `workspace_state`; the six relationship types.',
    status: 'kept',
    in: ['src/graph/graph.ts', 'src/handoff/rows.ts'],
  },
  {
    id: 'H-02',
    source,
    behaviour: 'The token monitor warns at 75 % of the limit (safety margin 100) and triggers a save.',
    status: 'kept',
    in: ['src/handoff/monitor.ts', 'src/mcp/tools/messages.ts'],
  },
  {
    id: 'H-03',
    source,
    behaviour:
      'Items are prioritised by recency, frequency, specificity, type and user marking (highest); optionally by embedding similarity to the current context. Failures and tasks that were settled later are omitted.',
    status: 'kept',
    in: [
      'src/handoff/save/extract.ts',
      'src/handoff/save/outcomes.ts',
      'src/handoff/item.ts',
      'src/handoff/save/draft.ts',
    ],
  },
  {
    id: 'H-04',
    source,
    behaviour:
      '`save_session`, `restore_session`, `list_sessions`, `get_session`, `delete_session` with the documented parameters and results; restore without an id uses the most recent session of the workspace; a save can keep only what is needed (`keep: needed`) and says what it left out. Settled: every call resolves to exactly one workspace (its argument, else the server\'s `--workspace`, else `default`), and ids of other workspaces are "not found".',
    status: 'kept',
    in: [
      'src/handoff/handoff.ts',
      'src/handoff/save/keepNeeded.ts',
      'src/mcp/tools/sessions.ts',
      'src/mcp/principal.ts',
    ],
  },
  {
    id: 'H-05',
    source,
    behaviour:
      'Restore fits the token budget: items ordered by priority, threshold 3, at most 50 items, passages that answer the query, no text twice, file references resolved (unchanged, changed, missing), hierarchical summaries, the new session linked by `SESSION_CONTINUES`, the workspace state returned.',
    status: 'kept',
    in: ['src/handoff/restore/restore.ts', 'src/handoff/render/render.ts', 'src/handoff/fileReferences.ts'],
  },
  {
    id: 'H-06',
    source,
    behaviour:
      '`upsert_entity`, `create_relationship`, `query_entities`, `query_relationships` with filters, sort, limit, offset and totals.',
    status: 'kept',
    in: ['src/graph/sqlite/graph.ts', 'src/graph/query.ts', 'src/mcp/tools/graph.ts'],
  },
  {
    id: 'H-07',
    source,
    behaviour:
      'The documented directory layout is an export and import format (`metadata.json`, `entities.json`, `relationships.json` per session; shared file references), compressed by default.',
    status: 'kept',
    in: ['src/handoff/layout/layout.ts'],
  },
  {
    id: 'H-08',
    source,
    behaviour:
      'Retention 30 days; storage directory and summarising configurable; incremental updates (only changed entities are written); lazy loading; caching; long work in the background with progress.',
    status: 'kept',
    in: ['src/handoff/retention.ts', 'src/handoff/settings.ts', 'src/handoff/save/save.ts', 'src/graph/plan.ts'],
  },
  {
    id: 'H-09',
    source,
    behaviour:
      "Workspaces are isolated; encryption at rest is optional; file paths are checked by real path and separator against an allow-list (the document's `startsWith` lets `/app-evil` through for `/app`); allow-lists per user; an append-only audit log records every file operation, allowed or refused, with its user.",
    status: 'kept',
    in: [
      'src/mcp/files/fileAccess.ts',
      'src/mcp/files/audit.ts',
      'src/mcp/principal.ts',
      'src/graph/cipher.ts',
      'src/stores/encrypted.ts',
    ],
  },
  {
    id: 'H-10',
    source,
    behaviour: '`write_file` is off unless configured; `create_directory` works only under allowed directories.',
    status: 'kept',
    in: ['src/mcp/files/fileAccess.ts', 'src/mcp/tools/files.ts'],
  },
  {
    id: 'H-11',
    source,
    behaviour:
      'On a storage failure the data stays in memory and is retried; the result is `degraded: not durable`, never "saved". A corrupt session is skipped with a warning; a missing memory server degrades the result; older formats are migrated, newer ones refused; concurrent writers lose no updates.',
    status: 'kept',
    in: ['src/handoff/pendingWrites.ts', 'src/handoff/layout/read.ts', 'src/graph/plan.ts'],
  },
  {
    id: 'H-12',
    source,
    behaviour:
      'Budget split: 60 % code, 30 % conversation and 10 % metadata when there is code; otherwise 70 % conversation and 30 % metadata.',
    status: 'kept',
    in: ['src/profiles/handoff.ts', 'src/context/allocateBudget.ts', 'src/handoff/render/budget.ts'],
  },
  {
    id: 'H-13',
    source,
    behaviour:
      'Adaptive compression: white space, then comments, then section summaries, stopping at the first result that fits.',
    status: 'kept',
    in: [
      'src/profiles/handoff.ts',
      'src/handoff/render/budget.ts',
      'src/text/compress.ts',
      'src/text/selectSentences.ts',
    ],
  },
  {
    id: 'H-14',
    source,
    behaviour:
      'Preservation is measured (similarity of wording and fact survival of restored against what could be shown), and weights adapt when a type averages under 0.8. Settled: weights are bounded and normalised.',
    status: 'kept',
    in: ['src/handoff/restore/preservation.ts'],
  },
  {
    id: 'H-15',
    source,
    behaviour: 'Other MCP servers can be configured as context providers, called on save and restore with timeouts.',
    status: 'kept',
    in: ['src/mcp/providers/providers.ts'],
  },
  {
    id: 'H-16',
    source,
    behaviour:
      'A parametrised test bench (size × type × compression × algorithm) generates, serialises, restores and compares sessions, and reports with plots.',
    status: 'kept',
    in: ['src/evaluation/lab/lab.ts', 'src/evaluation/lab/report.ts', 'src/evaluation/generate/generate.ts'],
  },
  {
    id: 'H-17',
    source,
    behaviour:
      'Automatic continuation (the most recent matching session is offered to a new one), cross-session references, and context analytics (items kept, used and missed over a chain of sessions).',
    status: 'kept',
    in: ['src/handoff/chain.ts', 'src/handoff/analytics.ts'],
  },
]
