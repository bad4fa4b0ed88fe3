import { forgetTarget, transferTarget } from '../api/bodies.ts'
import { inspectorOperations } from './inspectorOperations.ts'
import { deletedResponse, json, type Operation, page, reply } from './responses.ts'
import { anything, fromZod, object, ref, type Schema } from './schema.ts'

const turnParameters = ['store', 'template', 'person', 'body', 'history', 'idempotencyKey'] as const
const historyNote =
  'Memory stores the new messages. The model gets them as they were sent, with what memory adds: the history if the client does not send it, and what is known beyond it.'

const modelOperations = {
  createChatCompletion: {
    tag: 'Models',
    summary: "Create a chat completion in OpenAI's format",
    description: `Send the whole history, its end, or only the newest message. ${historyNote}`,
    parameters: turnParameters,
    body: 'ChatRequest',
    responses: { '200': reply('ChatCompletion') },
  },
  createResponse: {
    tag: 'Models',
    summary: "Create a response in OpenAI's format",
    description: `It can continue another response or belong to a conversation. ${historyNote}`,
    parameters: turnParameters,
    body: 'ResponseRequest',
    responses: { '200': reply('Response') },
  },
  getResponse: {
    tag: 'Models',
    summary: 'Get a response that the upstream or the session stores',
    responses: { '200': json('The response.', 'Response') },
  },
  deleteResponse: {
    tag: 'Models',
    summary: 'Delete a response, with its reply in the session',
    responses: { '200': json('The deletion.', anything('Id of the response, and `deleted`.')) },
  },
  cancelResponse: {
    tag: 'Models',
    summary: 'Cancel a response that runs in the background',
    responses: { '200': json('The response.', 'Response') },
  },
  listInputItems: {
    tag: 'Models',
    summary: 'List the input of a response',
    responses: { '200': json('The items.', anything('A list of items.')) },
  },
  createMessage: {
    tag: 'Models',
    summary: "Create a message in Anthropic's format",
    description: `Send the whole history, its end, or only the newest message. ${historyNote}`,
    parameters: turnParameters,
    errors: 'AnthropicError',
    body: 'MessagesRequest',
    responses: { '200': reply('AnthropicMessage') },
  },
  countTokens: {
    tag: 'Models',
    summary: "Count the tokens of a request in Anthropic's format",
    errors: 'AnthropicError',
    body: 'MessagesRequest',
    responses: { '200': json('The count.', 'TokenCount') },
  },
  createEmbedding: {
    tag: 'Models',
    summary: 'Create embeddings with the upstream, without memory',
    body: 'EmbeddingRequest',
    responses: { '200': json('The embeddings.', 'EmbeddingList') },
  },
  listModels: {
    tag: 'Models',
    summary: "List the upstream's models",
    responses: { '200': json('The models.', 'ModelList') },
  },
  getModel: {
    tag: 'Models',
    summary: "Get one of the upstream's models",
    responses: { '200': json('The model.', 'Model') },
  },
  probe: {
    tag: 'Models',
    summary: 'Test the base URL of a client',
    description: 'Also for `/v1/{key}`.',
    responses: { '200': json('The server is there.', object('The status.', { status: { const: 'ok' } })) },
  },
  sendMcpMessage: {
    tag: 'Models',
    summary: 'Send a message of the Model Context Protocol',
    description:
      'Tools, resources and prompts to save a chat and continue it elsewhere, and a knowledge graph. Stateless; older clients are supported.',
    body: 'RpcMessage',
    responses: { '200': reply('RpcMessage'), '202': { description: 'The notification was accepted.' } },
    errors: 'RpcError',
  },
} satisfies Record<string, Operation>

