import { describe, expect } from 'vitest'
import type { OnSessionEnd, SessionEnd } from '../../../src/lifecycle/endEvent.ts'
import { deliverOnce } from '../../../src/server/webhooks/webhook.ts'
import { verifies } from '../../requirements/verifies.ts'

const data: SessionEnd = { messages: [], summaries: [], createdAt: 0, lastAccessed: 0, messageCount: 0 }

describe('deliverOnce', () => {
  verifies('T-07', 'delivers an event once to concurrent callers, and again only after a failure', async () => {
    const delivered: string[] = []
    const failures = ['first']
    const onSessionEnd = deliverOnce(async (session, _, { id }) => {
      delivered.push(`${session} ${id}`)
      if (failures.pop() !== undefined) throw new Error('delivery failed')
    })
    const deliver = (id: string): ReturnType<OnSessionEnd> => onSessionEnd('acme:ann', data, { id, reason: 'ended' })
    const outcomes = await Promise.allSettled([deliver('1'), deliver('1')])
    expect([outcomes.map(({ status }) => status), delivered]).toEqual([['rejected', 'rejected'], ['acme:ann 1']])
    await Promise.all([deliver('1'), deliver('1'), deliver('2')])
    await deliver('1')
    expect(delivered).toEqual(['acme:ann 1', 'acme:ann 1', 'acme:ann 2'])
  })
})
