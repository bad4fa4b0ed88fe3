import { flag, list, number, object, oneOf, orNull, ref, type Schema, text, time, whole } from './schema.ts'

const count = orNull(whole('As the upstream counts; null if it does not say.'))
const tokens = {
  shown: whole('What the model was shown.'),
  history: whole('What the whole history would have cost.'),
  saved: whole('What was spared.'),
  cacheable: whole('What a provider can take from its cache.'),
}

const health = {
  status: oneOf('In a word.', 'ok', 'degraded', 'draining', 'unavailable'),
  degraded: list('What is not as it should be.', object('A part.', { part: text('Which.'), why: text('Why.') })),
}

/** What the server tells of what it did: receipts, figures, health, errors. */
export const accountSchemas: Readonly<Record<string, Schema>> = {
  Context: object('What a model would be shown now.', {
    messages: list("As OpenAI's chat API takes it.", { type: 'object' }),
    text: text('The same as one text.'),
    ledger: ref('Ledger'),
  }),
  Ledger: object('Which entries were shown, how and why, in ids and numbers.', {
    profile: text('The way of remembering.'),
    tokenizer: text('Who counted.'),
    counted: oneOf('How well.', 'exact', 'bounded', 'estimated'),
    budget: whole('How many tokens there were.'),
    spent: whole('How many were spent.'),
    history: whole('What the whole history would cost.'),
    due: flag('Whether upkeep is due.'),
    cacheable: object('What the next turn repeats byte for byte.', {
      messages: whole('Messages.'),
      tokens: whole('Tokens.'),
    }),
    lines: list('One for each run of entries with the same fate.', ref('Line')),
    knowledge: list('Ids of the knowledge that was shown.', text('An id.')),
    degraded: list('What did not go as it should.', ref('Degradation')),
  }),
  Line: object('A run of entries with the same fate.', {
    band: text('The part of the context.'),
    entries: orNull(
      list('The ids of the first and the last one; null for headings and what the provider adds.', text('An id.')),
    ),
    count: whole('How many.'),
    verdict: oneOf('What became of them.', 'whole', 'shortened', 'covered', 'dropped'),
    tokens: whole('What they cost.'),
    why: text('Why.'),
    'from?': oneOf("Where they come from, if they are not the session's own.", 'scope', 'person', 'files'),
  }),
  Degradation: object('Something that was done otherwise than it should be.', {
    step: text('What.'),
    why: text('Why.'),
  }),
  Receipt: object('What explains an answer afterwards, in ids and numbers.', {
    id: text('Its id, as the header `x-threadkeep-receipt` gave it.'),
    key: ref('Key'),
    at: time('When the answer was asked for.'),
    request: text('The `x-request-id` of the request.'),
    response: orNull(text('The id the model server gave its answer.')),
    sequence: orNull(whole('Where the reply stands in the transcript.')),
    protocol: oneOf('How the client spoke.', 'chat', 'responses', 'messages'),
    model: text('The model that was asked for.'),
    upstream: text('Who answered.'),
    how: text('How what the client sent relates to what was stored.'),
    tokens: object('What it cost in tokens.', {
      ...tokens,
      cacheableShare: number('The part of what was shown.'),
      prompt: count,
      completion: count,
      cached: count,
    }),
    cost: orNull(ref('Cost')),
    degraded: list('What did not go as it should.', text('What, and why.')),
    ledger: orNull(ref('Ledger')),
  }),
  Cost: object('What it cost by the table of prices; a model without a price has none.', {
    input: number('The prompt.'),
    output: number('The reply.'),
    total: number('Both.'),
    currency: { const: 'USD' },
    isEstimated: flag('Whether the upstream gave no count of its own.'),
    spared: orNull(
      object('What memory spared, at most.', {
        unsent: number('By what was not sent.'),
        cacheable: number('By caches.'),
        currency: { const: 'USD' },
      }),
    ),
  }),
  Figures: object('How conversations go.', {
    turns: whole('Turns that were answered.'),
    failed: whole('Turns that were not.'),
    tokens: object('Their sums.', {
      ...tokens,
      prompt: whole('Prompts.'),
      completion: whole('Replies.'),
      cached: whole('From caches.'),
    }),
    latency: orNull(
      object('Milliseconds on average.', { mean: number('Of a turn.'), memory: number('What memory took of it.') }),
    ),
    compression: orNull(number('What was shown, as a part of the whole history.')),
    cache: object('Parts that caches may take.', {
      cacheable: orNull(number('Of what was shown.')),
      taken: orNull(number('Of the prompts, as upstreams report it.')),
    }),
  }),
  Forgotten: object('What was forgotten, by ids.', {
    at: time('When.'),
    sessions: list(
      'Where.',
      object('A session.', {
        key: text('Its key.'),
        entries: list('What went.', text('An id.')),
        'renewed?': list('What was made anew without it.', text('An id.')),
      }),
    ),
  }),
  OptimizerStatus: object('What the optimizer has done.', {
    totalOptimizations: whole('Runs.'),
    totalTokensSaved: whole('Tokens saved.'),
    avgSavingsPerRun: whole('Tokens saved by a run on average.'),
    currentParameters: object('How it is set.', {
      compressionTrigger: number('When messages begin to be shortened.'),
      fullMessageWindow: number('How many stay whole.'),
      minRelevance: number('What is worth keeping.'),
      targetUsageRatio: number('How full the budget should be.'),
    }),
  }),
  Health: object('How the server is doing.', {
    ...health,
    upkeep: object('Who sums up what is old.', {
      by: text('`builtin`, `nobody` or a model.'),
      running: whole('Pieces under way.'),
      done: whole('Pieces done.'),
    }),
    profile: text('The profile of sessions.'),
    secrets: text('What becomes of keys and passwords: mask, hide or keep.'),
  }),
  Readiness: object('Whether requests would be answered.', { ready: flag('Whether to send any.'), ...health }),
  Error: object("An error in OpenAI's shape.", {
    error: object('The error.', {
      message: text('What went wrong and what to do about it.'),
      type: text('Its kind, such as `invalid_request_error`.'),
      param: orNull(text('What it is about.')),
      code: orNull(text('A code that does not change, such as `bad-key`.')),
    }),
  }),
  AnthropicError: object("An error in Anthropic's shape.", {
    type: { const: 'error' },
    error: object('The error.', {
      type: text('Its kind, such as `invalid_request_error`.'),
      message: text('What went wrong and what to do about it.'),
    }),
    'request_id?': text('The `x-request-id`.'),
  }),
}
