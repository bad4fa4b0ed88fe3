import { maxMessageCharacters } from '../../../src/domain/chat.ts'
import type { ProbeClient } from './stallProbe.ts'

/** Sends a text through an endpoint; `session` has not been used before. */
export type StallEndpoint = (client: ProbeClient, text: string, session: string) => Promise<void>

const question = 'What did the build report about the missing import?'
const chat = (key: string): string => `/v1/${key}/chat/completions`
const template = (name: string): Readonly<Record<string, string>> => ({ 'x-threadkeep-template': name })
const thin = { 'x-threadkeep-history': 'thin' }
const ask = (...messages: readonly unknown[]) => ({ model: 'gpt-4o', messages })
const user = (content: unknown) => ({ role: 'user', content })

/** A tool call and its result, in the format of chat completions. */
const toolTurn = (args: string, output: string): readonly unknown[] => [
  user('Run the tests.'),
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'run', arguments: args } }],
  },
  { role: 'tool', tool_call_id: 'c1', content: output },
]

/** Splits a text into messages of equal length. */
const pieces = (text: string, count: number): readonly string[] => {
  const length = Math.max(1, Math.ceil(text.length / count))
  return Array.from({ length: Math.ceil(text.length / length) }, (_, index) =>
    text.slice(index * length, (index + 1) * length),
  )
}

/** Splits a text into messages about as long as they may be, and at least two. */
const longPieces = (text: string): readonly string[] =>
  pieces(text, Math.max(2, Math.ceil(text.length / (maxMessageCharacters - 1_000))))

/** The pieces of a text as messages of the user and the assistant in turn; the last one is of the user. */
const longMessages = (text: string): readonly unknown[] => [
  ...longPieces(text).map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content })),
  user('And then?'),
]

/** A workspace for each session: the search index of one with all texts would fill the heap. */
const workspaceOf = (session: string): string => session.replace(/:.*/, '')

/** Stores a text in a session and asks a client's next question, which recalls, shortens and summarises. */
const converse =
  (profile: string | undefined, first: (text: string) => readonly unknown[]): StallEndpoint =>
  async (client, text, session) => {
    const headers = profile === undefined ? {} : template(profile)
    await client.post(chat(session), ask(...first(text)), headers)
    await client.post(chat(session), ask(user(question)), { ...headers, ...thin })
  }

/** Form of a text in the request of an endpoint. */
export const encodingOf = (endpoint: string): ((text: string) => string) => {
  if (endpoint === 'file') return (text) => text
  return endpoint.startsWith('chat, tool arguments') ? (text) => JSON.stringify(JSON.stringify(text)) : JSON.stringify
}

/** Endpoints that take a text in several messages, and so one of any length. */
export const splittingEndpoints: Readonly<Record<string, StallEndpoint>> = {
  'chat, 200 messages, small budget': converse('small', (text) =>
    pieces(text, 200).flatMap((content) => [user(content), { role: 'assistant', content: 'Noted.' }]),
  ),
  'chat, 200 messages, support': converse('support', (text) =>
    pieces(text, 200).flatMap((content) => [user(content), { role: 'assistant', content: 'Noted.' }]),
  ),
  'chat, long messages': converse(undefined, longMessages),
  'chat, long messages, small budget': converse('small', longMessages),
  'chat, long messages, resent': async (client, text, session) => {
    const first = longMessages(text)
    await client.post(chat(session), ask(...first))
    await client.post(chat(session), ask(...first, { role: 'assistant', content: 'Fine.' }, user(question)))
  },
  'chat, long messages, without memory': async (client, text) => {
    await client.post('/v1/chat/completions', ask(...longMessages(text)))
  },
  'chat, long messages of many parts': converse(undefined, (text) =>
    longPieces(text).map((piece) => user(pieces(piece, 300).map((part) => ({ type: 'text', text: part })))),
  ),
  'chat, long tool outputs, small budget': converse('small', (text) =>
    longPieces(text).flatMap((piece) => toolTurn('{}', piece)),
  ),
  'responses, long items': async (client, text, session) => {
    await client.post(`/v1/${session}/responses`, { model: 'gpt-4o', input: longMessages(text) })
    await client.post(`/v1/${session}/responses`, { model: 'gpt-4o', input: question })
  },
  'messages, long messages': async (client, text, session) => {
    const body = { model: 'claude-sonnet-4', max_tokens: 100, messages: longMessages(text) }
    await client.post(`/v1/${session}/messages`, body, template('small'))
  },
}