const conversationOperations = {
  createConversation: {
    tag: 'Conversations',
    summary: 'Create a conversation',
    body: 'NewConversation',
    responses: { '200': json('The conversation.', 'Conversation') },
  },
  getConversation: {
    tag: 'Conversations',
    summary: 'Get a conversation',
    responses: { '200': json('The conversation.', 'Conversation') },
  },
  updateConversation: {
    tag: 'Conversations',
    summary: 'Replace the metadata of a conversation',
    body: 'ConversationUpdate',
    responses: { '200': json('The conversation.', 'Conversation') },
  },
  deleteConversation: {
    tag: 'Conversations',
    summary: 'Delete a conversation permanently',
    responses: { '200': json('The deleted conversation.', 'DeletedConversation') },
  },
  listItems: {
    tag: 'Conversations',
    summary: 'List the items of a conversation',
    parameters: ['itemLimit', 'after', 'order'],
    responses: { '200': json('The items.', 'ItemList') },
  },
  createItems: {
    tag: 'Conversations',
    summary: 'Add items to a conversation',
    body: 'NewItems',
    responses: { '200': json('The items.', 'ItemList') },
  },
  getItem: { tag: 'Conversations', summary: 'Get an item', responses: { '200': json('The item.', 'Item') } },
  deleteItem: {
    tag: 'Conversations',
    summary: 'Delete an item and everything derived from it',
    description: 'The text and tool calls of one reply are deleted together.',
    responses: { '200': json('The conversation without the item.', 'Conversation') },
  },
} satisfies Record<string, Operation>

const jsonBody = (schema: Schema): Schema => ({ required: true, content: { 'application/json': { schema } } })

const sessionOperations = {
  listSessions: {
    tag: 'Sessions',
    summary: 'List sessions in order of their keys',
    parameters: ['inScope', 'keyText', 'inTemplate', 'metadataField', 'limit', 'after'],
    responses: { '200': page('Session') },
  },
  createSession: {
    tag: 'Sessions',
    summary: 'Create an empty session',
    description: 'Only needed to set a template, lifetimes or metadata: a session begins with its first request.',
    body: 'NewSession',
    responses: { '201': json('The session.', 'Session') },
  },
  getSession: { tag: 'Sessions', summary: 'Get a session', responses: { '200': json('The session.', 'Session') } },
  deleteSession: {
    tag: 'Sessions',
    summary: 'End a session and delete it permanently',
    description: 'Sends the end event to the webhook.',
    responses: { '204': deletedResponse },
  },
  listMessages: {
    tag: 'Sessions',
    summary: 'List the messages of a session',
    parameters: ['limit', 'after'],
    responses: { '200': page('Message') },
  },
  getContext: {
    tag: 'Sessions',
    summary: 'Get the context a model would get now',
    parameters: ['question', 'budget', 'person', 'masked'],
    responses: { '200': json('The context.', 'Context') },
  },
  listSummaries: {
    tag: 'Sessions',
    summary: 'List the summaries of a session',
    parameters: ['limit', 'after'],
    responses: { '200': page('Summary') },
  },
  listFacts: {
    tag: 'Sessions',
    summary: 'List the facts of a session',
    parameters: ['asOf', 'factHistory', 'limit', 'after'],
    responses: { '200': page('Fact') },
  },
  getRecord: {
    tag: 'Sessions',
    summary: 'Get the facts and the summary of a session as one record',
    parameters: ['asOf'],
    responses: { '200': json('The record.', 'Record') },
  },
  updateRecord: {
    tag: 'Sessions',
    summary: 'Add values to the record of a session, or replace its summary',
    description: 'Stored as stated by the caller; secrets are masked.',
    body: 'RecordUpdate',
    responses: { '200': json('The new record.', 'Record') },
  },
  clearRecord: {
    tag: 'Sessions',
    summary: 'Delete the facts and summaries of a session',
    description: 'Its messages stay, and are summarised again when a rule is due.',
    responses: { '204': deletedResponse },
  },
  listBranches: {
    tag: 'Sessions',
    summary: 'List the branches that edits cut off, oldest first',
    parameters: ['limit', 'after'],
    responses: { '200': page('Branch') },
  },
  getBranch: {
    tag: 'Sessions',
    summary: 'List the messages of a branch',
    parameters: ['limit', 'after'],
    responses: { '200': page('Message') },
  },
  listReceipts: {
    tag: 'Receipts',
    summary: 'List the receipts of a session, newest first',
    parameters: ['withLedger', 'limit', 'after'],
    responses: { '200': page('StoredReceipt') },
  },
  getReceipt: {
    tag: 'Receipts',
    summary: 'Get a receipt',
    responses: { '200': json('The receipt.', 'StoredReceipt') },
  },
  getSessionMetrics: {
    tag: 'Sessions',
    summary: 'Get the usage of a session',
    responses: { '200': json('The usage.', 'Usage') },
  },
  transferSession: {
    tag: 'Sessions',
    summary: 'Transfer a session to another key of the same tenant',
    description: 'Afterwards, the old key answers 410 until it expires.',
    body: jsonBody(fromZod(transferTarget)),
    responses: { '200': json('The new key.', object('The new key.', { key: ref('Key') })) },
  },
} satisfies Record<string, Operation>

