import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { codingConversation, createHarness, noon } from './harness.ts'

const workspace = 'billing'
const session = `session_${noon}`
const words = (count: number): string => 'word '.repeat(count).trim()

describe('token monitor', () => {
  verifies('H-02', 'at 75 % of the limit less a margin of 100 tokens requests a save', async () => {
    await using harness = await createHarness()
    const checkAt32k = (tokenCount: number) => harness.handoff.check(workspace, { tokenCount, limit: 32_000 })
    expect(await checkAt32k(23_899)).toEqual({
      tokens: 23_899,
      limit: 32_000,
      threshold: 23_900,
      remaining: 8_101,
      usage: 0.7468,
      saveNow: false,
      crossed: false,
      exact: true,
    })
    expect(await checkAt32k(23_900)).toMatchObject({ saveNow: true, crossed: true })
  })

  verifies(
    'H-02',
    'of text, messages and stored sessions counts exactly, also after a message was forgotten',
    async () => {
      await using harness = await createHarness()
      const { handoff, memory } = harness
      expect((await handoff.check(workspace, { text: words(500), limit: 1_000 })).tokens).toBe(500)
      const counted = await handoff.check(workspace, { messages: codingConversation, limit: 1_000 })
      const { sessionId } = await handoff.save(workspace, { messages: codingConversation })
      const stored = await handoff.check(workspace, { sessionId, limit: 1_000 })
      const sum = (await memory.transcript(`${workspace}:${sessionId}`)).reduce(
        (total, { tokens }) => total + tokens,
        0,
      )
      expect([counted.tokens, stored.tokens, counted.exact]).toEqual([sum, sum, true])
      await memory.forget({ key: `${workspace}:${sessionId}`, messageId: 'm2' })
      const remaining = (await memory.transcript(`${workspace}:${sessionId}`)).reduce(
        (total, { tokens }) => total + tokens,
        0,
      )
      expect([(await handoff.check(workspace, { sessionId })).tokens, remaining < sum]).toEqual([remaining, true])
    },
  )

  verifies('H-02', 'reports a crossing once per client, and again after usage fell below the threshold', async () => {
    await using harness = await createHarness({ settings: { limit: 1_000 } })
    const checkCrossed = async (tokenCount: number, client = 'ann') =>
      (await harness.handoff.check(workspace, { tokenCount, client })).crossed
    expect([
      await checkCrossed(649),
      await checkCrossed(650),
      await checkCrossed(900),
      await checkCrossed(100),
      await checkCrossed(700),
    ]).toEqual([false, true, false, false, true])
    expect(await checkCrossed(700, 'bob')).toBe(true)
  })

  verifies('H-02', 'after a failed automatic save retries with the next message', async () => {
    let isBroken = true
    const providers = {
      gather: async () => {
        if (isBroken) throw new Error('broken')
        return { provided: [], degraded: [] }
      },
    }
    await using harness = await createHarness({ providers })
    const add = (content: string, sessionId?: string) =>
      harness.handoff.append(workspace, {
        messages: [{ role: 'user', content }],
        limit: 1_000,
        ...(sessionId === undefined ? {} : { sessionId }),
      })
    await expect(add(words(700))).rejects.toThrow('broken')
    isBroken = false
    expect((await add('More.', session)).saved?.messages).toBe(2)
  })

  verifies('H-02', 'saves a session automatically when appended messages cross the threshold', async () => {
    await using harness = await createHarness()
    const { handoff } = harness
    const add = (content: string, sessionId?: string) =>
      handoff.append(workspace, {
        messages: [{ role: 'user', content }],
        limit: 1_000,
        ...(sessionId === undefined ? {} : { sessionId }),
      })
    const first = await add(`We begin. ${words(300)}`)
    expect([first.saved, first.reading.saveNow, first.messageIds, first.sessionId]).toEqual([
      undefined,
      false,
      ['m1'],
      session,
    ])
    expect(await handoff.get(workspace, session)).toMatchObject({
      messageCount: 1,
      items: 0,
      chain: [],
      summary: '',
      unsaved: true,
    })
    const second = await add(words(400), session)
    expect([second.saved?.messages, second.reading.crossed]).toEqual([2, true])
    expect((await handoff.list(workspace)).sessions).toMatchObject([
      { sessionId: session, messageCount: 2, title: expect.stringContaining('We begin.') },
    ])
    const more = await add('More.', session)
    expect([more.saved, more.wasSaved]).toEqual([undefined, true])
  })

  it('with a repeated operationId stores the messages once', async () => {
    await using harness = await createHarness()
    await harness.handoff.append(workspace, { messages: [{ role: 'user', content: 'We begin.' }] })
    const once = { messages: codingConversation, operationId: 'op-1', sessionId: session }
    const [a, b] = [await harness.handoff.append(workspace, once), await harness.handoff.append(workspace, once)]
    expect([a.messageIds, b.messageIds, a.reading.tokens === b.reading.tokens]).toEqual([
      ['m2', 'm3', 'm4', 'm5'],
      ['m2', 'm3', 'm4', 'm5'],
      true,
    ])
  })

  it('with nothing to count, an unknown session or invalid settings throws', async () => {
    await using harness = await createHarness()
    await expect(harness.handoff.check(workspace, {})).rejects.toThrow('There is nothing to count.')
    await expect(harness.handoff.check(workspace, { tokenCount: 1, limit: 0 })).rejects.toThrow(
      'limit is 0; it must be a whole number of tokens, 1 or more.',
    )
    await expect(harness.handoff.append(workspace, { messages: [] })).rejects.toThrow('There is nothing to append.')
    // A mistyped id must not create a new session.
    await expect(
      harness.handoff.append(workspace, { sessionId: 'nope', messages: codingConversation }),
    ).rejects.toThrow('There is no session "nope" in this workspace.')
    await expect(createHarness({ settings: { threshold: 2 } })).rejects.toThrow(MemoryError)
  })
})
