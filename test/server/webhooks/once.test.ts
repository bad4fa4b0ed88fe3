import { describe, expect } from 'vitest'
import type { OnSessionEnd, SessionEnd } from '../../../src/lifecycle/endEvent.ts'
import { toldOnce } from '../../../src/server/webhooks/once.ts'
import { verifies } from '../../requirements/verifies.ts'

const data: SessionEnd = { messages: [], summaries: [], createdAt: 0, lastAccessed: 0, messageCount: 0 }

describe('the end of a session', () => {
  verifies('T-07', 'is told once, although several wait to tell it, and again only if it was not heard', async () => {
    const told: string[] = []
    const faults = ['a']
    const once = toldOnce(async (session, _, { id }) => {
      told.push(`${session} ${id}`)
      if (faults.pop() !== undefined) throw new Error('not heard')
    })
    const tell = (id: string): ReturnType<OnSessionEnd> => once('acme:ann', data, { id, reason: 'ended' })
    const outcomes = await Promise.allSettled([tell('1'), tell('1')])
    expect([outcomes.map(({ status }) => status), told]).toEqual([['rejected', 'rejected'], ['acme:ann 1']])
    await Promise.all([tell('1'), tell('1'), tell('2')])
    await tell('1')
    expect(told).toEqual(['acme:ann 1', 'acme:ann 1', 'acme:ann 2'])
  })
})
