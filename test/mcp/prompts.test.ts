import type { Client } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { type Connected, overHttp, overStdio, type Served, startMcp } from './serverStage.ts'

let server: Served
let connection: Connected
let client: Client
beforeAll(async () => {
  server = await startMcp()
  connection = await overHttp(server.url)
  client = connection.client
})
afterAll(async () => {
  await connection.close()
  await server[Symbol.asyncDispose]()
})

async function textOf(by: Client, name: string, given: Record<string, string>): Promise<string> {
  const { messages } = await by.getPrompt({ name, arguments: given })
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
  verifies('S-04', 'are two, which say what they take', async () => {
    const { prompts } = await client.listPrompts()
    expect(
      prompts.map(({ name, title, arguments: taken }) => [name, title, taken?.map((one) => [one.name, one.required])]),
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

  verifies(
    ['S-04', 'H-17'],
    'continue-session begins a chat with the newest session, or the one that is named',
    async () => {
      const older = await save('going-on', 'The cat is called Miso.')
      await save('going-on', 'The dog is called Rex.')
      expect(await textOf(client, 'continue-session', { workspace: 'going-on' })).toContain('The dog is called Rex.')
      const named = await textOf(client, 'continue-session', { workspace: 'going-on', session: older, budget: '2000' })
      expect(named).toContain('The cat is called Miso.')
      expect(named).toMatch(new RegExp(`This chat is session session_\\w+, which goes on from ${older}\\.`))
    },
  )

  it('continue-session says what is wrong with what it is given', async () => {
    const asked = (given: Record<string, string>) => client.getPrompt({ name: 'continue-session', arguments: given })
    await expect(asked({ budget: 'much' })).rejects.toMatchObject({
      code: -32_602,
      message: expect.stringContaining('budget is "much"; it must be a whole number of tokens, such as 4000.'),
    })
    await expect(asked({ session: 'session_1' })).rejects.toMatchObject({
      code: -32_602,
      message: expect.stringContaining('There is no session "session_1" in this workspace.'),
    })
  })

  it('handoff-summary asks for a summary and for save_session', async () => {
    const text = await textOf(client, 'handoff-summary', { focus: 'the login page', workspace: 'shop' })
    expect(text).toContain('What matters most: the login page.')
    expect(text).toContain('call save_session, with workspace "shop"')
  })

  verifies('S-04', 'complete what they are given', async () => {
    const id = await save('completing', 'Hello.')
    const ref = { type: 'ref/prompt', name: 'continue-session' } as const
    const completed = async (argument: { name: string; value: string }, given: Record<string, string> = {}) =>
      (await client.complete({ ref, argument, context: { arguments: given } })).completion.values
    expect(await completed({ name: 'session', value: 'session' }, { workspace: 'completing' })).toEqual([id])
    expect(await completed({ name: 'workspace', value: 'comp' })).toEqual(['completing'])
  })

  it('are there for older clients, too', async () => {
    await using own = await overStdio('2025-06-18')
    expect(await textOf(own.client, 'handoff-summary', {})).toContain('save_session')
  })
})
