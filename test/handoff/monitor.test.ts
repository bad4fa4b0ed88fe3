import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { coding, noon, stage } from './stage.ts'

const workspace = 'billing'
const session = `session_${noon}`
const words = (count: number): string => 'word '.repeat(count).trim()

describe('the token monitor', () => {
  verifies('H-02', 'asks for a save from 75 % of the limit on, less a margin of 100 tokens', async () => {
    await using at = await stage()
    const at32k = (tokenCount: number) => at.handoff.check(workspace, { tokenCount, limit: 32_000 })
    expect(await at32k(23_899)).toEqual({
      tokens: 23_899,
      limit: 32_000,
      threshold: 23_900,
      remaining: 8_101,
      usage: 0.7468,
      saveNow: false,
      crossed: false,
      exact: true,
    })
    expect(await at32k(23_900)).toMatchObject({ saveNow: true, crossed: true })
  })

  verifies('H-02', 'counts exactly', async () => {
    await using at = await stage()
    const { handoff, memory } = at
    expect((await handoff.check(workspace, { text: words(500), limit: 1_000 })).tokens).toBe(500)
    const counted = await handoff.check(workspace, { messages: coding, limit: 1_000 })
    const { sessionId } = await handoff.save(workspace, { messages: coding })
    const stored = await handoff.check(workspace, { sessionId, limit: 1_000 })
    const sum = (await memory.transcript(`${workspace}:${sessionId}`)).reduce((total, { tokens }) => total + tokens, 0)
    expect([counted.tokens, stored.tokens, counted.exact]).toEqual([sum, sum, true])
    await memory.forget({ key: `${workspace}:${sessionId}`, messageId: 'm2' })
    const left = (await memory.transcript(`${workspace}:${sessionId}`)).reduce((total, { tokens }) => total + tokens, 0)
    expect([(await handoff.check(workspace, { sessionId })).tokens, left < sum]).toEqual([left, true])
  })

  verifies('H-02', 'tells of a crossing once, and again only after it was below', async () => {
    await using at = await stage({ settings: { limit: 1_000 } })
    const crossed = async (tokenCount: number, client = 'ann') =>
      (await at.handoff.check(workspace, { tokenCount, client })).crossed
    expect([
      await crossed(649),
      await crossed(650),
      await crossed(900),
      await crossed(100),
      await crossed(700),
    ]).toEqual([false, true, false, false, true])
    expect(await crossed(700, 'bob')).toBe(true)
  })

  verifies('H-02', 'tries again with the next message if the save that was due has failed', async () => {
    let isBroken = true
    const providers = {
      gather: async () => {
        if (isBroken) throw new Error('broken')
        return { provided: [], degraded: [] }
      },
    }
    await using at = await stage({ providers })
    const add = (content: string, sessionId?: string) =>
      at.handoff.append(workspace, {
        messages: [{ role: 'user', content }],
        limit: 1_000,
        ...(sessionId === undefined ? {} : { sessionId }),
      })
    await expect(add(words(700))).rejects.toThrow('broken')
    isBroken = false
    expect((await add('More.', session)).saved?.messages).toBe(2)
  })

  verifies('H-02', 'has a session saved by itself that is added to until it comes near the limit', async () => {
    await using at = await stage()
    const { handoff } = at
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

  it('stores the same operation once', async () => {
    await using at = await stage()
    await at.handoff.append(workspace, { messages: [{ role: 'user', content: 'We begin.' }] })
    const once = { messages: coding, operationId: 'op-1', sessionId: session }
    const [a, b] = [await at.handoff.append(workspace, once), await at.handoff.append(workspace, once)]
    expect([a.messageIds, b.messageIds, a.reading.tokens === b.reading.tokens]).toEqual([
      ['m2', 'm3', 'm4', 'm5'],
      ['m2', 'm3', 'm4', 'm5'],
      true,
    ])
  })

  it('refuses what is nothing to count, and settings that make no sense', async () => {
    await using at = await stage()
    await expect(at.handoff.check(workspace, {})).rejects.toThrow('There is nothing to count.')
    await expect(at.handoff.check(workspace, { tokenCount: 1, limit: 0 })).rejects.toThrow(
      'limit is 0; it must be a whole number of tokens, 1 or more.',
    )
    await expect(at.handoff.append(workspace, { messages: [] })).rejects.toThrow('There is nothing to append.')
    // A session begins without an id: one that is mistyped must not begin another.
    await expect(at.handoff.append(workspace, { sessionId: 'nope', messages: coding })).rejects.toThrow(
      'There is no session "nope" in this workspace.',
    )
    await expect(stage({ settings: { threshold: 2 } })).rejects.toThrow(MemoryError)
  })
})
