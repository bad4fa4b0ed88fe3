import { oneOf, ref, type Schema, text } from './schema.ts'

const header = (name: string, description: string, schema: Schema): Schema => ({
  name,
  in: 'header',
  description,
  schema,
})
const query = (name: string, description: string, schema: Schema, more: Schema = {}): Schema => ({
  name,
  in: 'query',
  description,
  schema,
  ...more,
})
const path = (name: string, description: string, schema: Schema): Schema => ({
  name,
  in: 'path',
  required: true,
  description,
  schema,
})
const whole = { type: 'integer', minimum: 1 }
const moment = { type: ['integer', 'string'], examples: [1_772_323_200_000, '2026-03-01', '2026-03-01T12:00:00Z'] }
const times = ', in milliseconds since 1970 or as a date.'

/** What requests may bring beside their bodies, by the name it has among the components. */
export const parameters = {
  key: path('key', "The session, or the tenant's own memory.", ref('Key')),
  scope: path('scope', 'The tenant.', ref('Scope')),
  conversation: path('conversation', 'The id of the conversation.', {
    type: 'string',
    pattern: '^conv_[\\w-]{1,120}$',
  }),
  item: path('item', 'The id of the item.', { type: 'string' }),
  branch: path('branch', 'The number of the branch.', { type: 'integer', minimum: 1 }),
  knowledge: path('knowledge', 'The id of the piece of knowledge.', { type: 'string' }),
  file: path('file', 'The id of the file.', { type: 'string' }),
  receipt: path('receipt', 'The id of the receipt.', { type: 'string' }),
  model: path('model', 'The id of the model.', { type: 'string' }),
  keyHeader: header(
    'x-threadkeep-key',
    'The session where the address does not name it; without either the request passes through without memory.',
    ref('Key'),
  ),
  store: header(
    'x-threadkeep-store',
    '`false` keeps the request off the record: it is answered with memory and leaves none.',
    {
      type: 'string',
      enum: ['true', 'false'],
    },
  ),
  template: header('x-threadkeep-template', 'The template to begin a session from.', { type: 'string' }),
  person: header(
    'x-threadkeep-person',
    'Who speaks, where the profile lets a session see what is known of that person.',
    { type: 'string' },
  ),
  body: header(
    'x-threadkeep-body',
    '`receipt` puts the id of the receipt into the answer itself, as `threadkeep.receipt`.',
    {
      type: 'string',
      enum: ['receipt'],
    },
  ),
  requestId: header('x-request-id', 'An id for the request; one is made if it has none.', {
    type: 'string',
    pattern: '^[\\w.:-]{1,128}$',
  }),
  fileName: header(
    'x-filename',
    'The name of a file that is sent as it is, percent-encoded where it is not ASCII; a form tells it itself.',
    {
      type: 'string',
    },
  ),
  limit: query('limit', 'How many at most: 50 when left out, and never more than 500.', whole),
  itemLimit: query('limit', 'How many at most: 20 when left out, and never more than 100.', whole),
  order: query('order', 'The newest first, or the oldest.', { type: 'string', enum: ['desc', 'asc'], default: 'desc' }),
  after: query('after', 'Go on behind here: `next` of the page before.', { type: 'string' }),
  inScope: query('scope', 'Only those of this tenant.', ref('Scope')),
  about: query('key', 'Only this session or tenant.', ref('Key')),
  question: query('query', 'The question, if it is not stored yet; otherwise it is the newest turn of the user.', {
    type: 'string',
  }),
  budget: query('budget', 'How many tokens the context may have.', whole),
  q: query(
    'q',
    'What to look for. Phrases such as `yesterday` or `in March` narrow the time.',
    { type: 'string', minLength: 1 },
    { required: true },
  ),
  from: query('from', `Nothing from before this time${times}`, moment),
  to: query('to', `Nothing from after this time${times}`, moment),
  asOf: query('as_of', `What held at this time${times}`, moment),
  kinds: query('kinds', 'Only these: some of message, summary, fact, knowledge, item, separated by commas.', {
    type: 'string',
  }),
  ofPerson: query('person', 'What is known of this person, in place of what the tenant knows.', { type: 'string' }),
  wait: query('wait', '`false` answers at once and reads the file in the background.', {
    type: 'boolean',
    default: true,
  }),
  session: query('session', 'Only this session of the tenant.', { type: 'string' }),
} satisfies Record<string, Schema>

export type ParameterName = keyof typeof parameters

const told = (description: string, schema: Schema = { type: 'string' }): Schema => ({ description, schema })

/** What answers bring beside their bodies. */
export const headers = {
  'x-request-id': told('The id of the request, for questions about it.'),
  'x-threadkeep-receipt': told(
    'The id of the receipt: `GET /api/receipts/{receipt}` tells what the model was shown and why.',
  ),
  'x-threadkeep-tokens': told(
    'What the model was shown, and how much it could have been, in tokens.',
    text('For example 812/8000.', { pattern: '^\\d+/\\d+$' }),
  ),
  'x-threadkeep-profile': told('The way of remembering.'),
  'x-threadkeep-degraded': told('What was done otherwise than it should be; missing when all went well.'),
  'x-threadkeep-memory': told(
    'How memory took part.',
    oneOf(
      'Whether it did; left no trace; had no key to go by; or saw a request beside the conversation.',
      'on',
      'off the record',
      'none',
      'side',
    ),
  ),
  'retry-after': told('After how many seconds to try again.'),
} satisfies Record<string, Schema>