const fileBody = {
  required: true,
  content: {
    'multipart/form-data': {
      schema: {
        ...object('One file.', {
          file: { type: 'string', format: 'binary', description: 'Text, Markdown, HTML, JSON, CSV, PDF or DOCX.' },
        }),
        additionalProperties: false,
      },
    },
    'application/octet-stream': {
      schema: { type: 'string', format: 'binary', description: 'The file itself, with any content type.' },
    },
  },
}
const fileResponses = {
  '201': json('The indexed file.', 'File'),
  '202': json('The file, not indexed yet.', 'File'),
}

/** The combinations of fields that name a target. */
const forgetBody = {
  description: 'A session, one of its messages, a tenant with all its sessions, or entries of a tenant with a text.',
  oneOf: [
    forgetTarget.pick({ key: true }).required().describe('A session.'),
    forgetTarget.pick({ key: true, messageId: true }).required().describe('A message.'),
    forgetTarget.pick({ scope: true }).required().describe('A tenant.'),
    forgetTarget.pick({ scope: true, text: true }).required().describe('Entries that contain a text.'),
  ].map(fromZod),
}

const scopeOperations = {
  listKnowledge: {
    tag: 'Scopes',
    summary: 'List the knowledge of a tenant',
    parameters: ['knowledgePerson', 'archived', 'limit', 'after'],
    responses: { '200': page('Knowledge') },
  },
  createKnowledge: {
    tag: 'Scopes',
    summary: 'Store knowledge of a tenant',
    description: 'Repeating it raises its confidence. Nothing said in a session is stored here automatically.',
    body: 'NewKnowledge',
    responses: { '201': json('The stored knowledge.', 'Knowledge') },
  },
  restoreKnowledge: {
    tag: 'Scopes',
    summary: 'Bring archived knowledge of a tenant back',
    parameters: ['knowledgePerson'],
    responses: { '200': json('The restored knowledge.', 'Knowledge') },
  },
  approveKnowledge: {
    tag: 'Scopes',
    summary: 'Approve pending knowledge of a tenant, so that models see it',
    parameters: ['knowledgePerson'],
    responses: { '200': json('The approved knowledge.', 'Knowledge') },
  },
  deleteKnowledge: {
    tag: 'Scopes',
    summary: 'Delete knowledge of a tenant permanently',
    parameters: ['knowledgePerson'],
    responses: { '204': deletedResponse },
  },
  listFiles: {
    tag: 'Scopes',
    summary: 'List the files of a tenant',
    parameters: ['limit', 'after'],
    responses: { '200': page('File') },
  },
  uploadFile: {
    tag: 'Scopes',
    summary: 'Upload a file of a tenant',
    description:
      'Responds when the file is indexed. With `wait=false` it responds at once; `status` and `done` show the progress.',
    parameters: ['fileName', 'wait'],
    body: fileBody,
    responses: fileResponses,
  },
  uploadFileByKey: {
    tag: 'Scopes',
    summary: 'Upload a file by key; refused for a session, which has no files',
    parameters: ['fileName', 'wait'],
    body: fileBody,
    responses: fileResponses,
  },
  getFile: { tag: 'Scopes', summary: 'Get a file', responses: { '200': json('The file.', 'File') } },
  getFileText: {
    tag: 'Scopes',
    summary: 'Get the text of a file, with masked secrets',
    responses: { '200': { description: 'The text.', content: { 'text/plain': { schema: { type: 'string' } } } } },
  },
  deleteFile: {
    tag: 'Scopes',
    summary: 'Delete a file and everything read from it',
    responses: { '204': deletedResponse },
  },
  search: {
    tag: 'Scopes',
    summary: 'Search in a tenant and its sessions, best results first',
    parameters: ['q', 'session', 'kinds', 'from', 'to', 'limit'],
    responses: { '200': page('SearchResult') },
  },
  getScopeMetrics: {
    tag: 'Scopes',
    summary: 'Get the usage of a tenant',
    responses: { '200': json('The usage.', 'Usage') },
  },
  forget: {
    tag: 'Scopes',
    summary: 'Delete entries permanently, with everything derived from them',
    body: jsonBody(forgetBody),
    responses: { '200': json('The deleted entries.', 'ForgetResult') },
  },
  previewForget: {
    tag: 'Scopes',
    summary: 'List what a deletion would delete, without deleting it',
    body: jsonBody(forgetBody),
    responses: { '200': json('Everything that would go.', 'ForgetPreview') },
  },
} satisfies Record<string, Operation>

