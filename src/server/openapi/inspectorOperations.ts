import { json, type Operation } from './responses.ts'

/** Operations that the inspector page uses, beside those of the memory API. */
export const inspectorOperations = {
  getAccess: {
    tag: 'Operator',
    summary: 'Get the tenants that a key may use',
    responses: { '200': json('The access.', 'Access') },
  },
  streamEvents: {
    tag: 'Sessions',
    summary: 'Receive changes of sessions as server-sent events',
    description:
      'Events: `session` (its entries changed), `receipt` (one was stored), `ended`, `scope` (knowledge or files changed) and `reset` (events were left out: read everything again). Data: `key` and `at`. The stream counts as one concurrent request.',
    parameters: ['inScope'],
    responses: {
      '200': {
        description: 'The events, and a comment every 15 seconds.',
        content: { 'text/event-stream': { schema: { type: 'string' } } },
      },
    },
  },
  replayContext: {
    tag: 'Sessions',
    summary: 'Get the context a model would get now under another profile, and the differences',
    description: 'For sessions of up to 2,000 messages.',
    parameters: ['profile', 'question', 'budget', 'person'],
    responses: { '200': json('The context.', 'Replay') },
  },
  getGraph: {
    tag: 'Scopes',
    summary: 'Get the knowledge graph of a tenant',
    description:
      'The first 2,000 nodes and 4,000 links. Those that would make either list longer than 1,000,000 characters are left out.',
    responses: { '200': json('The graph.', 'Graph') },
  },
  getUsageSeries: {
    tag: 'Operator',
    summary: 'Get the usage of the last six hours by minutes',
    description: 'Without a tenant: of all of them, for operators only. It is counted since the server started.',
    parameters: ['inScope'],
    responses: { '200': json('The usage.', 'UsageSeries') },
  },
  getOperations: {
    tag: 'Operator',
    summary: 'Get the state of upstreams, upkeep and memory',
    responses: { '200': json('The state.', 'OperationsReport') },
  },
  exportSession: {
    tag: 'Sessions',
    summary: 'Export a session as a bundle',
    description: 'The same JSON Lines as `threadkeep export`, with messages, derived entries and receipts.',
    responses: {
      '200': { description: 'The bundle.', content: { 'application/jsonl': { schema: { type: 'string' } } } },
    },
  },
  importSessions: {
    tag: 'Scopes',
    summary: 'Import the sessions of a bundle into a tenant',
    description: 'The bundle is verified before anything is written; secrets are masked.',
    parameters: ['existing'],
    body: {
      required: true,
      content: { 'application/jsonl': { schema: { type: 'string', description: 'A bundle of an export.' } } },
    },
    responses: { '200': json('The imported sessions.', 'ImportResult') },
  },
  getAsset: {
    tag: 'Operator',
    summary: 'Get a file of the inspector page',
    isPublic: true,
    responses: {
      '200': {
        description: 'The file, which never changes.',
        content: { 'text/javascript': { schema: { type: 'string' } }, 'text/css': { schema: { type: 'string' } } },
      },
    },
  },
} satisfies Record<string, Operation>
