import type { Json } from '../../src/domain/entry.ts'
import type { HttpStep } from './fuzz/input.ts'

const headers = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2025-06-18',
}

type Surface = (text: string, id: number) => Pick<HttpStep, 'method' | 'path'> & { readonly body: Json }
const call = (name: string, args: Json): ReturnType<Surface> => ({
  method: 'POST',
  path: '/mcp',
  body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
})
const post = (path: string, body: Json): ReturnType<Surface> => ({ method: 'POST', path, body })

/** Every way to store a text through the server. */
const surfaces: Readonly<Record<string, Surface>> = {
  chat: (text, id) =>
    post(`/v1/acme:s${id}/chat/completions`, { model: 'any', messages: [{ role: 'user', content: text }] }),
  'tool result': (text, id) =>
    post(`/v1/acme:s${id}/chat/completions`, {
      model: 'any',
      messages: [
        { role: 'user', content: 'Read it.' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'read', arguments: JSON.stringify({ text }) } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: text },
      ],
    }),
  responses: (text, id) => post(`/v1/acme:s${id}/responses`, { model: 'any', input: text }),
  messages: (text, id) =>
    post(`/v1/acme:s${id}/messages`, {
      model: 'any',
      max_tokens: 9,
      messages: [{ role: 'user', content: [{ type: 'text', text }] }],
    }),
  conversation: (text) => post('/v1/acme/conversations', { items: [{ role: 'user', content: text }] }),
  'conversation metadata': (text) => post('/v1/acme/conversations', { metadata: { note: text.slice(0, 500) } }),
  knowledge: (text, id) => post('/api/scopes/acme/knowledge', { category: 'domain', key: `k${id}`, value: text }),
  'nested knowledge': (text, id) =>
    post('/api/scopes/acme/knowledge', { category: 'domain', key: `k${id}`, value: { a: [{ b: text }] } }),
  'session metadata': (text, id) => post('/api/sessions', { key: `acme:m${id}`, metadata: { note: text } }),
  record: (text) => post('/api/sessions/acme:ann/record', { important_data: { user_preferences: { note: text } } }),
  summary: (text) => post('/api/sessions/acme:ann/record', { conversation_summary: text }),
  save_session: (text) => call('save_session', { messages: [{ role: 'user', content: text }] }),
  append_messages: (text) => call('append_messages', { messages: [{ role: 'user', content: text }] }),
  create_entities: (text, id) =>
    call('create_entities', { entities: [{ name: `n${id}`, entityType: 'x', observations: [text] }] }),
  add_observations: (text) => call('add_observations', { observations: [{ entityName: 'base', contents: [text] }] }),
  create_relations: (text) =>
    call('create_relations', { relations: [{ from: 'base', to: 'base', relationType: text }] }),
  upsert_entity: (text, id) => call('upsert_entity', { type: 'x', id: `u${id}`, properties: { note: text } }),
  remember: (text, id) => call('remember', { key: `r${id}`, value: text }),
}
/** Names of all surfaces. */
export const textSurfaces: readonly string[] = Object.keys(surfaces)

/** A request that stores a text, or JSON where the surface allows it, through a surface. */
export function toStep(surface: string, text: Json, id: number): HttpStep {
  const { body, ...request } = (surfaces[surface] as Surface)(text as string, id)
  return {
    surface: 'http',
    route: `text in ${surface}`,
    caller: 'acme',
    ...request,
    headers,
    body: JSON.stringify(body),
  }
}

/** Creates the entity that observations and relations are added to. */
export const baseEntityStep: HttpStep = {
  surface: 'http',
  route: 'base entity',
  caller: 'acme',
  method: 'POST',
  path: '/mcp',
  headers,
  body: JSON.stringify(
    call('create_entities', { entities: [{ name: 'base', entityType: 'x', observations: [] }] }).body,
  ),
}
