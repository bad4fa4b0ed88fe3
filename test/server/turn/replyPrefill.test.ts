import { describe, expect, it } from 'vitest'
import { profiles } from '../../../src/profiles/index.ts'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, user } from '../start.ts'
import { ann, openTestSession, promptTokens, tokenHeaders } from './testSession.ts'

const prefilled = [user('Write a poem.'), assistant('Old pond,')]
const continueReply = () => ({ text: ' a frog leaps in.' })

describe('a reply prefilled by the client', () => {
  verifies(
    'T-15',
    'in chat completions › is stored as one reply, and later turns match it with or without the prefill',
    async () => {
      await using session = await openTestSession({ reply: continueReply })
      await session.chat(prefilled)
      expect(session.model.requests.at(-1)?.body.messages).toEqual(prefilled)
      expect(await session.transcript()).toEqual(['user: Write a poem.', 'assistant: Old pond, a frog leaps in.'])
      await session.chat([user('Write a poem.'), assistant('Old pond, a frog leaps in.'), user('More')])
      await session.chat([
        user('Write a poem.'),
        assistant('a frog leaps in.'),
        user('More'),
        assistant('a frog leaps in.'),
        user('Enough'),
      ])
      expect(await session.transcript()).toEqual([
        'user: Write a poem.',
        'assistant: Old pond, a frog leaps in.',
        'user: More',
        'assistant:  a frog leaps in.',
        'user: Enough',
        'assistant:  a frog leaps in.',
      ])
      expect(await session.branches()).toEqual({})
    },
  )

  it.each([false, true])('in Anthropic messages, streamed: %s › is stored as one reply', async (stream) => {
    await using session = await openTestSession({ reply: continueReply })
    const body = { model: 'test-model', max_tokens: 100, stream, messages: prefilled }
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(`${session.server.url}/v1/${ann}/messages`, init)
    expect([response.status, (await response.text()).includes('event: message_stop')]).toEqual([200, stream])
    expect(session.model.requests.at(-1)?.body.messages).toEqual(prefilled)
    expect(await session.transcript()).toEqual(['user: Write a poem.', 'assistant: Old pond, a frog leaps in.'])
  })

  verifies('T-15', 'prefilled again › moves the earlier reply into a branch', async () => {
    await using session = await openTestSession({ reply: continueReply })
    const first = [user('Hello'), assistant('a frog leaps in.')]
    await session.chat(first.slice(0, 1))
    await session.chat([...first, ...prefilled])
    await session.chat([...first, user('Write a poem.'), assistant('New pond,')])
    expect((await session.transcript()).slice(2)).toEqual([
      'user: Write a poem.',
      'assistant: New pond, a frog leaps in.',
    ])
    expect(await session.branches()).toEqual({ 4: ['assistant: Old pond, a frog leaps in.'] })
  })

  it('counts against the budget', async () => {
    await using session = await openTestSession({
      reply: continueReply,
      memory: { profile: { ...profiles.thread, budget: 200 } },
    })
    for (const turn of [1, 2, 3, 4]) await session.chat([user(`Turn ${turn}: ${'a long story '.repeat(8)}`)])
    const answer = await session.chat([user('Write a poem.'), assistant('Old pond, '.repeat(20))])
    expect(tokenHeaders(answer)).toEqual([`${promptTokens(session)}/200`, null])
    expect(promptTokens(session)).toBeLessThanOrEqual(200)
    expect(session.model.requests.at(-1)?.body.messages.length).toBeGreaterThan(2)
  })
})
