import { json, type Operation, reply } from './operation.ts'

const turn = { takes: ['store', 'template', 'person', 'body'] } as const
const errors = { errors: 'AnthropicError' } as const
const history = 'Memory keeps what is new in it, and the model is shown what memory chooses inside its budget.'

/** Operations of the protocols of others. */
export const modelOperations = {
  createChatCompletion: {
    tag: 'Models',
    summary: 'A chat completion, as OpenAI makes it',
    description: `The client may send its whole history, the end of it or only its newest message. ${history}`,
    ...turn,
    body: 'ChatRequest',
    answers: { '200': reply('ChatCompletion') },
  },
  createResponse: {
    tag: 'Models',
    summary: 'A response, as OpenAI makes it',
    description: `It may go on from another one, or belong to a conversation. ${history}`,
    ...turn,
    body: 'ResponseRequest',
    answers: { '200': reply('Response') },
  },
  createMessage: {
    tag: 'Models',
    summary: 'A message, as Anthropic makes it',
    description: `The client may send its whole history, the end of it or only its newest message. ${history}`,
    ...turn,
    ...errors,
    body: 'MessagesRequest',
    answers: { '200': reply('AnthropicMessage') },
  },
  countTokens: {
    tag: 'Models',
    summary: 'What a message would cost, as Anthropic counts',
    ...errors,
    body: 'MessagesRequest',
    answers: { '200': json('The count.', 'TokenCount') },
  },
  createEmbedding: {
    tag: 'Models',
    summary: 'Embeddings of the model server; memory takes no part',
    body: 'EmbeddingRequest',
    answers: { '200': json('The embeddings.', 'EmbeddingList') },
  },
  listModels: {
    tag: 'Models',
    summary: 'The models of the model server',
    answers: { '200': json('The models.', 'ModelList') },
  },
  getModel: {
    tag: 'Models',
    summary: 'One of the models of the model server',
    answers: { '200': json('The model.', 'Model') },
  },
  speakMcp: {
    tag: 'Models',
    summary: 'A message of the Model Context Protocol',
    description:
      'Tools, resources and prompts to save a chat and to go on with it elsewhere, and a knowledge graph. Stateless; older clients are served too.',
    body: 'RpcMessage',
    answers: { '200': reply('RpcMessage'), '202': { description: 'A notification was taken.' } },
    errors: 'RpcError',
  },
  createConversation: {
    tag: 'Conversations',
    summary: 'Begins a conversation',
    body: 'ConversationRequest',
    answers: { '200': json('The conversation.', 'Conversation') },
  },
  getConversation: {
    tag: 'Conversations',
    summary: 'A conversation',
    answers: { '200': json('The conversation.', 'Conversation') },
  },
  updateConversation: {
    tag: 'Conversations',
    summary: 'Changes the notes of a conversation',
    body: 'ConversationRequest',
    answers: { '200': json('The conversation.', 'Conversation') },
  },
  deleteConversation: {
    tag: 'Conversations',
    summary: 'Ends a conversation and forgets it for good',
    answers: { '200': json('What is gone.', 'DeletedConversation') },
  },
  listItems: {
    tag: 'Conversations',
    summary: 'What was said in a conversation',
    takes: ['itemLimit', 'after', 'order'],
    answers: { '200': json('The items.', 'ItemList') },
  },
  createItems: {
    tag: 'Conversations',
    summary: 'Adds to a conversation',
    body: 'ItemsRequest',
    answers: { '200': json('The items.', 'ItemList') },
  },
  getItem: { tag: 'Conversations', summary: 'One thing that was said', answers: { '200': json('The item.', 'Item') } },
  deleteItem: {
    tag: 'Conversations',
    summary: 'Forgets one thing that was said, and what was derived from it',
    description: 'What was said and called in one reply goes as a whole.',
    answers: { '200': json('The conversation without it.', 'Conversation') },
  },
} satisfies Record<string, Operation>