export const stallEndpoints: Readonly<Record<string, StallEndpoint>> = {
  ...splittingEndpoints,
  'chat, user': converse(undefined, (text) => [user(text)]),
  'chat, user, small budget': converse('small', (text) => [user(text)]),
  'chat, user, support': converse('support', (text) => [user(text)]),
  'chat, user, agent': converse('agent', (text) => [user(text)]),
  'chat, system': converse(undefined, (text) => [{ role: 'system', content: text }, user('Hello')]),
  'chat, tool output, small budget': converse('small', (text) => toolTurn('{}', text)),
  'chat, tool arguments, small budget': converse('small', (text) => toolTurn(JSON.stringify({ text }), 'done')),
  'chat, many parts': converse(undefined, (text) => [
    user(pieces(text, 500).map((part) => ({ type: 'text', text: part }))),
  ]),
  'chat, reply': async (client, text, session) => {
    client.setReply(text)
    await client.post(chat(session), ask(user('Hello')), template('small')).finally(() => client.setReply('Fine.'))
    await client.post(chat(session), ask(user(question)), thin)
  },
  'chat, resent': async (client, text, session) => {
    const first = [user(text), { role: 'assistant', content: 'Fine.' }]
    await client.post(chat(session), ask(user(text)))
    await client.post(chat(session), ask(...first, user(question)))
    await client.post(chat(session), ask(...first, user(`${text}.`)))
  },
  'chat, without memory': async (client, text) => {
    await client.post('/v1/chat/completions', ask(user(text)))
  },
  'responses, input': async (client, text, session) => {
    await client.post(`/v1/${session}/responses`, { model: 'gpt-4o', input: text, instructions: text.slice(0, 1_000) })
    await client.post(`/v1/${session}/responses`, { model: 'gpt-4o', input: question })
  },
  'messages, tool result': async (client, text, session) => {
    const messages = [
      user('Run it.'),
      { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'run', input: {} }] },
      user([{ type: 'tool_result', tool_use_id: 't1', content: text }]),
    ]
    await client.post(
      `/v1/${session}/messages`,
      { model: 'claude-sonnet-4', max_tokens: 100, messages },
      template('small'),
    )
  },
  'context and search': async (client, text, session) => {
    await client.post(chat(session), ask(user(text)), template('small'))
    await client.get(`/api/sessions/${session}/context?budget=4000&query=${encodeURIComponent(question)}`)
    const scope = session.split(':')[0]
    await client.get(`/api/scopes/${scope}/search?q=${encodeURIComponent(question)}`)
    await client.get(`/api/sessions/${session}/receipts`)
    await client.get(`/api/sessions/${session}/messages`)
  },
  'long query': async (client, text, session) => {
    await client.post(chat(session), ask(user('We use the staging cluster.')))
    await client.post(chat(session), ask(user(text)), thin)
  },
  knowledge: async (client, text, session) => {
    const scope = session.split(':')[0]
    await client.post(`/api/scopes/${scope}/knowledge`, { category: 'domain', key: 'long', value: text })
    await client.post(chat(session), ask(user(question)))
  },
  file: async (client, text, session) => {
    const scope = session.split(':')[0] as string
    await client.upload(`/api/scopes/${scope}/files`, 'notes.txt', text)
    await client.post(chat(scope), ask(user(question)))
    await client.get(`/api/scopes/${scope}/search?q=${encodeURIComponent(question)}`)
  },
  'mcp save, text': async (client, text, session) => {
    const workspace = workspaceOf(session)
    await client.callTool('save_session', { workspace, conversationContext: text })
    await client.callTool('restore_session', { workspace, tokenBudget: 2_000, query: question })
  },
  'mcp save, messages': async (client, text, session) => {
    const workspace = workspaceOf(session)
    const messages = pieces(text, 100).map((content, index) => ({ role: index % 2 ? 'assistant' : 'user', content }))
    await client.callTool('save_session', { workspace, messages })
    await client.callTool('restore_session', { workspace, tokenBudget: 2_000 })
  },
  'mcp append': async (client, text, session) => {
    await client.callTool('append_messages', { workspace: workspaceOf(session), messages: [user(text)] })
  },
  'mcp observations': async (client, text, session) => {
    const observations = pieces(text, 50)
    await client.callTool('create_entities', { entities: [{ name: session, entityType: 'note', observations }] })
    await client.callTool('add_observations', { observations: [{ entityName: session, contents: [text] }] })
    await client.callTool('search_nodes', { query: 'missing import' })
    await client.callTool('search_nodes', { query: text.slice(0, 10_000) })
  },
  'mcp remember': async (client, text, session) => {
    await client.callTool('remember', {
      workspace: workspaceOf(session),
      category: 'domain',
      key: 'long',
      value: text,
    })
  },
}
