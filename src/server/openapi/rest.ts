import { json, nothing, type Operation, page } from './operation.ts'
import { object, ref, text } from './schema.ts'

const upload = {
  required: true,
  content: {
    'multipart/form-data': {
      schema: object('One file.', {
        file: { type: 'string', format: 'binary', description: 'Text, Markdown, HTML, JSON, CSV, PDF or DOCX.' },
      }),
    },
    'application/octet-stream': {
      schema: { type: 'string', format: 'binary', description: 'The file as it is, with any content-type.' },
    },
  },
}

const uploaded = { '201': json('The file.', 'File'), '202': json('The file, not read yet.', 'File') }

const target = {
  description: 'A session, one message of it, a tenant with all its sessions, or whatever of a tenant holds a text.',
  oneOf: [
    { ...object('A session.', { key: ref('Key') }), additionalProperties: false },
    { ...object('A message.', { key: ref('Key'), messageId: text('Its id.') }), additionalProperties: false },
    { ...object('A tenant.', { scope: ref('Scope') }), additionalProperties: false },
    {
      ...object('Whatever holds a text.', { scope: ref('Scope'), text: text('The text.', { minLength: 1 }) }),
      additionalProperties: false,
    },
  ],
}

const required = (schema: object) => ({ required: true, content: { 'application/json': { schema } } })

/** Operations on what memory holds. */
export const restOperations = {
  listSessions: {
    tag: 'Sessions',
    summary: 'Sessions in order of their keys',
    takes: ['inScope', 'limit', 'after'],
    answers: { '200': page('A page.', 'Session') },
  },
  beginSession: {
    tag: 'Sessions',
    summary: 'Begins a session before anything is said in it',
    description: 'There is no need to, unless it is to differ from others: a session begins with its first request.',
    body: 'NewSession',
    answers: { '201': json('The session.', 'Session') },
  },
  getSession: { tag: 'Sessions', summary: 'A session', answers: { '200': json('The session.', 'Session') } },
  endSession: {
    tag: 'Sessions',
    summary: 'Ends a session and forgets it for good',
    description: 'Whoever waits to hear of the end of sessions hears of it.',
    answers: { '204': nothing },
  },
  listMessages: {
    tag: 'Sessions',
    summary: 'What was said',
    takes: ['limit', 'after'],
    answers: { '200': page('A page.', 'Message') },
  },
  getContext: {
    tag: 'Sessions',
    summary: 'What a model would be shown now',
    takes: ['question', 'budget', 'person'],
    answers: { '200': json('The context.', 'Context') },
  },
  listSummaries: {
    tag: 'Sessions',
    summary: 'What stands for older messages',
    takes: ['limit', 'after'],
    answers: { '200': page('A page.', 'Summary') },
  },
  listFacts: {
    tag: 'Sessions',
    summary: 'What the session has established',
    takes: ['asOf', 'limit', 'after'],
    answers: { '200': page('A page.', 'Fact') },
  },
  listBranches: {
    tag: 'Sessions',
    summary: 'What edits have cut off a session, the oldest first',
    takes: ['limit', 'after'],
    answers: { '200': page('A page.', 'Branch') },
  },
  getBranch: {
    tag: 'Sessions',
    summary: 'The messages of a branch',
    takes: ['limit', 'after'],
    answers: { '200': page('A page.', 'Message') },
  },
  listReceipts: {
    tag: 'Receipts',
    summary: 'The receipts of a session, newest first',
    takes: ['limit', 'after'],
    answers: { '200': page('A page.', 'Receipt') },
  },
  getReceipt: {
    tag: 'Receipts',
    summary: 'What an answer was made from, and why',
    answers: { '200': json('The receipt.', 'Receipt') },
  },
  getSessionMetrics: {
    tag: 'Sessions',
    summary: 'How a conversation goes',
    answers: { '200': json('The figures.', 'Figures') },
  },
  transferSession: {
    tag: 'Sessions',
    summary: 'Goes on with a session under another key of the same tenant',
    description: 'Afterwards the old key answers 410 until it expires.',
    body: required(object('Where to.', { to: ref('Key') })),
    answers: { '200': json('Where it goes on.', object('The new key.', { key: ref('Key') })) },
  },
  listKnowledge: {
    tag: 'Scopes',
    summary: "What a tenant's own memory holds",
    takes: ['ofPerson', 'limit', 'after'],
    answers: { '200': page('A page.', 'Knowledge') },
  },
  remember: {
    tag: 'Scopes',
    summary: "Keeps something in a tenant's own memory",
    description: 'Told again, it is believed a little more. Nothing that is said in a session comes here by itself.',
    body: 'NewKnowledge',
    answers: { '201': json('What is kept.', 'Knowledge') },
  },
  forgetKnowledge: {
    tag: 'Scopes',
    summary: "Forgets something of a tenant's own memory for good",
    takes: ['ofPerson'],
    answers: { '204': nothing },
  },
  listFiles: {
    tag: 'Scopes',
    summary: 'The files of a tenant',
    takes: ['limit', 'after'],
    answers: { '200': page('A page.', 'File') },
  },
  uploadFile: {
    tag: 'Scopes',
    summary: 'Takes in a file of a tenant',
    description:
      'It is answered when all of it can be found, unless `wait` is `false`: then `status` and `done` tell how far it is.',
    takes: ['fileName', 'wait'],
    body: upload,
    answers: uploaded,
  },
  uploadByKey: {
    tag: 'Scopes',
    summary: 'The same by a key; one with a session is refused, for sessions have no files',
    takes: ['fileName', 'wait'],
    body: upload,
    answers: uploaded,
  },
  getFile: { tag: 'Scopes', summary: 'A file', answers: { '200': json('The file.', 'File') } },
  getFileText: {
    tag: 'Scopes',
    summary: 'The text that was read in a file, with marks in the place of secrets',
    answers: { '200': { description: 'The text.', content: { 'text/plain': { schema: { type: 'string' } } } } },
  },
  deleteFile: {
    tag: 'Scopes',
    summary: 'Removes a file with everything that was read in it',
    answers: { '204': nothing },
  },
  search: {
    tag: 'Scopes',
    summary: 'Finds what a tenant and its sessions hold on a question, best first',
    takes: ['q', 'session', 'kinds', 'from', 'to', 'limit'],
    answers: { '200': page('What was found.', 'SearchResult') },
  },
  getScopeMetrics: {
    tag: 'Scopes',
    summary: 'How the conversations of a tenant go',
    answers: { '200': json('The figures.', 'Figures') },
  },
  forget: {
    tag: 'Scopes',
    summary: 'Forgets for good, with everything derived from it',
    body: required(target),
    answers: { '200': json('What was forgotten.', 'Forgotten') },
  },
} satisfies Record<string, Operation>
