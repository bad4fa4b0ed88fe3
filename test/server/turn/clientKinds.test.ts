import { describe, expect } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { createSqliteUrls } from '../api/testStores.ts'
import { assistant, user } from '../start.ts'
import { openTestSession } from './testSession.ts'

const newSqliteUrl = createSqliteUrls()

describe('a client that sends only new messages', () => {
  const call = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }],
  }
  const result = { role: 'tool', tool_call_id: 'call_1', content: '42' }
  const reply = (asked: string) =>
    asked === 'What is X?' ? { calls: [{ id: 'call_1', name: 'look', input: {} }] } : { text: `Re: ${asked}` }

  for (const [what, loop] of [
    ['the result', [result]],
    ['the call and the result', [call, result]],
    ['the whole turn', [user('What is X?'), call, result]],
  ] as const)
    verifies('F-04', `and ${what} of a tool loop › stays thin, and memory supplies the history`, async () => {
      await using session = await openTestSession({ reply })
      await session.chat([user('Hello')])
      await session.chat([user('What is X?')])
      const looped = await session.chat(loop)
      expect(looped.headers.get('x-threadkeep-history')).toBe('thin')
      expect(session.prompt()).toEqual(['Hello', 'Re: Hello', 'What is X?', '', '42'])
      const next = await session.chat([user('And now?')])
      expect(next.headers.get('x-threadkeep-history')).toBe('thin')
      expect(session.prompt()).toEqual(['Hello', 'Re: Hello', 'What is X?', '', '42', 'Re: 42', 'And now?'])
    })

  verifies('F-04', 'with a tool loop in its first turn › stays thin', async () => {
    await using session = await openTestSession({ reply })
    await session.chat([user('What is X?')])
    await session.chat([user('What is X?'), call, result])
    const next = await session.chat([user('And now?')])
    expect(next.headers.get('x-threadkeep-history')).toBe('thin')
    expect(session.prompt()).toEqual(['What is X?', '', '42', 'Re: 42', 'And now?'])
  })

  verifies('F-04', 'and never answers a tool call › goes on with its history', async () => {
    await using session = await openTestSession({ reply })
    await session.chat([user('My name is Ann.')])
    await session.chat([user('What is X?')])
    for (const question of ['What is my name?', 'Hello?']) {
      const response = await session.chat([user(question)])
      expect(response.headers.get('x-threadkeep-history')).toBe('thin')
      expect(session.prompt().slice(0, 2)).toEqual(['My name is Ann.', 'Re: My name is Ann.'])
    }
  })

  verifies('F-04', 'and a sub-agent with other instructions during a tool call › are kept apart', async () => {
    await using session = await openTestSession({ reply })
    await session.chat([{ role: 'system', content: 'Main.' }, user('What is X?')])
    const task = [{ role: 'system', content: 'Sub.' }, user('Look for X.')]
    const response = await session.chat(task)
    expect(response.headers.get('x-threadkeep-history')).toBe('full')
    expect(session.prompt().slice(0, 2)).toEqual(['Sub.', 'Look for X.'])
  })

  verifies('F-04', 'with the header full › sends a conversation of its own', async () => {
    await using session = await openTestSession()
    await session.chat([user('My name is Ann.')])
    await session.chat([user('A task.')], { 'x-threadkeep-history': 'full' })
    expect(session.prompt()[0]).toBe('A task.')
    const refused = await session.chat([user('A task.')], { 'x-threadkeep-history': 'whole' })
    expect([refused.status, refused.body.error.param]).toEqual([400, 'x-threadkeep-history'])
  })
})

describe('a client that resends its conversation', () => {
  const agent = { 'user-agent': 'agent/1.0' }

  verifies('F-04', 'and then sends a single message › begins another conversation, also after a restart', async () => {
    const store = newSqliteUrl()
    {
      await using session = await openTestSession({ memory: { store } })
      await session.chat([user('One')], agent)
      await session.chat([user('One'), assistant('Re: One'), user('Two')], agent)
      await session.chat([user('A task')], agent)
      expect(session.prompt()[0]).toBe('A task')
    }
    await using session = await openTestSession({ memory: { store }, firstReplyId: 10 })
    for (const task of ['Another task', 'A third task']) {
      const response = await session.chat([user(task)], agent)
      expect([session.prompt()[0], response.headers.get('x-threadkeep-history')]).toEqual([task, 'full'])
    }
    const thin = await session.chat([user('Who are you?')], { 'user-agent': 'script/1.0' })
    expect(thin.headers.get('x-threadkeep-history')).toBe('thin')
    expect(session.prompt().slice(0, 2)).toEqual(['One', 'Re: One'])
  })

  verifies(
    'F-04',
    'in which an earlier message has changed › has it forwarded as changed, and stored once',
    async () => {
      await using session = await openTestSession()
      const ask = (documents: string, ...rest: readonly object[]) =>
        session.chat([{ role: 'system', content: 'S' }, user(documents), ...rest], agent)
      await ask('Documents about cats', user('Question 1'))
      await ask('Documents about dogs', user('Question 1'), assistant('Re: Question 1'), user('Question 2'))
      expect(session.prompt()).toEqual(['S', 'Documents about dogs', 'Question 1', 'Re: Question 1', 'Question 2'])
      expect(await session.transcript()).toEqual([
        'user: Documents about cats',
        'user: Question 1',
        'assistant: Re: Question 1',
        'user: Question 2',
        'assistant: Re: Question 2',
      ])
    },
  )
})
