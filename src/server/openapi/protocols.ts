import { anything, flag, list, object, oneOf, ref, type Schema, text, whole } from './schema.ts'

/** Objects of the protocols of others, as far as memory reads them; everything else in them goes to the model server as it is. */
export const protocolSchemas: Readonly<Record<string, Schema>> = {
  ChatRequest: object('A chat completion to make, as OpenAI takes it.', {
    'model?': text("The model; the upstream's own choice when left out."),
    messages: { ...list('The conversation: all of it, or only what is new.', ref('ChatMessage')), minItems: 1 },
    'stream?': flag('Whether the reply comes piece by piece.'),
    'tools?': list('Tools the model may ask for; never shortened.', { type: 'object' }),
    'user?': text('May name the session where neither the address nor a header does.'),
  }),
  ChatMessage: object('A message.', {
    role: oneOf('Who says it.', 'system', 'developer', 'user', 'assistant', 'tool', 'function'),
    'content?': anything('Text, a list of parts, or null.'),
  }),
  ChatCompletion: object('A chat completion.', {
    id: text('Its id.'),
    object: { const: 'chat.completion' },
    created: whole('When, in seconds since 1970.'),
    model: text('The model.'),
    choices: list('The replies.', { type: 'object' }),
    'usage?': { type: 'object', description: 'What it cost in tokens.' },
  }),
  ResponseRequest: object('A response to make, as OpenAI takes it.', {
    'model?': text('The model.'),
    input: anything('Text, or a list of items.'),
    'instructions?': text('What the model is told first; never shortened.'),
    'previous_response_id?': text('The response it goes on from.'),
    'conversation?': anything('The conversation it belongs to: its id, or an object with it.'),
    'stream?': flag('Whether it comes piece by piece.'),
  }),
  Response: object('A response.', {
    id: text('Its id.'),
    object: { const: 'response' },
    status: text('How it ended.'),
    output: list('What the model says.', { type: 'object' }),
  }),
  ConversationRequest: object('A conversation to begin or to change.', {
    'items?': list('What was said before.', { type: 'object' }),
    'metadata?': { type: 'object', description: "Notes of one's own.", additionalProperties: { type: 'string' } },
  }),
  Conversation: object('A conversation, which is a session under another name.', {
    id: text('Its id.'),
    object: { const: 'conversation' },
    created_at: whole('When, in seconds since 1970.'),
    metadata: { type: 'object', description: "Notes of one's own." },
  }),
  DeletedConversation: object('A conversation that is gone.', {
    id: text('Its id.'),
    object: { const: 'conversation.deleted' },
    deleted: { const: true },
  }),
  ItemsRequest: object('Items to add.', { items: list('What was said.', { type: 'object' }) }),
  Item: object('An item of a conversation.', { id: text('Its id.'), type: text('What it is, such as `message`.') }),
  ItemList: object('Items, page by page.', {
    object: { const: 'list' },
    data: list('The items.', ref('Item')),
    first_id: anything('The id of the first one, or null.'),
    last_id: anything('The id of the last one, or null.'),
    has_more: flag('Whether there are more.'),
  }),
  EmbeddingRequest: object('Texts to turn into numbers, as OpenAI takes it.', {
    'model?': text('The model.'),
    input: anything('A text, or a list of texts.'),
  }),
  EmbeddingList: object('Texts as numbers.', {
    object: { const: 'list' },
    data: list('One for each text.', { type: 'object' }),
    model: text('The model.'),
  }),
  ModelList: object('The models the upstream has.', {
    'object?': { const: 'list' },
    data: list('The models.', ref('Model')),
  }),
  Model: object('A model.', { id: text('Its id, by which it is asked for.') }),
  MessagesRequest: object('A message to make, as Anthropic takes it.', {
    model: text('The model.'),
    messages: { ...list('The conversation: all of it, or only what is new.', { type: 'object' }), minItems: 1 },
    'max_tokens?': whole('How long the reply may be.'),
    'system?': anything('Text, or a list of blocks; never shortened.'),
    'stream?': flag('Whether it comes piece by piece.'),
  }),
  AnthropicMessage: object('A message.', {
    id: text('Its id.'),
    type: { const: 'message' },
    role: { const: 'assistant' },
    content: list('What the model says.', { type: 'object' }),
    model: text('The model.'),
  }),
  TokenCount: object('What a request would cost.', {
    input_tokens: whole('Tokens of the prompt, as the upstream counts them.'),
  }),
  RpcMessage: object('A message of JSON-RPC 2.0.', {
    jsonrpc: { const: '2.0' },
    'id?': anything('What tells the answer; notifications have none.'),
    'method?': text('What is asked, such as `tools/call`.'),
    'params?': { type: 'object', description: 'What it is asked with.' },
    'result?': { type: 'object', description: 'The answer.' },
  }),
  RpcError: object('An error, as JSON-RPC tells it.', {
    jsonrpc: { const: '2.0' },
    id: anything('The request it belongs to; null if that was not read.'),
    error: object('What went wrong.', {
      code: { type: 'integer', description: 'The number of the kind of error.' },
      message: text('What to do about it.'),
    }),
  }),
}
