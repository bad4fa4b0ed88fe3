import { describe, expect } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { openTestSession } from './testSession.ts'

describe('a deleted conversation', () => {
  verifies('X-05', 'is not created again by a turn', async () => {
    await using session = await openTestSession()
    const { body } = await session.send('POST /v1/demo/conversations', {})
    const turn = () =>
      session.send('POST /v1/demo/responses', { model: 'test-model', input: 'Hello', conversation: body.id })
    expect((await turn()).status).toBe(200)
    await session.server.requestJson(`DELETE /v1/demo/conversations/${body.id}`)
    const after = await turn()
    expect([after.status, after.body.error.code]).toEqual([404, 'conversation_not_found'])
    expect(await session.transcript(`demo:${body.id}`)).toEqual([])
    expect(session.model.requests).toHaveLength(1)
  })
})
