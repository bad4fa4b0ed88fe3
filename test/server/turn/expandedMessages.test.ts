import { describe, expect, it } from 'vitest'
import { profiles } from '../../../src/profiles/index.ts'
import { user } from '../start.ts'
import { openTestSession, promptTokens, type TestResponse, type TestSession, tokenHeaders } from './testSession.ts'

describe('a message that a client expands inside a tool loop', () => {
  const reply = (asked: string) =>
    asked === 'What is X?' ? { calls: [{ id: 'call_1', name: 'look', input: {} }] } : { text: 'Well.' }
  const call = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }],
  }
  const loop = (words: number) => [
    user(`What is X?\n<context>${'lorem ipsum dolor '.repeat(words)}</context>`),
    call,
    { role: 'tool', tool_call_id: 'call_1', content: '42' },
  ]
  /** Asks for X after some turns, then sends the question with this many more words and the tool result. */
  const sendExpanded = async (session: TestSession, words: number): Promise<TestResponse> => {
    for (const turn of [1, 2, 3, 4, 5, 6]) await session.chat([user(`Turn ${turn}: ${'a long story '.repeat(20)}`)])
    await session.chat([user('What is X?')])
    return session.chat(loop(words))
  }

  it.each([1, 20, 100, 150])('%s times as long › is counted as sent', async (words) => {
    await using session = await openTestSession({ reply, memory: { profile: { ...profiles.thread, budget: 800 } } })
    const answer = await sendExpanded(session, words)
    expect(tokenHeaders(answer)).toEqual([`${promptTokens(session)}/800`, null])
    expect(promptTokens(session)).toBeLessThanOrEqual(800)
    expect(session.model.requests.at(-1)?.body.messages.slice(-3)).toEqual(loop(words))
    expect((await session.transcript()).slice(-4)).toEqual([
      'user: What is X?',
      'assistant: ',
      'tool: 42',
      'assistant: Well.',
    ])
  })

  it('over the budget › is forwarded unchanged, and the degradation header says so', async () => {
    await using session = await openTestSession({ reply, memory: { profile: { ...profiles.thread, budget: 800 } } })
    const answer = await sendExpanded(session, 5_000)
    expect(session.model.requests.at(-1)?.body.messages).toEqual(loop(5_000))
    expect(tokenHeaders(answer)).toEqual([`${promptTokens(session)}/800`, 'budget'])
    expect(promptTokens(session)).toBeGreaterThan(15_000)
  })
})
