import { join } from 'node:path'
import type { CallToolResult, Client } from '@modelcontextprotocol/client'
import { describe, expect } from 'vitest'
import { Audit } from '../../src/mcp/files/audit.ts'
import { FileDesk } from '../../src/mcp/files/desk.ts'
import type { Call, Desk } from '../../src/mcp/tool.ts'
import { referenceTools } from '../../src/mcp/tools/reference.ts'
import { sessionTools } from '../../src/mcp/tools/sessions.ts'
import { talkTools } from '../../src/mcp/tools/talk.ts'
import { newFolder } from '../fault/tempFolder.ts'
import { coding, noon, type Stage, stage } from '../handoff/stage.ts'
import { verifies } from '../requirements/verifies.ts'
import { overStdio, textOf } from './serverStage.ts'

/** Runs a tool as the server would, and collects what it tells besides its answer. */
function desk(at: Stage, folder: string, workspace = 'billing') {
  const logged: string[] = []
  const changed: string[] = []
  const files = new FileDesk({
    allow: [],
    users: {},
    write: false,
    audit: new Audit(join(folder, 'audit.jsonl')),
    clock: () => at.time.now,
  })
  const means = {
    ...at,
    files,
    clock: () => at.time.now,
    changed: (_: string, uri: string) => void changed.push(uri),
  } as unknown as Desk
  const call: Call = {
    desk: means,
    workspace,
    client: 'ann',
    signal: new AbortController().signal,
    progress: () => undefined,
    log: (level, message) => void logged.push(`${level}: ${message}`),
  }
  const run = (name: string, input: Record<string, unknown>) => {
    const tool = [...sessionTools, ...talkTools].find((one) => one.name === name)
    if (tool === undefined) throw new Error(`There is no tool ${name}.`)
    return tool.run(tool.input.parse(input), call)
  }
  return { run, logged, changed }
}

const text = 'User: The login page of billing-portal fails with E-4711.\nAssistant: It is the umlaut.'

