import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CallToolResult, Client } from '@modelcontextprotocol/client'
import { describe, expect } from 'vitest'
import { isCampaign } from '../context/campaign.ts'
import { createTempFolder } from '../fault/tempFolder.ts'
import { codingConversation } from '../handoff/harness.ts'
import { verifies } from '../requirements/verifies.ts'
import { connectStdio, protocols, textOf } from './harness.ts'

type Result = Record<string, unknown>

/** Calls tools with a client that validates every result with the output schema, and tracks the tools not called yet. */
async function createCaller(client: Client) {
  const { tools } = await client.listTools()
  const uncalled = new Set(tools.map(({ name }) => name))
  const call = async (name: string, args: object = {}): Promise<Result> => {
    const result = (await client.callTool({ name, arguments: { ...args } })) as CallToolResult
    expect([name, result.isError ?? false, result.isError === true ? textOf(result) : '']).toEqual([name, false, ''])
    uncalled.delete(name)
    return result.structuredContent as Result
  }
  return { call, uncalled }
}

/** Takes sessions through all states: saved, extended, marked, restored, continued, full, deleted. */
async function callSessionTools(call: (name: string, args?: object) => Promise<Result>, file: string): Promise<void> {
  const messages = [
    ...codingConversation,
    { role: 'assistant', content: null, tool_calls: [{ id: 'c', function: { name: 'look', arguments: '{}' } }] },
  ]
  const details = {
    contextItems: [{ category: 'task', content: 'Call Zoe.', importance: 9.5 }],
    fileReferences: [{ path: file }],
    title: 'The umlaut',
  }
  const state = { activeProject: 'portal', enabledMcps: ['git'], settings: { deep: [{ theme: null }] } }
  const { sessionId } = await call('save_session', { messages, tokenCount: 40.5, workspaceState: state, ...details })
  await call('save_session', { sessionId, conversationContext: `User: As in ${sessionId}, and session_1.` })
  await call('mark_important', { sessionId, text: 'E-4711' })
  writeFileSync(file, 'export const changed = true\n')
  const restored = await call('restore_session', { sessionId, tokenBudget: 600, query: 'E-4711' })
  expect(restored).toMatchObject({ fileReferences: [{ path: file, status: 'changed' }] })
  await call('save_session', {
    sessionId: restored.sessionId,
    conversationContext: 'User: Back to E-4711 and encodePassword.',
  })
  await call('restore_session', { tokenBudget: 1 })
  await call('session_analytics', { sessionId })
  await call('get_session', { sessionId })
  await call('get_session', { sessionId: restored.sessionId })
  const { sessionId: talk } = await call('append_messages', {
    messages: [{ role: 'user', content: 'The login page of billing-portal fails with E-4711.' }],
  })
  await call('get_session', { sessionId: talk })
  await call('append_messages', {
    sessionId: talk,
    messages: [{ role: 'user', content: 'word '.repeat(700) }],
    limit: 1_000,
  })
  await call('get_context', { sessionId: talk, budget: 200, query: 'E-4711' })
  for (const input of [{ sessionId: talk }, { messages }, { text: 'Hello.' }, { tokenCount: 0.5, limit: 1 }])
    await call('check_tokens', input)
  await call('list_sessions', { limit: 1, offset: 1 })
  // A client may overwrite the entity of a session with invalid values; listing and restoring must still work.
  const invalidProperties = {
    created_at: '2126-01-01T00:00:00.000Z',
    token_count: -1.5,
    message_count: 2.5,
    title: 7,
    continued_from: {},
    restored: { preservation: 5 },
  }
  await call('upsert_entity', { type: 'session', id: talk, properties: invalidProperties })
  for (const name of ['list_sessions', 'restore_session']) await call(name)
  for (const name of ['get_session', 'session_analytics', 'restore_session']) await call(name, { sessionId: talk })
  await call('delete_session', { sessionId: talk })
}

async function callKnowledgeTools(call: (name: string, args?: object) => Promise<Result>): Promise<void> {
  await call('remember', { key: 'hours', value: { open: 9 } })
  await call('remember', { key: 'language', value: 'German', category: 'user_preference', person: 'ann' })
}

async function callGraphTools(call: (name: string, args?: object) => Promise<Result>): Promise<void> {
  await call('upsert_entity', { type: 'person', id: 'ann', properties: { deep: [{ a: null }] } })
  await call('upsert_entity', { type: 'person', id: 'bob', properties: {} })
  await call('create_relationship', { from_id: 'ann', to_id: 'bob', type: 'KNOWS', properties: { since: 1999 } })
  await call('query_entities', {
    filters: [{ property: 'deep', op: 'exists', value: true }],
    sort: [{ by: 'created_at', order: 'desc' }],
  })
  await call('query_relationships', { from_id: 'ann' })
  await call('create_entities', { entities: [{ name: 'Ann', entityType: 'person', observations: ['likes tea'] }] })
  await call('create_relations', { relations: [{ from: 'Ann', to: 'Ann', relationType: 'knows' }] })
  await call('add_observations', { observations: [{ entityName: 'Ann', contents: ['is here'] }] })
  await call('search_nodes', { query: 'tea' })
  await call('open_nodes', { names: ['Ann', 'Nobody'] })
  await call('read_graph')
  await call('delete_observations', { deletions: [{ entityName: 'Ann', observations: ['is here'] }] })
  await call('delete_relations', { relations: [{ from: 'Ann', to: 'Ann', relationType: 'knows' }] })
  await call('delete_entities', { entityNames: ['Ann'] })
}

describe('tool results', () => {
  for (const protocol of isCampaign ? protocols : ([protocols[0], protocols[2]] as const))
    verifies(['H-04', 'H-06', 'S-04'], `match the output schema of every tool (${protocol})`, async () => {
      using folder = createTempFolder()
      const file = join(folder.path, 'app.ts')
      writeFileSync(file, 'export const changed = false\n')
      const args = ['--store', `sqlite:${join(folder.path, 'a.db')}`, '--allow', folder.path, '--write']
      await using connection = await connectStdio(protocol, args, {
        THREADKEEP_AUDIT_LOG: join(folder.path, 'audit.jsonl'),
      })
      const { call, uncalled } = await createCaller(connection.client)
      await callSessionTools(call, file)
      await callKnowledgeTools(call)
      await callGraphTools(call)
      await call('create_directory', { path: join(folder.path, 'notes') })
      await call('write_file', { path: join(folder.path, 'notes', 'a.txt'), text: 'One.\nTwo.\n' })
      await call('read_file', { path: join(folder.path, 'notes', 'a.txt'), from: 2, lines: 1 })
      await call('list_directory', { path: folder.path })
      expect([...uncalled]).toEqual([])
    })
})