const operatorOperations = {
  getOptimizerStatus: {
    tag: 'Operator',
    summary: 'Get the results of the optimizer for a session, a tenant or all',
    parameters: ['optimizerKey'],
    responses: { '200': json('The status.', 'OptimizerStatus') },
  },
  getHome: {
    tag: 'Operator',
    summary: 'Get the inspector, or a description of the server',
    isPublic: true,
    responses: {
      '200': {
        description: 'A page for browsers, JSON or plain text, as the `accept` header asks; plain text by default.',
        content: {
          'text/plain': { schema: { type: 'string' } },
          'text/html': { schema: { type: 'string' } },
          'application/json': { schema: { type: 'object' } },
        },
      },
    },
  },
  getHealth: {
    tag: 'Operator',
    summary: 'Check that the server is alive',
    isPublic: true,
    responses: { '200': json('The server is alive.', 'Health') },
  },
  getReadiness: {
    tag: 'Operator',
    summary: 'Check that the server accepts requests',
    isPublic: true,
    responses: {
      '200': json('The server is ready.', 'Readiness'),
      '503': json('The server is not ready; `degraded` lists the reasons.', 'Readiness'),
    },
  },
  getMetrics: {
    tag: 'Operator',
    summary: 'Get Prometheus metrics',
    responses: { '200': { description: 'The metrics.', content: { 'text/plain': { schema: { type: 'string' } } } } },
  },
  getOpenApi: {
    tag: 'Operator',
    summary: 'Get this document',
    responses: { '200': json('The document.', { type: 'object' }) },
  },
  getDocs: {
    tag: 'Operator',
    summary: 'Get this document as a page for people',
    isPublic: true,
    responses: { '200': { description: 'The page.', content: { 'text/html': { schema: { type: 'string' } } } } },
  },
} satisfies Record<string, Operation>

/** All operations by id. */
export const operations = {
  ...modelOperations,
  ...conversationOperations,
  ...sessionOperations,
  ...scopeOperations,
  ...inspectorOperations,
  ...operatorOperations,
} satisfies Record<string, Operation>

export type OperationName = keyof typeof operations
