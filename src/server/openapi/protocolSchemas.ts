import { conversationUpdate, newConversation, newItems } from '../api/bodies.ts'
import { anything, flag, fromZod, integer, list, object, oneOf, ref, type Schema, text } from './schema.ts'

/**
 * Objects of OpenAI's, Anthropic's and MCP's protocols, as far as memory reads them. Other fields are passed through.
 */
export const protocolSchemas: Readonly<Record<string, Schema>> = {
  ChatRequest: object("A request of OpenAI's chat completions.", {
    'model?': text("The model; default: the upstream's."),
    messages: { ...list('The whole conversation, or only the new messages.', ref('ChatMessage')), minItems: 1 },
    'stream?': flag('True to stream the reply.'),
    'tools?': list('Tools of the model; never shortened.', { type: 'object' }),
    'user?': text('Names the session when neither the path nor a header does.'),
  }),
  ChatMessage: object('A message.', {
    role: oneOf('The role.', 'system', 'developer', 'user', 'assistant', 'tool', 'function'),
    'content?': anything('Text, a list of parts, or null.'),
  }),
  ChatCompletion: object('A chat completion.', {
    id: text('Its id.'),
    object: { const: 'chat.completion' },
    created: integer('Time of creation, in seconds since 1970.'),
    model: text('The model.'),
    choices: list('The replies.', { type: 'object' }),
    'usage?': { type: 'object', description: 'Token counts.' },
  }),
  ResponseRequest: object("A request of OpenAI's responses.", {
    'model?': text('The model.'),
    input: anything('Text, or a list of items.'),
    'instructions?': text('System text; never shortened.'),
    'previous_response_id?': text('The response to continue from.'),
    'conversation?': anything('The conversation: its id, or an object with its id.'),
    'stream?': flag('True to stream the reply.'),
  }),
  Response: object('A response.', {
    id: text('Its id.'),
    object: { const: 'response' },
    status: text('Its final status.'),
    output: list('Items of the reply.', { type: 'object' }),
  }),
  NewConversation: fromZod(newConversation),
  ConversationUpdate: fromZod(conversationUpdate),
  Conversation: object('A conversation, stored as a session.', {
    id: text('Its id.'),
    object: { const: 'conversation' },
    created_at: integer('Time of creation, in seconds since 1970.'),
    metadata: { type: 'object', description: 'Metadata of its owner.' },
  }),
  DeletedConversation: object('A deleted conversation.', {
    id: text('Its id.'),
    object: { const: 'conversation.deleted' },
    deleted: { const: true },
  }),
  NewItems: fromZod(newItems),
  Item: object('An item of a conversation.', { id: text('Its id.'), type: text('Its type, such as `message`.') }),
  ItemList: object('A page of items.', {
    object: { const: 'list' },
    data: list('The items.', ref('Item')),
    first_id: anything('Id of the first item, or null.'),
    last_id: anything('Id of the last item, or null.'),
    has_more: flag('True when there are more.'),
  }),
  EmbeddingRequest: object("A request of OpenAI's embeddings.", {
    'model?': text('The model.'),
    input: anything('A text, or a list of texts.'),
  }),
  EmbeddingList: object('Embeddings.', {
    object: { const: 'list' },
    data: list('One per text.', { type: 'object' }),
    model: text('The model.'),
  }),
  ModelList: object('Models of the upstream.', {
    'object?': { const: 'list' },
    data: list('The models.', ref('Model')),
  }),
  Model: object('A model.', { id: text('Its id.') }),
  MessagesRequest: object("A request of Anthropic's messages.", {
    model: text('The model.'),
    messages: { ...list('The whole conversation, or only the new messages.', { type: 'object' }), minItems: 1 },
    'max_tokens?': integer('Maximum length of the reply.'),
    'system?': anything('Text, or a list of blocks; never shortened.'),
    'stream?': flag('True to stream the reply.'),
  }),
  AnthropicMessage: object('A message.', {
    id: text('Its id.'),
    type: { const: 'message' },
    role: { const: 'assistant' },
    content: list('Blocks of the reply.', { type: 'object' }),
    model: text('The model.'),
  }),
  TokenCount: object('Token count of a request.', {
    input_tokens: integer('Prompt tokens, as counted by the upstream.'),
  }),
  RpcMessage: object('A JSON-RPC 2.0 message.', {
    jsonrpc: { const: '2.0' },
    'id?': anything('Identifies the response; notifications have none.'),
    'method?': text('The method, such as `tools/call`.'),
    'params?': { type: 'object', description: 'The parameters.' },
    'result?': { type: 'object', description: 'The result.' },
  }),
  RpcError: object('A JSON-RPC error.', {
    jsonrpc: { const: '2.0' },
    id: anything('Id of the request; null when it was not read.'),
    error: object('The error.', {
      code: { type: 'integer', description: 'The error code.' },
      message: text('The problem and the remedy.'),
    }),
  }),
}
