import { join } from 'node:path'
import type { CallToolResult, Client } from '@modelcontextprotocol/client'
import { describe, expect } from 'vitest'
import { AuditLog } from '../../src/mcp/files/audit.ts'
import { FileAccess } from '../../src/mcp/files/fileAccess.ts'
import { messageTools } from '../../src/mcp/tools/messages.ts'
import { referenceTools } from '../../src/mcp/tools/reference.ts'
import { sessionTools } from '../../src/mcp/tools/sessions.ts'
import type { ToolContext, ToolInvocation } from '../../src/mcp/tools/tool.ts'
import { createTempFolder } from '../fault/tempFolder.ts'
import { codingConversation, createHarness, type HandoffHarness, noon } from '../handoff/harness.ts'
import { verifies } from '../requirements/verifies.ts'
import { getPostgres } from '../support/postgres.ts'
import { connectStdio, textOf } from './harness.ts'

/** Runs tools as the server does, and collects log messages and changed URIs. */
function createToolRunner(at: HandoffHarness, folder: string, workspace = 'billing') {
  const logged: string[] = []
  const changedUris: string[] = []
  const files = new FileAccess({
    allow: [],
    users: {},
    write: false,
    audit: new AuditLog(join(folder, 'audit.jsonl')),
    clock: () => at.time.now,
  })
  const context = {
    ...at,
    files,
    clock: () => at.time.now,
    notifyChanged: (_: string, uri: string) => void changedUris.push(uri),
  } as unknown as ToolContext
  const invocation: ToolInvocation = {
    context,
    workspace,
    client: 'ann',
    signal: new AbortController().signal,
    progress: () => undefined,
    log: (level, message) => void logged.push(`${level}: ${message}`),
  }
  const run = (name: string, input: Record<string, unknown>) => {
    const tool = [...sessionTools, ...messageTools].find((one) => one.name === name)
    if (tool === undefined) throw new Error(`There is no tool ${name}.`)
    return tool.run(tool.input.parse(input), invocation)
  }
  return { run, logged, changedUris }
}

const text = 'User: The login page of billing-portal fails with E-4711.\nAssistant: It is the umlaut.'

