import { describe, expect } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { createSqliteUrls, createTestStores } from '../api/testStores.ts'
import { openTestSession, type TestSession } from './testSession.ts'

const newSqliteUrl = createSqliteUrls()
const testStores = createTestStores(newSqliteUrl)

/** Sends a Responses request, continuing from `previous` if given, and returns the response id. */
async function sendInput(session: TestSession, input: string, previous?: string): Promise<string> {
  const { body } = await session.respond({
    input,
    ...(previous === undefined ? {} : { previous_response_id: previous }),
  })
  return body.id
}

const errorOf = async (session: TestSession, previous: string): Promise<readonly unknown[]> => {
  const { status, body } = await session.respond({ input: 'Go on', previous_response_id: previous })
  return [status, body.error.code, body.error.param]
}

const notFound = [404, 'previous_response_not_found', 'previous_response_id']

describe.each(testStores)('previous_response_id, store %s', (_, store) => {
  verifies('T-15', 'sends only the new input › the model receives the whole conversation', async () => {
    await using session = await openTestSession({ memory: { store: store() } })
    const first = await sendInput(session, 'One')
    await sendInput(session, 'Two', first)
    expect(session.prompt()).toEqual(['One', 'Re: One', 'Two'])
    expect(await session.transcript()).toEqual(['user: One', 'assistant: Re: One', 'user: Two', 'assistant: Re: Two'])
    expect(await session.branches()).toEqual({})
  })

  verifies(
    ['T-15', 'C-10'],
    'the first of twenty › moves the later turns into a branch that the model does not see',
    async () => {
      await using session = await openTestSession({ memory: { store: store() } })
      const ids: string[] = []
      for (let turn = 1; turn <= 20; turn++) ids.push(await sendInput(session, `Question ${turn}`, ids.at(-1)))
      await sendInput(session, 'Another way', ids[0])
      expect(session.prompt()).toEqual(['Question 1', 'Re: Question 1', 'Another way'])
      expect(await session.transcript()).toEqual([
        'user: Question 1',
        'assistant: Re: Question 1',
        'user: Another way',
        'assistant: Re: Another way',
      ])
      const branch = Array.from({ length: 19 }, (_, at) => [
        `user: Question ${at + 2}`,
        `assistant: Re: Question ${at + 2}`,
      ]).flat()
      expect(await session.branches()).toEqual({ 3: branch })
      expect(await errorOf(session, ids[19] as string)).toEqual(notFound)
    },
  )

  verifies('T-15', 'with the same input as before › stores a new turn', async () => {
    await using session = await openTestSession({ memory: { store: store() } })
    await sendInput(session, 'Yes', await sendInput(session, 'Yes'))
    expect(await session.transcript()).toEqual(['user: Yes', 'assistant: Re: Yes', 'user: Yes', 'assistant: Re: Yes'])
  })

  verifies('T-15', 'of a response in a branch, cut or stored late › is not found', async () => {
    await using session = await openTestSession({ memory: { store: store() } })
    const first = await sendInput(session, 'One')
    const hold = session.model.hold('Slow')
    const slow = sendInput(session, 'Slow', first)
    await hold.arrived
    const quick = await sendInput(session, 'Quick', first)
    hold.release()
    const late = await slow
    await sendInput(session, 'Quicker', quick)
    expect(await errorOf(session, late)).toEqual(notFound)
    expect(await errorOf(session, 'resp_404')).toEqual(notFound)
    expect(await session.transcript()).toEqual(
      ['One', 'Quick', 'Quicker'].flatMap((question) => [`user: ${question}`, `assistant: Re: ${question}`]),
    )
    expect(await session.branches()).toEqual({ 3: ['user: Slow', 'assistant: Re: Slow'] })
  })

  verifies('T-15', 'of another session › is not found, like an unknown id', async () => {
    await using session = await openTestSession({ memory: { store: store() } })
    const { body } = await session.send('POST /v1/demo:bea/responses', { model: 'test-model', input: 'Mine' })
    await sendInput(session, 'One')
    expect(await errorOf(session, body.id)).toEqual(notFound)
    expect(session.model.requests).toHaveLength(2)
    expect(await session.transcript()).toEqual(['user: One', 'assistant: Re: One'])
  })
})

describe('previous_response_id after a restart', () => {
  verifies('T-15', 'continues from and goes back to earlier responses', async () => {
    const store = newSqliteUrl()
    const ids: string[] = []
    {
      await using session = await openTestSession({ memory: { store } })
      ids.push(await sendInput(session, 'One'))
      ids.push(await sendInput(session, 'Two', ids[0]))
    }
    // The second model server must not repeat the ids of the first.
    await using session = await openTestSession({ memory: { store }, firstReplyId: 100 })
    await sendInput(session, 'Three', ids[1])
    expect(session.prompt()).toEqual(['One', 'Re: One', 'Two', 'Re: Two', 'Three'])
    await sendInput(session, 'Another way', ids[0])
    expect(session.prompt()).toEqual(['One', 'Re: One', 'Another way'])
    expect(await session.branches()).toEqual({
      3: ['user: Two', 'assistant: Re: Two', 'user: Three', 'assistant: Re: Three'],
    })
  })
})
