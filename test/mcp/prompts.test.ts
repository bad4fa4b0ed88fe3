import type { Client } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { type ConnectedClient, connectHttp, connectStdio, startTestServer, type TestServer } from './harness.ts'

let server: TestServer
let connection: ConnectedClient
let client: Client
beforeAll(async () => {
  server = await startTestServer()
  connection = await connectHttp(server.url)
  client = connection.client
})
afterAll(async () => {
  await connection.close()
  await server[Symbol.asyncDispose]()
})

async function getPromptText(by: Client, name: string, args: Record<string, string>): Promise<string> {
  const { messages } = await by.getPrompt({ name, arguments: args })
  expect(messages).toMatchObject([{ role: 'user', content: { type: 'text' } }])
  return messages.map(({ content }) => (content.type === 'text' ? content.text : '')).join('')
}

async function save(workspace: string, content: string): Promise<string> {
  const { structuredContent } = await client.callTool({
    name: 'save_session',
    arguments: { workspace, messages: [{ role: 'user', content }] },
  })
  return (structuredContent as { sessionId: string }).sessionId
}

describe('prompts', () => {
  verifies('S-04', 'are listed with their arguments', async () => {
    const { prompts } = await client.listPrompts()
    expect(
      prompts.map(({ name, title, arguments: args }) => [name, title, args?.map((arg) => [arg.name, arg.required])]),
    ).toEqual([
      [
        'continue-session',
        'Continue a session',
        [
          ['session', false],
          ['budget', false],
          ['workspace', false],
        ],
      ],
      [
        'handoff-summary',
        'Hand over this chat',
        [
          ['focus', false],
          ['workspace', false],
        ],
      ],
    ])
  })

  verifies(['S-04', 'H-17'], 'continue-session returns the most recent session, or the given one', async () => {
    const older = await save('going-on', 'The cat is called Miso.')
    await save('going-on', 'The dog is called Rex.')
    expect(await getPromptText(client, 'continue-session', { workspace: 'going-on' })).toContain(
      'The dog is called Rex.',
    )
    const named = await getPromptText(client, 'continue-session', {
      workspace: 'going-on',
      session: older,
      budget: '2000',
    })
    expect(named).toContain('The cat is called Miso.')
    expect(named).toMatch(new RegExp(`This chat is session session_\\w+, which goes on from ${older}\\.`))
  })

  it('continue-session rejects invalid arguments', async () => {
    const getPrompt = (args: Record<string, string>) => client.getPrompt({ name: 'continue-session', arguments: args })
    await expect(getPrompt({ budget: 'much' })).rejects.toMatchObject({
      code: -32_602,
      message: expect.stringContaining('budget is "much"; it must be a whole number of tokens, such as 4000.'),
    })
    await expect(getPrompt({ session: 'session_1' })).rejects.toMatchObject({
      code: -32_602,
      message: expect.stringContaining('There is no session "session_1" in this workspace.'),
    })
  })

  it('handoff-summary asks for a summary and for save_session', async () => {
    const text = await getPromptText(client, 'handoff-summary', { focus: 'the login page', workspace: 'shop' })
    expect(text).toContain('What matters most: the login page.')
    expect(text).toContain('call save_session, with workspace "shop"')
  })

  verifies('S-04', 'complete their arguments', async () => {
    const id = await save('completing', 'Hello.')
    const ref = { type: 'ref/prompt', name: 'continue-session' } as const
    const complete = async (argument: { name: string; value: string }, args: Record<string, string> = {}) =>
      (await client.complete({ ref, argument, context: { arguments: args } })).completion.values
    expect(await complete({ name: 'session', value: 'session' }, { workspace: 'completing' })).toEqual([id])
    expect(await complete({ name: 'workspace', value: 'comp' })).toEqual(['completing'])
  })

  it('are available to older clients', async () => {
    await using own = await connectStdio('2025-06-18')
    expect(await getPromptText(own.client, 'handoff-summary', {})).toContain('save_session')
  })
})
