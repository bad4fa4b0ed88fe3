import type { Row } from './row.ts'

const source = 'Ephemeral Session Memory Design'

export const tenants: readonly Row[] = [
  {
    id: 'T-01',
    source,
    behaviour:
      'A key is `{base_tenant}:{session_id}`, split at the first colon. A key without a colon names the tenant itself.',
    status: 'kept',
    in: ['src/domain/key.ts', 'src/server/http/router.ts'],
  },
  {
    id: 'T-02',
    source,
    behaviour:
      '`POST /v1/{key}/chat/completions` is OpenAI-compatible, streaming and not. Any OpenAI client works by changing its base URL.',
    status: 'kept',
    in: ['src/server/modelRoutes.ts', 'src/server/turn/handleTurn.ts', 'src/server/protocols/chat.ts'],
  },
  {
    id: 'T-03',
    source,
    behaviour:
      "The tenant's memory (knowledge, policies, files) persists; a session's memory (profile `support`) is ephemeral and enters the tenant's store only when it is promoted explicitly; preferences and user context are facts of the session (the original leaks sessions of more than five messages into it).",
    status: 'kept',
    in: ['src/open.ts', 'src/profiles/support.ts', 'src/cli/serve.ts'],
  },
  {
    id: 'T-04',
    source,
    behaviour:
      "Tier 1: the last 20–30 messages whole. Tier 2: hourly summaries (1–24 h). Tier 3: one session summary beyond 24 h. `max_recent` 20, `summarize_after` 30. Settled: a batch of 20 is summarised into its hour's bucket as soon as the 30 newest messages lie after it, so 30–49 messages stay whole. A summary has at most 20 % of the tokens it replaces.",
    status: 'kept',
    in: ['src/upkeep/plan.ts', 'src/profiles/support.ts'],
  },
  {
    id: 'T-05',
    source,
    behaviour: 'Summarising is asynchronous and never delays the reply. Tenant and session are searched in parallel.',
    status: 'kept',
    in: ['src/upkeep/scheduler.ts', 'src/memory/search.ts'],
  },
  {
    id: 'T-06',
    source,
    behaviour:
      'A session is created on its first request. Its TTL of 24 h is refreshed on each access (a turn, context, transcript or search of the session, exact to a thousandth of the TTL); its maximum age is 7 days. Expiry is detected on access and by a sweep that costs O(expired), not O(sessions).',
    status: 'kept',
    in: ['src/lifecycle/lifecycle.ts', 'src/stores/ram/sessionCache.ts', 'src/domain/session.ts'],
  },
  {
    id: 'T-07',
    source,
    behaviour:
      '`on_session_end(fullId, { messages, summaries, createdAt, lastAccessed, messageCount })` is called exactly once per session, on expiry, eviction or explicit end, before the data is deleted. A callback that throws or hangs loses no data and blocks no request. Over HTTP it is a signed webhook. Settled: exactly once across a kill holds for durable and Redis sessions; the outbox of RAM sessions is in RAM too and is lost with them.',
    status: 'kept',
    in: [
      'src/lifecycle/sessionEnd.ts',
      'src/lifecycle/outbox.ts',
      'src/lifecycle/delivery.ts',
      'src/server/webhooks/webhook.ts',
    ],
  },
  {
    id: 'T-08',
    source,
    behaviour:
      'Options with these defaults: session memory on, TTL 24 h, 100 messages in working memory, summarise after 30, 10 MB per session, end callback. Settled: a context may show the newest 100 messages while nothing is summarised; 1,000 messages is the hard limit of a session; a global byte budget (512 MB by default) limits the process.',
    status: 'kept',
    in: [
      'src/profiles/support.ts',
      'src/lifecycle/lifecycle.ts',
      'src/stores/ram/sessionCache.ts',
      'src/server/config/schema.ts',
    ],
  },
  {
    id: 'T-09',
    source,
    behaviour:
      'Uploads to a session are refused with HTTP 400 `File uploads not allowed for ephemeral sessions`, whether sent as an upload, a file part or a `data:` URL, in profiles that say so (`ephemeral`, `support`). Changed: other profiles pass documents to the model verbatim and store a placeholder with name, type, size and hash. Settled: image and audio parts are conversation in every profile: they are passed to the model and stored as a placeholder with hash and size.',
    status: 'kept',
    in: ['src/server/turn/handleTurn.ts', 'src/server/protocols/request.ts', 'src/files/files.ts'],
  },
  {
    id: 'T-10',
    source,
    behaviour:
      'Files of a tenant can be uploaded, listed and deleted, and are chunked and indexed: text, Markdown, HTML, JSON, CSV, PDF and DOCX. They are stored under the tenant only.',
    status: 'kept',
    in: ['src/files/files.ts', 'src/files/parseFile.ts', 'src/files/chunk.ts', 'src/server/api/files.ts'],
  },
  {
    id: 'T-11',
    source,
    behaviour:
      'Session ids match `^[\\w+\\-.@]+$` and have 1–128 characters. Settled: the tenant part is validated the same way (1–64 characters); `.`, `..`, `__proto__`, `constructor` and `prototype` are refused; look-alike and zero-width characters are refused, not normalised.',
    status: 'kept',
    in: ['src/domain/key.ts', 'src/server/auth/identity.ts'],
  },
  {
    id: 'T-12',
    source,
    behaviour:
      'Limits of the `support` profile, each configurable: 1,000 messages, 10 MB, 7 days, 100 sessions per tenant. The effect of a limit (evict the least recently used, or refuse) is documented, and refusals have the OpenAI error shape.',
    status: 'kept',
    in: ['src/profiles/support.ts', 'src/lifecycle/lifecycle.ts'],
  },
  {
    id: 'T-13',
    source,
    behaviour:
      "Retrieval merges both memories: the session has precedence for recent events, the tenant supplies domain knowledge. Settled: precedence is tested (the original's sort cut session rows first).",
    status: 'kept',
    in: ['src/memory/contextBuilder.ts', 'src/context/gatherCandidates.ts'],
  },
  {
    id: 'T-14',
    source,
    behaviour:
      'Recall can be filtered by a date range. Phrases such as "yesterday", "last week" or "in March" in a query set the range.',
    status: 'kept',
    in: ['src/text/dates.ts', 'src/memory/contextBuilder.ts', 'src/memory/search.ts'],
  },
  {
    id: 'T-15',
    source,
    behaviour:
      'Settled: a client that resends its whole history each turn, as OpenAI clients do, creates no duplicates: the request is reconciled with the stored messages.',
    status: 'kept',
    in: [
      'src/server/turn/reconcile.ts',
      'src/server/turn/historyAlignment.ts',
      'src/server/turn/messageEquality.ts',
      'src/server/turn/reconcileHistory.ts',
    ],
  },
  {
    id: 'T-16',
    source,
    behaviour: 'A key without a colon behaves exactly as if sessions did not exist. A flag turns session memory off.',
    status: 'kept',
    in: ['src/server/memoryRegistry.ts', 'src/server/turn/handleTurn.ts'],
  },
  {
    id: 'T-17',
    source,
    behaviour:
      'The future work of the document is required: Redis for multiple instances, session transfer between channels, conversation metrics, TTL per session, session templates.',
    status: 'kept',
    in: [
      'src/stores/redis.ts',
      'src/lifecycle/transfer.ts',
      'src/lifecycle/lifecycle.ts',
      'src/server/turn/storeMessages.ts',
      'src/server/memoryRegistry.ts',
      'src/server/observability/usageStats.ts',
    ],
  },
  {
    id: 'T-18',
    source,
    behaviour: 'At most 1 KB overhead per empty session; at least 10,000 live sessions in one process.',
    status: 'kept',
    in: ['src/stores/ram/sessionTable.ts', 'src/stores/ram/sessionCache.ts'],
  },
]
