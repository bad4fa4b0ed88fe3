import type { Schema } from './schema.ts'

const question = { role: 'user', content: 'My cat is called Miso.' }
const at = 1_772_323_200_000

/** Examples by name of the schema. */
const examples: Readonly<Record<string, unknown>> = {
  ChatRequest: { model: 'gpt-5.4-mini', messages: [question] },
  ChatCompletion: {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: at / 1_000,
    model: 'gpt-5.4-mini',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Nice name!' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 },
  },
  ResponseRequest: { model: 'gpt-5.4-mini', input: 'My cat is called Miso.' },
  MessagesRequest: { model: 'claude-sonnet-5', max_tokens: 200, messages: [question] },
  AnthropicMessage: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'Nice name!' }],
    model: 'claude-sonnet-5',
  },
  EmbeddingRequest: { model: 'text-embedding-3-small', input: 'My cat is called Miso.' },
  RpcMessage: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  NewSession: { key: 'acme:bob', idle: 7_200_000, metadata: { channel: 'web' } },
  NewKnowledge: { category: 'domain', key: 'opening hours', value: 'Monday to Friday, nine to five' },
  RecordUpdate: { important_data: { user_preferences: { theme: 'dark' } } },
  Message: { id: 'm1', sequence: 1, at, role: 'user', content: 'My cat is called Miso.', tokens: 12 },
  Error: {
    error: {
      message: 'Not found, or not visible with this key.',
      type: 'not_found_error',
      param: null,
      code: 'not_found',
    },
  },
}

/** Adds an example to each schema that has one. */
export const addExamples = (schemas: Readonly<Record<string, Schema>>): Readonly<Record<string, Schema>> =>
  Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [
      name,
      Object.hasOwn(examples, name) ? { ...schema, examples: [examples[name]] } : schema,
    ]),
  )
