import {
  anything,
  flag,
  integer,
  list,
  nullable,
  number,
  object,
  oneOf,
  ref,
  type Schema,
  text,
  time,
} from './schema.ts'

const upstreamTokens = nullable(integer('As reported by the upstream; null when it reports none.'))
const ownTokens = {
  shown: integer('Tokens sent to the model.'),
  history: integer("Tokens of the client's whole conversation, as it would be sent without memory."),
  saved: { type: 'integer', description: '`history` minus `shown`; negative when memory added more than it left out.' },
  cacheable: integer('Tokens at the beginning of the prompt that the previous prompt of the session began with too.'),
}

const health = {
  status: oneOf('Overall status.', 'ok', 'degraded', 'draining', 'unavailable'),
  degraded: list(
    'Degraded parts.',
    object('A degraded part.', {
      part: text('The part.'),
      why: text('The reason.'),
      'code?': text('A stable code, for upkeep.'),
    }),
  ),
}

/** Contexts, receipts, usage, health and errors. */
export const reportSchemas: Readonly<Record<string, Schema>> = {
  Context: object('The context a model would get now.', {
    messages: list("Messages in the format of OpenAI's chat API.", { type: 'object' }),
    text: text('The same context as one text.'),
    ledger: ref('Ledger'),
  }),
  Replay: object('A context under another profile.', {
    messages: list("Messages in the format of OpenAI's chat API.", { type: 'object' }),
    text: text('The same context as one text.'),
    ledger: ref('Ledger'),
    was: ref('Ledger'),
    differences: list(
      'Messages with another verdict.',
      object('A run of messages.', {
        entries: list('Ids of the first and the last message.', text('An id.')),
        count: integer('Number of messages.'),
        was: text('The verdict of the profile of the session.'),
        is: text('The verdict of the other profile.'),
      }),
    ),
  }),
  Ledger: object('Which entries were shown, how and why, in ids and numbers.', {
    profile: text('The profile.'),
    tokenizer: text('The tokenizer that counted.'),
    counted: oneOf('Accuracy of the counts.', 'exact', 'bounded', 'estimated'),
    budget: integer('Token budget.'),
    spent: integer('Tokens used.'),
    history: integer('Tokens of the full history.'),
    due: flag('True when upkeep is due.'),
    cacheable: object('The prefix that the next turn repeats byte for byte.', {
      messages: integer('Its messages.'),
      tokens: integer('Its tokens.'),
    }),
    lines: list('One line per run of entries that were treated alike.', ref('LedgerLine')),
    knowledge: list('Ids of the knowledge that was shown.', text('An id.')),
    degraded: list('Steps that fell back.', ref('Degradation')),
  }),
  LedgerLine: object('A run of entries that were treated alike.', {
    band: text('The part of the context.'),
    entries: nullable(
      list('Ids of the first and the last entry; null for headings and provider overhead.', text('An id.')),
    ),
    count: integer('Number of entries.'),
    verdict: oneOf('How they were rendered.', 'whole', 'shortened', 'covered', 'dropped'),
    tokens: integer('Tokens used.'),
    why: text('The reason.'),
    'from?': oneOf('Their source, when it is not the session itself.', 'scope', 'person', 'files'),
  }),
  Degradation: object('A step that fell back.', {
    step: text('The step.'),
    why: text('The reason.'),
    code: text('A stable code for programs, such as `summary-timeout`.'),
    message: text('What happened and what was used instead.'),
  }),
  DegradationNotice: object('A step that fell back.', {
    code: text('A stable code for programs, such as `summary-timeout`.'),
    message: text('What happened and what was used instead.'),
  }),
  Receipt: object('Explains a reply, in ids and numbers.', {
    id: text('The id, as in the header `x-threadkeep-receipt`.'),
    key: ref('Key'),
    at: time('Time of the reply.'),
    request: text('The `x-request-id` of the request.'),
    response: nullable(text("The upstream's id of the reply.")),
    sequence: nullable(integer('Sequence number of the reply in the transcript.')),
    protocol: oneOf('Protocol of the request.', 'chat', 'responses', 'messages'),
    model: text('The requested model.'),
    upstream: text('The upstream that replied.'),
    relation: text("Relation of the client's messages to the stored ones."),
    history: oneOf('Kind of client.', 'full', 'thin'),
    client: text("Digest of the client's user agent."),
    'resends?': flag('True if the client is known to resend its conversation, false if it is known not to.'),
    'setup?': text('Digest of the instructions, for a reply with tool calls.'),
    'refused?': integer('Status with which the upstream refused the turn.'),
    'isStoredUpstream?': { const: true },
    'isImported?': { const: true },
    'question?': integer('Sequence number of the question of a response that runs in the background.'),
    tokens: object('Token counts.', {
      ...ownTokens,
      cacheableShare: number('Cacheable tokens divided by the tokens sent.'),
      prompt: upstreamTokens,
      completion: upstreamTokens,
      cached: upstreamTokens,
    }),
    cost: nullable(ref('Cost')),
    degraded: list('Steps that fell back.', ref('DegradationNotice')),
    ledger: nullable(ref('Ledger')),
  }),
  UpkeepReceipt: object('Accounts for a call of the upkeep model.', {
    id: text('The id.'),
    key: ref('Key'),
    at: time('Time of the call.'),
    purpose: { const: 'upkeep' },
    model: text('The model.'),
    upstream: text('The upstream that replied.'),
    tokens: object('Token counts, as reported by the upstream or estimated.', {
      prompt: integer('Prompt tokens.'),
      completion: integer('Reply tokens.'),
      cached: integer('Cached prompt tokens.'),
    }),
    cost: nullable(
      object('Cost by the price table; null for a model without a price.', {
        input: number('Cost of the prompt.'),
        output: number('Cost of the reply.'),
        total: number('Total cost.'),
        currency: { const: 'USD' },
        isEstimated: flag('True when the upstream reported no token counts.'),
      }),
    ),
  }),
  StoredReceipt: { anyOf: [ref('Receipt'), ref('UpkeepReceipt')] },
  Cost: object('Cost by the price table; null for a model without a price.', {
    input: number('Cost of the prompt.'),
    output: number('Cost of the reply.'),
    total: number('Total cost.'),
    currency: { const: 'USD' },
    isEstimated: flag('True when the upstream reported no token counts.'),
    saved: nullable(
      number('Cost of the whole history as the prompt minus that of the prompt sent, both without caching.'),
    ),
    cacheDiscount: number('Reduction of the cost by the tokens that the upstream reports as cached.'),
  }),
  Usage: object('Usage of a session or a tenant.', {
    turns: integer('Answered turns.'),
    failed: integer('Failed turns.'),
    tokens: object('Sums over the answered turns.', {
      ...ownTokens,
      prompt: integer('Prompt tokens.'),
      completion: integer('Reply tokens.'),
      cached: integer('Cached prompt tokens.'),
    }),
    latency: nullable(
      object('Mean durations in milliseconds.', { mean: number('Of a turn.'), memory: number('Of its memory part.') }),
    ),
    compression: nullable(number('Tokens sent divided by the tokens of the full history.')),
    cache: object('Cache shares.', {
      cacheable: nullable(number('Share of the sent tokens that can be cached.')),
      cached: nullable(number('Share of the prompt tokens that were cached, as reported by upstreams.')),
    }),
    upkeep: object('Calls of the upkeep model.', {
      calls: integer('Number of calls.'),
      prompt: integer('Prompt tokens.'),
      completion: integer('Reply tokens.'),
      cached: integer('Cached prompt tokens.'),
    }),
    cost: object('Cost by the price table; models without a price add nothing.', {
      turns: number('Of the turns.'),
      upkeep: number('Of the upkeep model.'),
      total: number('Total.'),
      currency: { const: 'USD' },
    }),
  }),
  ForgetResult: object('The deleted entries.', {
    at: time('Time of the deletion.'),
    sessions: list(
      'The affected sessions.',
      object('A session.', {
        key: text('Its key.'),
        entries: list('Ids of deleted entries.', text('An id.')),
        'renewed?': list('Ids of entries that were derived again.', text('An id.')),
      }),
    ),
    'rows?': integer('Deleted rows of the table of the tenant.'),
  }),
  Access: object('Rights of a key.', {
    scopes: list('The tenants it may use; `*` stands for all.', text('A tenant.')),
    isOperator: flag('True if it may use the endpoints for operators.'),
    hasKey: flag('True if the request had a key; false on a server that requires none.'),
    profiles: list('Profiles that a context can be replayed with.', text('A name.')),
    templates: list('Configured templates.', text('A name.')),
  }),
  ImportResult: object('The imported sessions.', {
    sessions: integer('Sessions written.'),
    messages: integer('Messages written.'),
    entries: integer('Derived entries written.'),
    unchanged: integer('Sessions that existed with the same contents.'),
    skipped: list('Existing sessions that were left as they are.', text('A key.')),
    replaced: list('Existing sessions that were replaced.', text('A key.')),
  }),
  ForgetPreview: object('Everything that a deletion would delete.', {
    counts: object('Number of entries by kind.', {
      sessions: integer('Whole sessions.'),
      messages: integer('Messages.'),
      facts: integer('Facts.'),
      summaries: integer('Summaries.'),
      knowledge: integer('Pieces of knowledge.'),
      files: integer('Files.'),
      branches: integer('Branches.'),
      entities: integer('Rows of the graph.'),
      rows: integer('Rows of tables.'),
      other: integer('Other entries.'),
    }),
    sessions: list(
      'The affected sessions.',
      object('A session.', {
        key: text('Its key.'),
        messages: integer('Messages that would go.'),
        facts: integer('Facts that would go.'),
        summaries: integer('Summaries that would go.'),
        first: list('The first messages.', ref('EntryPreview')),
        derived: list('The first facts, summaries and pieces of knowledge.', ref('EntryPreview')),
      }),
    ),
    others: list('Other affected data, in words.', text('A description.')),
  }),
  EntryPreview: object('An entry that would go.', { id: text('Its id.'), text: text('Its kind and text.') }),
  Graph: object('A knowledge graph.', {
    nodes: list(
      'Its nodes.',
      object('A node.', {
        id: text('Its name.'),
        type: text('Its type.'),
        properties: anything('Its properties or observations.'),
        sources: list(
          'Messages it comes from.',
          object('A message.', { session: text('Its session.'), message: text('Its id.') }),
        ),
      }),
    ),
    links: list(
      'Its links.',
      object('A link.', { from: text('A node.'), to: text('A node.'), type: text('Its type.') }),
    ),
    total: integer('Number of all nodes.'),
  }),
  UsageSeries: object('Usage over time.', {
    intervalMs: integer('Length of an interval in milliseconds.'),
    points: list(
      'Intervals with turns, oldest first.',
      object('Sums of an interval.', {
        at: time('Its start.'),
        turns: integer('Answered turns.'),
        failed: integer('Failed turns.'),
        shown: integer('Tokens sent.'),
        saved: number('Tokens of the whole history minus the tokens sent.'),
        cached: integer('Cached prompt tokens, as reported by upstreams.'),
        completion: integer('Reply tokens.'),
        millis: object('Sums of durations.', { total: number('Of turns.'), memory: number('Of their memory part.') }),
        dollars: number('Cost by the price table.'),
      }),
    ),
  }),
  OperationsReport: object('State of the server.', {
    ready: flag('True when it accepts requests.'),
    ...health,
    upstreams: list(
      'Upstreams.',
      object('An upstream.', { name: text('Its name.'), state: text('ok, failing or down.') }),
    ),
    upkeep: list(
      'Upkeep by profile.',
      object('Upkeep of a profile.', {
        profile: text('The profile.'),
        by: text('`builtin`, `nobody` or a model.'),
        running: integer('Running tasks.'),
        done: integer('Finished tasks.'),
      }),
    ),
    steps: list(
      'Latest finished steps of upkeep, newest first.',
      object('A step.', {
        key: ref('Key'),
        at: time('Its end.'),
        step: text('compact, summariseHour, summariseSession, reextractFacts, optimize, learn or adoptTuning.'),
        summaries: integer('Summaries that it wrote.'),
        facts: integer('Facts that it found, including those that were known.'),
        faults: list('What fell back to the built-in rules, in words.', text('A fault.')),
      }),
    ),
    ram: object('Bytes of sessions in RAM.', { used: integer('Used.'), 'limit?': integer('The limit.') }),
    pendingDeliveries: integer('Session ends whose delivery failed and will be retried.'),
  }),
  OptimizerStatus: object('Results of the optimizer.', {
    totalOptimizations: integer('Runs.'),
    totalTokensSaved: integer('Tokens saved.'),
    avgSavingsPerRun: integer('Mean tokens saved per run.'),
    currentParameters: object('Current parameters.', {
      compressionTrigger: number('Budget share at which messages are shortened.'),
      fullMessageWindow: number('Number of recent messages that stay whole.'),
      minRelevance: number('Minimum relevance of kept messages.'),
      targetUsageRatio: number('Target share of the budget.'),
    }),
  }),
  Health: object('Health of the server.', {
    ...health,
    upkeep: object('State of upkeep.', {
      by: text('`builtin`, `nobody` or a model.'),
      running: integer('Running tasks.'),
      done: integer('Finished tasks.'),
    }),
    'embedding?': object('Progress of embedding; only with an embedder.', {
      model: text('The embedder.'),
      done: integer('Entries with a vector.'),
      total: integer('All entries.'),
      'fault?': text('The latest failure, until a later attempt succeeds.'),
    }),
    profile: text('The profile of sessions.'),
    secrets: text('The policy for keys and passwords: mask, hide or keep.'),
  }),
  Readiness: object('Readiness of the server.', { ready: flag('True when it accepts requests.'), ...health }),
  Error: object("An error in OpenAI's format.", {
    error: object('The error.', {
      message: text('The problem and the remedy.'),
      type: text('Its type, such as `invalid_request_error`.'),
      param: nullable(text('The parameter it is about.')),
      code: nullable(text('A stable code, such as `bad-key`.')),
    }),
  }),
  AnthropicError: object("An error in Anthropic's format.", {
    type: { const: 'error' },
    error: object('The error.', {
      type: text('Its type, such as `invalid_request_error`.'),
      message: text('The problem and the remedy.'),
    }),
    'request_id?': text('The `x-request-id`.'),
  }),
}