describe('the session tools', () => {
  verifies(
    ['H-04', 'S-04'],
    'save, list, show, restore and delete over the protocol, with results that fit their schemas',
    async () => {
      using folder = newFolder()
      const store = ['--store', `sqlite:${join(folder.path, 'a.db')}`]
      await using first = await overStdio('2026-07-28', store)
      const call = async (client: Client, name: string, input: Record<string, unknown>): Promise<CallToolResult> =>
        (await client.callTool({ name, arguments: input })) as CallToolResult
      const { tools } = await first.client.listTools()
      for (const { name } of [...sessionTools, ...talkTools]) {
        const tool = tools.find((one) => one.name === name)
        expect([
          name,
          tool?.title !== undefined,
          tool?.annotations !== undefined,
          tool?.outputSchema !== undefined,
        ]).toEqual([name, true, true, true])
      }
      // Those of the reference server are shown as it shows them.
      for (const { name, inputSchema } of tools.filter(
        (one) => !referenceTools.some(({ name: known }) => known === one.name),
      )) {
        const silent = Object.entries(inputSchema.properties ?? {}).filter(
          ([, schema]) => (schema as { description?: string }).description === undefined,
        )
        expect([name, silent, inputSchema.additionalProperties]).toEqual([name, [], false])
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
      // Another process goes on.
      await using second = await overStdio('2025-06-18', store)
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
      const looked = textOf(await call(second.client, 'get_session', { sessionId }))
      expect(looked).toContain(`\nChain: ${sessionId} → ${next}\nRestored `)
      const mistyped = await call(second.client, 'restore_session', { sessionID: sessionId }).catch(
        (error: unknown) => ({
          isError: true,
          told: String(error),
        }),
      )
      expect([mistyped.isError, JSON.stringify(mistyped).includes('sessionID')]).toEqual([true, true])
      const two = await call(second.client, 'list_sessions', { workspace: 'default', workspaceId: 'portal' })
      expect(textOf(two)).toBe(
        'workspace and workspaceId name two workspaces, and a call is about one. Give one of them.',
      )
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

  verifies(
    'H-05',
    'restore a text that has no more tokens than the budget, with what it says of the session',
    async () => {
      using folder = newFolder()
      await using at = await stage()
      const { run, changed } = desk(at, folder.path)
      await run('save_session', { messages: coding })
      expect(changed).toEqual(['threadkeep://sessions/billing', `threadkeep://sessions/billing/session_${noon}`])
      for (const tokenBudget of [20, 200, 999, 1_000, 1_100, 8_000]) {
        const { text: told, structured } = await run('restore_session', { tokenBudget })
        expect([tokenBudget, at.memory.tokenizer.count(told) <= tokenBudget]).toEqual([tokenBudget, true])
        expect(structured.budget).toBe(tokenBudget)
        for (const { content } of structured.contextItems as { content: string }[])
          expect(content.length).toBeLessThanOrEqual(201)
      }
    },
  )

  verifies('H-02', 'warn once at the threshold, and save a session that is added to', async () => {
    using folder = newFolder()
    await using at = await stage()
    const { run, logged } = desk(at, folder.path)
    expect((await run('check_tokens', { tokenCount: 23_899, limit: 32_000 })).text).toBe(
      '23899 of 32000 tokens. 8101 are left; no need to save yet.',
    )
    expect((await run('check_tokens', { tokenCount: 24_000, limit: 32_000 })).text).toBe(
      '24000 of 32000 tokens. It is time to save: call save_session now.',
    )
    await run('check_tokens', { tokenCount: 25_000, limit: 32_000 })
    expect(logged).toEqual([
      'warning: The chat has 24000 of 32000 tokens, and saving is due from 23900 on. Call save_session now.',
    ])
    const { structured, text: told } = await run('append_messages', {
      messages: [{ role: 'user', content: 'word '.repeat(700) }],
      limit: 1_000,
    })
    expect(structured).toMatchObject({
      sessionId: `session_${noon}`,
      messageIds: ['m1'],
      saved: { messages: 1 },
      reading: { saveNow: true, crossed: true },
    })
    expect([told.includes('was saved'), logged.length, logged[1]?.includes('It was saved')]).toEqual([true, 2, true])
    const more = await run('append_messages', {
      sessionId: `session_${noon}`,
      messages: [{ role: 'user', content: 'More.' }],
      limit: 1_000,
    })
    expect(more.text).toMatch(
      /^Stored 1 message in .* tokens\. The session is saved, with all that was added since; continue in a new chat with restore_session\.$/,
    )
    expect((await run('list_sessions', {})).structured).toMatchObject({ total: 1 })
  })

  verifies('H-04', 'list sessions that were only added to', async () => {
    using folder = newFolder()
    await using at = await stage()
    const { run } = desk(at, folder.path)
    await run('append_messages', { messages: coding.slice(0, 1) })
    expect((await run('list_sessions', {})).text).toBe(
      `session_${noon}  2026-11-15T12:00:00.000Z  1 message (not summed up yet)  The login page of billing-portal fails with error E-4711 when the password has …\n1 in all.`,
    )
  })

  verifies('H-04', 'give the context of a session inside its budget, and mark what matters', async () => {
    using folder = newFolder()
    await using at = await stage()
    const { run } = desk(at, folder.path)
    const sessionId = `session_${noon}`
    await run('append_messages', { messages: coding })
    const { structured } = await run('get_context', {
      sessionId: `billing:${sessionId}`,
      budget: 100,
      query: 'What about E-4711?',
    })
    expect([(structured.tokens as number) <= 100, structured.budget]).toEqual([true, 100])
    const marked = await run('mark_important', { sessionId, text: 'E-4711' })
    expect(marked.structured).toMatchObject({ sessionId, marked: ['m1'], added: 1 })
    expect(marked.text).toBe(
      'Marked: "The login page of billing-portal fails with error E-4711 when the password has an umlaut. Please fix src/login/encode.ts…". Marked in all: 1 message.',
    )
    await expect(run('get_context', { sessionId: 'nowhere' })).rejects.toThrow(
      'There is no session "nowhere" in this workspace.',
    )
  })

  verifies('H-11', 'never call a session saved that the store did not take', async () => {
    using folder = newFolder()
    const fault: { code?: 'full' | undefined } = { code: 'full' }
    await using at = await stage({ fault })
    const { run } = desk(at, folder.path)
    const { text: told, structured } = await run('save_session', { messages: coding })
    expect([told.startsWith('NOT saved yet: the store fails.'), structured.degraded]).toEqual([true, 'not durable'])
    fault.code = undefined
  })

  verifies('H-09', 'work in the workspace they were resolved to, whatever workspaceId says', async () => {
    using folder = newFolder()
    await using at = await stage()
    const { run } = desk(at, folder.path)
    await at.handoff.save('other', { messages: coding })
    await expect(run('restore_session', { workspaceId: 'other' })).rejects.toThrow(
      'Workspace "other" was not found. Name it as workspace if it is open to you.',
    )
    expect((await run('list_sessions', { workspaceId: 'billing' })).structured).toEqual({ sessions: [], total: 0 })
  })
})
