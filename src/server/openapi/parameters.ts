import { existingSessionPolicies } from '../../domain/bundle.ts'
import { oneOf, ref, type Schema, text } from './schema.ts'

type Location = 'header' | 'query' | 'path'
const parameter = (
  location: Location,
  name: string,
  description: string,
  schema: Schema,
  more: Schema = {},
): Schema => ({
  name,
  in: location,
  description,
  schema,
  ...more,
})
const header = (name: string, description: string, schema: Schema): Schema =>
  parameter('header', name, description, schema)
const query = (name: string, description: string, schema: Schema, more: Schema = {}): Schema =>
  parameter('query', name, description, schema, more)
const path = (name: string, description: string, schema: Schema): Schema =>
  parameter('path', name, description, schema, { required: true })

const string = { type: 'string' }
const positive = { type: 'integer', minimum: 1 }
const timestamp = { type: ['integer', 'string'], examples: [1_772_323_200_000, '2026-03-01', '2026-03-01T12:00:00Z'] }
const timeFormat = 'Milliseconds since 1970, or a date.'

/** Parameters by component name. */
export const parameters = {
  key: path('key', 'The session or tenant.', ref('Key')),
  scope: path('scope', 'The tenant.', ref('Scope')),
  conversation: path('conversation', 'Id of the conversation.', { type: 'string', pattern: '^conv_[\\w-]{1,120}$' }),
  asset: path('asset', 'Name of the file.', string),
  item: path('item', 'Id of the item.', string),
  branch: path('branch', 'Number of the branch.', positive),
  knowledge: path('knowledge', 'Id of the knowledge.', string),
  file: path('file', 'Id of the file.', string),
  receipt: path('receipt', 'Id of the receipt.', string),
  response: path('response', 'Id of the response.', string),
  model: path('model', 'Id of the model.', string),
  keyHeader: header(
    'x-threadkeep-key',
    'The session, when the path does not name it. Without either, the request is relayed without memory.',
    ref('Key'),
  ),
  store: header('x-threadkeep-store', '`false` answers with memory and stores nothing.', {
    type: 'string',
    enum: ['true', 'false'],
  }),
  template: header('x-threadkeep-template', 'Template of a new session.', string),
  person: header('x-threadkeep-person', "The person speaking, for profiles that read a person's knowledge.", string),
  body: header('x-threadkeep-body', '`receipt` adds the id of the receipt to the body, as `threadkeep.receipt`.', {
    type: 'string',
    enum: ['receipt'],
  }),
  history: header(
    'x-threadkeep-history',
    'Kind of client: it resends its conversation, it does not, or tell by itself.',
    {
      type: 'string',
      enum: ['full', 'thin', 'auto'],
    },
  ),
  idempotencyKey: header('idempotency-key', 'Requests with the same key store their messages once, on any server.', {
    type: 'string',
    maxLength: 255,
  }),
  requestId: header('x-request-id', 'Id of the request; generated when missing.', {
    type: 'string',
    pattern: '^[\\w.:-]{1,128}$',
  }),
  fileName: header(
    'x-filename',
    'Name of a file that is sent as the whole body, percent-encoded where it is not ASCII. Not needed in a form.',
    string,
  ),
  limit: query('limit', 'Maximum number of items: default 50, at most 500.', positive),
  itemLimit: query('limit', 'Maximum number of items: default 20, at most 100.', positive),
  order: query('order', 'Newest or oldest first.', { type: 'string', enum: ['desc', 'asc'], default: 'desc' }),
  after: query('after', 'Cursor: `next` of the previous page.', string),
  metadataField: query(
    'metadata.NAME',
    'Only sessions whose metadata has this value in the field NAME. Numbers, `true`, `false` and `null` are compared as such, in quotes as texts.',
    string,
  ),
  inScope: query('scope', 'Only sessions of this tenant.', ref('Scope')),
  profile: query('profile', 'Name of the profile.', string, { required: true }),
  masked: query('masked', '`true` shows placeholders in the place of secrets.', { type: 'boolean', default: false }),
  withLedger: query('ledger', '`false` leaves out the ledgers.', { type: 'boolean', default: true }),
  factHistory: query('history', '`true` includes facts that newer ones have replaced.', {
    type: 'boolean',
    default: false,
  }),
  keyText: query('q', 'Only sessions whose key contains this text, in upper or lower case.', string),
  inTemplate: query('template', 'Only sessions of this template.', string),
  optimizerKey: query('key', 'Only this session or tenant.', ref('Key')),
  question: query('query', "The question; default: the user's newest message.", string),
  budget: query('budget', 'Token budget of the context.', positive),
  q: query(
    'q',
    'The text to search for. Phrases such as `yesterday` or `in March` restrict the time.',
    { type: 'string', minLength: 1 },
    { required: true },
  ),
  from: query('from', `Earliest time. ${timeFormat}`, timestamp),
  to: query('to', `Latest time. ${timeFormat}`, timestamp),
  asOf: query('as_of', `Only facts that were valid at this time. ${timeFormat}`, timestamp),
  kinds: query('kinds', 'Kinds of entries, separated by commas: message, summary, fact, knowledge, item.', string),
  knowledgePerson: query('person', "Use this person's knowledge instead of the tenant's.", string),
  archived: query('archived', '`true` includes archived knowledge.', { type: 'boolean', default: false }),
  wait: query('wait', '`false` responds at once and indexes the file in the background.', {
    type: 'boolean',
    default: true,
  }),
  existing: query('existing', 'Treatment of sessions that exist with other contents.', {
    type: 'string',
    enum: existingSessionPolicies,
    default: 'refuse',
  }),
  session: query('session', 'Only this session of the tenant.', string),
} satisfies Record<string, Schema>

export type ParameterName = keyof typeof parameters

const responseHeader = (description: string, schema: Schema = string): Schema => ({ description, schema })

/** Response headers. */
export const responseHeaders = {
  'x-request-id': responseHeader('Id of the request.'),
  'x-threadkeep-receipt': responseHeader(
    'Id of the receipt. `GET /api/receipts/{receipt}` explains what the model was shown.',
  ),
  'x-threadkeep-tokens': responseHeader(
    'Tokens sent to the model, and the most that may be sent.',
    text('For example 812/8000.', { pattern: '^\\d+/\\d+$' }),
  ),
  'x-threadkeep-profile': responseHeader('The profile.'),
  'x-threadkeep-history': responseHeader(
    'Kind of client.',
    oneOf('Its conversation was forwarded as sent, or memory supplied the history.', 'full', 'thin'),
  ),
  'x-threadkeep-degraded': responseHeader('Codes of steps that fell back; missing when there were none.'),
  'x-threadkeep-memory': responseHeader(
    'The part memory took in the request.',
    oneOf(
      'Used; used without storing; not used, because there was no key; or not used for an auxiliary request.',
      'on',
      'read-only',
      'none',
      'auxiliary',
    ),
  ),
  'retry-after': responseHeader('Seconds to wait before the next attempt.'),
} satisfies Record<string, Schema>