describe('session tools', () => {
  verifies(
    ['H-04', 'H-14'],
    'save_session with keep: needed › tells what it left out, and restore_session answers',
    async () => {
      using folder = createTempFolder()
      await using at = await createHarness({ settings: { budget: 600 } })
      const { run } = createToolRunner(at, folder.path)
      const messages = Array.from({ length: 200 }, (_, index) => ({
        role: 'user',
        content:
          index === 50 ? 'Mel calls her two cats Oliver and Luna.' : `Nothing much on day ${index}, as grey as ever.`,
      }))
      const saved = await run('save_session', { messages, keep: 'needed' })
      expect(saved.structured).toMatchObject({ leftOut: { messages: expect.any(Number), tokens: expect.any(Number) } })
      expect(saved.text).toMatch(/^Saved as .*\nLeft out \d+ tokens of \d+ messages\.$/)
      const restored = await run('restore_session', { tokenBudget: 500, query: "What are Mel's pets called?" })
      expect(restored.text).toContain('Oliver and Luna')
      const full = await run('save_session', { conversationContext: text })
      const { sessionId } = full.structured as { sessionId: string }
      await run('restore_session', { sessionId })
      expect((await run('get_session', { sessionId })).text).toMatch(
        /: 100 % similar in wording, 100 % of the names, numbers and constraints$/,
      )
    },
  )

  const stores = {
    'a file': async (folder: string) => `sqlite:${join(folder, 'a.db')}`,
    PostgreSQL: async () => (await getPostgres()).createDatabase(),
  }
  for (const [name, createUrl] of Object.entries(stores))
    verifies(
      ['H-04', 'S-04'],
      `save, list, show, restore and delete sessions over the protocol, in ${name}`,
      async () => {
        using folder = createTempFolder()
        const store = ['--store', await createUrl(folder.path)]
        await using first = await connectStdio('2026-07-28', store)
        const call = async (client: Client, name: string, input: Record<string, unknown>): Promise<CallToolResult> =>
          (await client.callTool({ name, arguments: input })) as CallToolResult
        const { tools } = await first.client.listTools()
        for (const { name } of [...sessionTools, ...messageTools]) {
          const tool = tools.find((one) => one.name === name)
          expect([
            name,
            tool?.title !== undefined,
            tool?.annotations !== undefined,
            tool?.outputSchema !== undefined,
          ]).toEqual([name, true, true, true])
        }
        // The reference tools have the schemas of the reference server.
        for (const { name, inputSchema } of tools.filter(
          (one) => !referenceTools.some(({ name: known }) => known === one.name),
        )) {
          const undescribed = Object.entries(inputSchema.properties ?? {}).filter(
            ([, schema]) => (schema as { description?: string }).description === undefined,
          )
          expect([name, undescribed, inputSchema.additionalProperties]).toEqual([name, [], false])
        }
        const saved = await call(first.client, 'save_session', {
          conversationContext: text,
          tokenCount: 40,
          workspaceState: { activeProject: 'portal' },
        })
        const { sessionId } = saved.structuredContent as { sessionId: string }
        expect(saved.structuredContent).toMatchObject({
          sessionId: expect.stringMatching(/^session_\d{13}_[0-9a-f]{8}$/),
          workspaceId: 'default',
          messages: 2,
          added: 2,
          tokenCount: 40,
        })
        const elsewhere = await call(first.client, 'save_session', { conversationContext: text, workspaceId: 'portal' })
        expect(elsewhere.structuredContent).toMatchObject({ workspaceId: 'portal' })
        await first.close()
        // Another process continues.
        await using second = await connectStdio('2025-06-18', store)
        await second.client.listTools()
        expect((await call(second.client, 'list_sessions', {})).structuredContent).toMatchObject({
          total: 1,
          sessions: [{ sessionId, messageCount: 2 }],
        })
        const restored = await call(second.client, 'restore_session', { tokenBudget: 2_000 })
        expect(restored.structuredContent).toMatchObject({
          continues: sessionId,
          budget: 2_000,
          workspaceState: { activeProject: 'portal' },
          fileReferences: [],
        })
        const { context, sessionId: next } = restored.structuredContent as { context: string; sessionId: string }
        expect(textOf(restored)).toBe(context)
        expect(
          context.endsWith(
            `\nThis chat is session ${next}, which goes on from ${sessionId}. Save it with save_session and this sessionId.`,
          ),
        ).toBe(true)
        expect((await call(second.client, 'get_session', { sessionId })).structuredContent).toMatchObject({
          sessionId,
          chain: [{ sessionId }],
          preservation: { facts: 1 },
        })
        await call(second.client, 'save_session', {
          sessionId: `default:${next}`,
          conversationContext: 'User: On we go.',
        })
        expect((await call(second.client, 'session_analytics', { sessionId })).structuredContent).toMatchObject({
          sessions: [sessionId, next],
        })
        const details = textOf(await call(second.client, 'get_session', { sessionId }))
        expect(details).toContain(`\nChain: ${sessionId} → ${next}\nRestored `)
        const misspelled = await call(second.client, 'restore_session', { sessionID: sessionId }).catch(
          (error: unknown) => ({
            isError: true,
            message: String(error),
          }),
        )
        expect([misspelled.isError, JSON.stringify(misspelled).includes('sessionID')]).toEqual([true, true])
        const two = await call(second.client, 'list_sessions', { workspace: 'default', workspaceId: 'portal' })
        expect(textOf(two)).toBe('workspace and workspaceId name different workspaces. Give only one of them.')
        const stranger = await call(second.client, 'get_session', { sessionId, workspace: 'other' })
        const nowhere = await call(second.client, 'get_session', { sessionId: 'session_1', workspace: 'other' })
        expect([stranger.isError, textOf(stranger).replace(sessionId, 'session_1')]).toEqual([true, textOf(nowhere)])
        expect((await call(second.client, 'delete_session', { sessionId })).structuredContent).toEqual({
          sessionId,
          deleted: true,
        })
        expect(textOf(await call(second.client, 'get_session', { sessionId }))).toBe(
          `There is no session "${sessionId}" in this workspace. list_sessions tells which there are.`,
        )
      },
      60_000,
    )

  verifies('H-05', 'restore a text within the token budget, including the session note', async () => {
    using folder = createTempFolder()
    await using at = await createHarness()
    const { run, changedUris } = createToolRunner(at, folder.path)
    await run('save_session', { messages: codingConversation })
    expect(changedUris).toEqual(['threadkeep://sessions/billing', `threadkeep://sessions/billing/session_${noon}`])
    for (const tokenBudget of [20, 200, 999, 1_000, 1_100, 8_000]) {
      const { text: restoredText, structured } = await run('restore_session', { tokenBudget })
      expect([tokenBudget, at.memory.tokenizer.count(restoredText) <= tokenBudget]).toEqual([tokenBudget, true])
      expect(structured.budget).toBe(tokenBudget)
      for (const { content } of structured.contextItems as { content: string }[])
        expect(content.length).toBeLessThanOrEqual(201)
    }
  })

  verifies('H-02', 'warn once at the threshold, and save an extended session automatically', async () => {
    using folder = createTempFolder()
    await using at = await createHarness()
    const { run, logged } = createToolRunner(at, folder.path)
    expect((await run('check_tokens', { tokenCount: 23_899, limit: 32_000 })).text).toBe(
      '23899 of 32000 tokens. 8101 are left; no need to save yet.',
    )
    expect((await run('check_tokens', { tokenCount: 24_000, limit: 32_000 })).text).toBe(
      '24000 of 32000 tokens. A save is due: call save_session now.',
    )
    await run('check_tokens', { tokenCount: 25_000, limit: 32_000 })
    expect(logged).toEqual([
      'warning: The chat has 24000 of 32000 tokens; a save is due from 23900 tokens. Call save_session now.',
    ])
    const { structured, text: appendedText } = await run('append_messages', {
      messages: [{ role: 'user', content: 'word '.repeat(700) }],
      limit: 1_000,
    })
    expect(structured).toMatchObject({
      sessionId: `session_${noon}`,
      messageIds: ['m1'],
      saved: { messages: 1 },
      reading: { saveNow: true, crossed: true },
    })
    expect([appendedText.includes('was saved'), logged.length, logged[1]?.includes('It was saved')]).toEqual([
      true,
      2,
      true,
    ])
    const more = await run('append_messages', {
      sessionId: `session_${noon}`,
      messages: [{ role: 'user', content: 'More.' }],
      limit: 1_000,
    })
    expect(more.text).toMatch(
      /^Stored 1 message in .* tokens\. The session is saved, including later messages; continue in a new chat with restore_session\.$/,
    )
    expect((await run('list_sessions', {})).structured).toMatchObject({ total: 1 })
  })

  verifies('H-04', 'list sessions that were only extended', async () => {
    using folder = createTempFolder()
    await using at = await createHarness()
    const { run } = createToolRunner(at, folder.path)
    await run('append_messages', { messages: codingConversation.slice(0, 1) })
    expect((await run('list_sessions', {})).text).toBe(
      `session_${noon}  2026-11-15T12:00:00.000Z  1 message (not summarized yet)  The login page of billing-portal fails with error E-4711 when the password has …\n1 in total.`,
    )
  })

  verifies('H-04', 'return the context of a session within the budget, and mark messages', async () => {
    using folder = createTempFolder()
    await using at = await createHarness()
    const { run } = createToolRunner(at, folder.path)
    const sessionId = `session_${noon}`
    await run('append_messages', { messages: codingConversation })
    const { structured } = await run('get_context', {
      sessionId: `billing:${sessionId}`,
      budget: 100,
      query: 'What about E-4711?',
    })
    expect([(structured.tokens as number) <= 100, structured.budget]).toEqual([true, 100])
    const marked = await run('mark_important', { sessionId, text: 'E-4711' })
    expect(marked.structured).toMatchObject({ sessionId, marked: ['m1'], added: 1 })
    expect(marked.text).toBe(
      'Marked: "The login page of billing-portal fails with error E-4711 when the password has an umlaut. Please fix src/login/encode.ts…". Marked in total: 1 message.',
    )
    await expect(run('get_context', { sessionId: 'nowhere' })).rejects.toThrow(
      'There is no session "nowhere" in this workspace.',
    )
  })

  verifies('H-11', 'report a session as not saved if the store fails', async () => {
    using folder = createTempFolder()
    const fault: { code?: 'full' | undefined } = { code: 'full' }
    await using at = await createHarness({ fault })
    const { run } = createToolRunner(at, folder.path)
    const { text: savedText, structured } = await run('save_session', { messages: codingConversation })
    expect([savedText.startsWith('NOT saved yet: the store fails.'), structured.degraded]).toEqual([
      true,
      'not durable',
    ])
    fault.code = undefined
  })

  verifies('H-09', 'reject a workspaceId other than the resolved workspace', async () => {
    using folder = createTempFolder()
    await using at = await createHarness()
    const { run } = createToolRunner(at, folder.path)
    await at.handoff.save('other', { messages: codingConversation })
    await expect(run('restore_session', { workspaceId: 'other' })).rejects.toThrow(
      'Workspace "other" was not found. Give it as workspace if you may use it.',
    )
    expect((await run('list_sessions', { workspaceId: 'billing' })).structured).toEqual({ sessions: [], total: 0 })
  })
})
