import { describe, expect, it } from 'vitest'
import { profiles } from '../../../src/profiles/index.ts'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, user } from '../start.ts'
import { isMemoryText, textOf } from './heldModel.ts'
import { openTestSession, promptTokens, replyText, type TestSession, tokenHeaders } from './testSession.ts'

const story = (turn: number): string => `Turn ${turn}: ${'a long story about the harbour '.repeat(40)}`

/** Holds a conversation of six turns that the client resends, and returns its messages. */
async function converse(session: TestSession, model: string): Promise<readonly object[]> {
  const messages: object[] = [{ role: 'system', content: 'Be brief.' }]
  for (let turn = 1; turn <= 6; turn++) {
    messages.push(user(turn === 1 ? `My boat is called Heron. ${story(1)}` : story(turn)))
    const response = await session.send('POST /v1/demo:ann/chat/completions', { model, messages })
    messages.push(assistant(replyText(response)))
  }
  return messages
}

describe('a conversation that the client resends', () => {
  verifies('F-01', 'over a fixed budget › is brought under it, with the newest turn whole', async () => {
    const memory = { profile: { ...profiles.thread, budget: 900 } }
    await using session = await openTestSession({ reply: () => ({ text: 'Well.' }), memory })
    const messages = await converse(session, 'gpt-4o')
    const question = user('What is my boat called?')
    const response = await session.send('POST /v1/demo:ann/chat/completions', {
      model: 'gpt-4o',
      messages: [...messages, question],
    })
    expect(tokenHeaders(response)).toEqual([expect.stringMatching(/^\d+\/900$/), null])
    expect(promptTokens(session)).toBeLessThanOrEqual(900)
    expect(session.prompt().at(0)).toBe('Be brief.')
    expect(session.prompt().at(-1)).toBe('What is my boat called?')
    expect(session.prompt().join('\n')).toContain('Heron')
  })

  verifies('X-01', 'with a schema of the output › leaves room for it', async () => {
    const memory = { profile: { ...profiles.thread, budget: 900 } }
    await using session = await openTestSession({ reply: () => ({ text: 'Well.' }), memory })
    const messages = await converse(session, 'gpt-4o')
    const schema = { type: 'object', description: 'a long story about the harbour '.repeat(80) }
    const response = await session.send('POST /v1/demo:ann/chat/completions', {
      model: 'gpt-4o',
      messages: [...messages, user('What is my boat called?')],
      response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } },
    })
    expect(tokenHeaders(response)).toEqual([expect.stringMatching(/^\d+\/900$/), null])
    // The description alone has 480 tokens.
    expect(promptTokens(session)).toBeLessThanOrEqual(900 - 480)
  })

  verifies('F-01', 'over the context window › loses its oldest turns, and memory recalls from them', async () => {
    const profile = { ...profiles.thread, budgetMode: 'auto' } as const
    const contextWindows = { 'tiny-*': 1_800 }
    const reply = () => ({ text: 'Well.' })
    await using session = await openTestSession({ reply, memory: { profile }, contextWindows })
    const messages = await converse(session, 'tiny-1')
    const sent = [...messages, user('What is my boat called?')]
    const response = await session.send('POST /v1/demo:ann/chat/completions', {
      model: 'tiny-1',
      max_tokens: 800,
      messages: sent,
    })
    expect(tokenHeaders(response)).toEqual([expect.stringMatching(/^\d+\/1000$/), 'conversation-shortened'])
    expect(promptTokens(session)).toBeLessThanOrEqual(1_000)
    const received: readonly object[] = session.model.requests.at(-1)?.body.messages
    const kept = received.filter((message) => !isMemoryText(textOf((message as { content: unknown }).content)))
    // The instructions, then the end of the conversation exactly as it was sent, starting with a question.
    expect(kept[0]).toEqual(sent[0])
    expect(kept.slice(1)).toEqual(sent.slice(1 - kept.length))
    expect(kept.length).toBeLessThan(sent.length)
    expect(kept[1]).toMatchObject({ role: 'user' })
    expect(session.prompt().at(-1)).toSatisfy(isMemoryText)
    expect(session.prompt().at(-1)).toContain('Heron')
  })

  it('within the context window but over the budget of the profile › is whole', async () => {
    const profile = { ...profiles.thread, budget: 200, budgetMode: 'auto' } as const
    await using session = await openTestSession({ reply: () => ({ text: 'Well.' }), memory: { profile } })
    const messages = await converse(session, 'gpt-4o')
    const sent = [...messages, user('Go on.')]
    const response = await session.send('POST /v1/demo:ann/chat/completions', { model: 'gpt-4o', messages: sent })
    expect(session.model.requests.at(-1)?.body.messages).toEqual(sent)
    expect(response.headers.get('x-threadkeep-tokens')).toBe(`${promptTokens(session)}/128000`)
  })
})

describe('a conversation that memory keeps, in the format of Anthropic', () => {
  verifies('X-01', 'with a reply at its start › stays within a fixed budget, with the notice before it', async () => {
    const starts: string[] = []
    for (let budget = 60; budget < 80; budget += 2) {
      const memory = { profile: { ...profiles.support, budget } }
      await using session = await openTestSession({ reply: () => ({ text: 'Well.' }), memory })
      for (let turn = 1; turn <= 8; turn++)
        await session.server.memory.append('demo:ann', [
          { role: 'user', content: `Is it ${turn}?` },
          { role: 'assistant', content: `Yes, it is ${turn}.` },
        ])
      await session.send('POST /v1/demo:ann/messages', {
        ...{ model: 'claude-sonnet-4', max_tokens: 100 },
        messages: [user('And now?')],
      })
      expect([budget, promptTokens(session) <= budget]).toEqual([budget, true])
      starts.push(JSON.stringify(session.model.requests.at(-1)?.body.messages[0].content))
    }
    expect(starts.filter((start) => start.includes('(The conversation continues.)'))).not.toEqual([])
  })
})
