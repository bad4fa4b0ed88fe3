import { describe, expect, it } from 'vitest'
import { user } from '../start.ts'
import { ann, openTestSession, type TestSession } from './testSession.ts'

const askForOneToken = ({ send }: TestSession, question: string) =>
  send(`POST /v1/${ann}/chat/completions`, { model: 'test-model', max_tokens: 1, messages: [user(question)] })

describe('a request for a single token', () => {
  it('with a probe text › is auxiliary and stores nothing', async () => {
    await using session = await openTestSession()
    const { status, headers } = await askForOneToken(session, 'ping')
    expect([status, headers.get('x-threadkeep-memory')]).toEqual([200, 'auxiliary'])
    expect(await session.transcript()).toEqual([])
  })

  it('with a question › is stored as a turn', async () => {
    await using session = await openTestSession()
    const { status, headers } = await askForOneToken(session, 'Is 17 prime? My name is Ann.')
    expect([status, headers.get('x-threadkeep-memory')]).toEqual([200, 'on'])
    expect(await session.transcript()).toEqual([
      'user: Is 17 prime? My name is Ann.',
      'assistant: Re: Is 17 prime? My name is Ann.',
    ])
  })
})
