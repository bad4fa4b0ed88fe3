import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { coding, type Fault, noon, stage } from './stage.ts'

const workspace = 'billing'
const first = `session_${noon}`
const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: unknown) => error instanceof MemoryError && error.code,
  )

/** A timer that goes off when it is told to. */
function timer() {
  const calls: { after: number; call: () => void }[] = []
  const later = (after: number, call: () => void): (() => void) => {
    const one = { after, call }
    calls.push(one)
    return () => void calls.splice(calls.indexOf(one), 1)
  }
  return {
    later,
    waits: (): readonly number[] => calls.map(({ after }) => after),
    ring: (): void => calls.shift()?.call(),
  }
}

describe('a store that fails', () => {
  for (const fault of [{ code: 'full' }, { code: 'not-durable' }, { code: 'full', reads: true }] as const)
    verifies(
      'H-11',
      `keeps a session in memory and never calls it saved (${JSON.stringify(fault)}); once it is back it is written once`,
      async () => {
        const disk: Fault = {}
        await using at = await stage({ fault: disk })
        const { handoff, memory, graph } = at
        Object.assign(disk, fault)
        const saved = await handoff.save(workspace, { messages: coding })
        expect(saved).toMatchObject({ sessionId: first, degraded: 'not durable', messages: 4, added: 4, items: 3 })
        expect(handoff.pending()).toMatchObject([{ workspace, session: first, since: noon }])
        // What waits can be listed, looked at and gone on with.
        expect(await handoff.list(workspace)).toMatchObject({
          total: 1,
          sessions: [{ sessionId: first, degraded: 'not durable' }],
        })
        const restored = await handoff.restore(workspace)
        expect(restored).toMatchObject({ continues: first, degraded: 'not durable' })
        expect(restored.context).toContain('E-4711')
        Object.assign(disk, { code: undefined })
        expect(await handoff.retry()).toBe(0)
        expect((await memory.transcript(`${workspace}:${first}`)).map(({ content }) => content)).toEqual(
          coding.map(({ content }) => content),
        )
        expect(await handoff.list(workspace)).toMatchObject({
          total: 1,
          sessions: [{ sessionId: first, messageCount: 4 }],
        })
        expect((await handoff.list(workspace)).sessions[0]).not.toHaveProperty('degraded')
        expect((await graph.relationships(workspace, { types: ['SESSION_CONTINUES'] })).relationships).toMatchObject([
          { from: restored.sessionId, to: first },
        ])
        expect((await handoff.save(workspace, { sessionId: first, messages: coding })).added).toBe(0)
      },
    )

  verifies(
    'H-11',
    'is tried again by the clock, less and less often, and what comes meanwhile waits behind',
    async () => {
      const fault: Fault = {}
      const { later, waits, ring } = timer()
      await using at = await stage({ fault, later })
      const { handoff, memory } = at
      await handoff.save(workspace, { messages: coding.slice(0, 2) })
      fault.code = 'full'
      await handoff.save(workspace, { sessionId: first, messages: coding.slice(0, 3) })
      expect(waits()).toEqual([1_000])
      ring()
      await handoff.retry()
      expect([waits(), handoff.pending()[0]?.tries]).toEqual([[2_000], 2])
      const later2 = await handoff.save(workspace, { sessionId: first, messages: coding })
      expect([later2.degraded, later2.messages, handoff.pending().length]).toEqual(['not durable', 4, 2])
      expect((await memory.transcript(`${workspace}:${first}`)).length).toBe(2)
      fault.code = undefined
      ring()
      await handoff.retry()
      expect([waits(), handoff.pending()]).toEqual([[], []])
      expect((await memory.transcript(`${workspace}:${first}`)).map(({ content }) => content)).toEqual(
        coding.map(({ content }) => content),
      )
    },
  )

  verifies('H-11', 'that fails for the graph alone leaves the transcript durable and the rest waiting', async () => {
    const fault: Fault = { code: 'full', onlyGraph: true }
    await using at = await stage({ fault })
    expect((await at.handoff.save(workspace, { messages: coding })).degraded).toBe('not durable')
    expect((await at.memory.transcript(`${workspace}:${first}`)).length).toBe(4)
    fault.code = undefined
    expect(await at.handoff.retry()).toBe(0)
    expect((await at.handoff.get(workspace, first)).items).toBe(3)
    expect((await at.memory.transcript(`${workspace}:${first}`)).length).toBe(4)
  })

  verifies('H-11', 'takes a whole chain that waits, and writes it in its order', async () => {
    const fault: Fault = { code: 'full' }
    await using at = await stage({ fault })
    const { handoff } = at
    await handoff.save(workspace, { messages: coding })
    const { sessionId } = await handoff.restore(workspace)
    expect((await handoff.save(workspace, { sessionId, conversationContext: 'User: We go on.' })).degraded).toBe(
      'not durable',
    )
    const third = await handoff.save(workspace, { conversationContext: 'User: And on.', continues: sessionId })
    expect([third.degraded, (await handoff.list(workspace)).total, handoff.pending().length]).toEqual([
      'not durable',
      3,
      4,
    ])
    fault.code = undefined
    expect(await handoff.retry()).toBe(0)
    expect(
      (await handoff.chain(workspace, first)).map(({ sessionId: id, messageCount }) => [id, messageCount]),
    ).toEqual([
      [first, 4],
      [sessionId, 1],
      [third.sessionId, 1],
    ])
  })

  verifies('H-11', 'keeps messages that are added one by one, and stores them once and in their order', async () => {
    const fault: Fault = {}
    await using at = await stage({ fault })
    await at.handoff.append(workspace, { messages: [{ role: 'user', content: 'One.' }] })
    const add = (content: string) =>
      at.handoff.append(workspace, { sessionId: first, messages: [{ role: 'user', content }] })
    fault.code = 'not-durable'
    expect(await add('Two.')).toMatchObject({ degraded: 'not durable', messageIds: [] })
    expect((await add('Three.')).degraded).toBe('not durable')
    fault.code = undefined
    at.time.now += 60_000
    expect(await add('Four.')).toMatchObject({ messageIds: ['m4'] })
    const said = await at.memory.transcript(`${workspace}:${first}`)
    expect(said.map(({ content, at: time }) => [content, time - noon])).toEqual([
      ['One.', 0],
      ['Two.', 0],
      ['Three.', 0],
      ['Four.', 60_000],
    ])
  })

  verifies('H-11', 'takes no more than there is room for, and says so', async () => {
    const fault: Fault = { code: 'full' }
    await using at = await stage({ fault, settings: { pending: 2_000 } })
    expect((await at.handoff.save(workspace, { conversationContext: 'User: One.' })).degraded).toBe('not durable')
    expect(await codeOf(at.handoff.save(workspace, { conversationContext: `User: ${'Two. '.repeat(400)}` }))).toBe(
      'not-durable',
    )
    expect(at.handoff.pending().length).toBe(1)
    fault.code = undefined
  })

  verifies('H-11', 'says of a session that waits what can be said, and never that it is not there', async () => {
    const fault: Fault = { code: 'full' }
    await using at = await stage({ fault })
    const { handoff } = at
    await handoff.save(workspace, { messages: coding })
    expect((await handoff.transcript(workspace, first)).map(({ content }) => content)).toEqual(
      coding.map(({ content }) => content),
    )
    expect((await handoff.check(workspace, { sessionId: first })).tokens).toBe(
      (await handoff.check(workspace, { messages: coding })).tokens,
    )
    const waits = `Session ${first} is not stored yet: the store fails. Try again when it works; restore_session works now.`
    await expect(handoff.mark(workspace, first, { messageIds: ['m1'] })).rejects.toThrow(waits)
    await expect(handoff.analytics(workspace, first)).rejects.toThrow(waits)
    fault.code = undefined
    expect((await handoff.mark(workspace, first, { messageIds: ['m1'] })).marked).toEqual(['m1'])
  })

  verifies('H-11', 'does not lose a session because the one it goes on from was deleted meanwhile', async () => {
    const fault: Fault = {}
    await using at = await stage({ fault })
    await at.handoff.save(workspace, { messages: coding })
    fault.code = 'full'
    const { sessionId } = await at.handoff.save(workspace, { conversationContext: 'User: We go on.', continues: first })
    fault.code = undefined
    await using other = await stage({ file: at.file })
    await other.handoff.delete(workspace, first)
    expect([await at.handoff.retry(), at.handoff.pending()]).toEqual([0, []])
    expect((await at.handoff.get(workspace, sessionId)).messageCount).toBe(1)
  })

  it('lets a session that waits be deleted', async () => {
    const fault: Fault = { code: 'full' }
    await using at = await stage({ fault })
    await at.handoff.save(workspace, { messages: coding })
    fault.code = undefined
    await at.handoff.delete(workspace, first)
    expect([
      await at.handoff.retry(),
      (await at.handoff.list(workspace)).total,
      await at.memory.transcript(`${workspace}:${first}`),
    ]).toEqual([0, 0, []])
  })

  it('is not to blame for a request that is wrong: nothing waits', async () => {
    await using at = await stage()
    expect(await codeOf(at.handoff.save(workspace, { messages: [{ role: 'nobody' as 'user', content: 'x' }] }))).toBe(
      'bad-message',
    )
    expect(at.handoff.pending()).toEqual([])
  })
})
