import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { codingConversation, createHarness, type Fault, noon } from './harness.ts'

const workspace = 'billing'
const first = `session_${noon}`
const errorCode = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: unknown) => error instanceof MemoryError && error.code,
  )

/** Scheduler whose callbacks run on demand. */
function createManualSchedule() {
  const timers: { delayMs: number; run: () => void }[] = []
  const schedule = (delayMs: number, run: () => void): (() => void) => {
    const timer = { delayMs, run }
    timers.push(timer)
    return () => void timers.splice(timers.indexOf(timer), 1)
  }
  return {
    schedule,
    delays: (): readonly number[] => timers.map(({ delayMs }) => delayMs),
    fire: (): void => timers.shift()?.run(),
  }
}

describe('failing store', () => {
  for (const fault of [{ code: 'full' }, { code: 'not-durable' }, { code: 'full', reads: true }] as const)
    verifies(
      'H-11',
      `with ${JSON.stringify(fault)} keeps a save in memory as not durable, and writes it once after recovery`,
      async () => {
        const disk: Fault = {}
        await using harness = await createHarness({ fault: disk })
        const { handoff, memory, graph } = harness
        Object.assign(disk, fault)
        const saved = await handoff.save(workspace, { messages: codingConversation })
        expect(saved).toMatchObject({ sessionId: first, degraded: 'not durable', messages: 4, added: 4, items: 3 })
        expect(handoff.getPendingWrites()).toMatchObject([{ workspace, session: first, since: noon }])
        // Pending sessions can be listed and restored.
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
          codingConversation.map(({ content }) => content),
        )
        expect(await handoff.list(workspace)).toMatchObject({
          total: 1,
          sessions: [{ sessionId: first, messageCount: 4 }],
        })
        expect((await handoff.list(workspace)).sessions[0]).not.toHaveProperty('degraded')
        expect(
          (await graph.queryRelationships(workspace, { types: ['SESSION_CONTINUES'] })).relationships,
        ).toMatchObject([{ from: restored.sessionId, to: first }])
        expect((await handoff.save(workspace, { sessionId: first, messages: codingConversation })).added).toBe(0)
      },
    )

  verifies('H-11', 'is retried with backoff, and later writes of the session queue behind', async () => {
    const fault: Fault = {}
    const { schedule, delays, fire } = createManualSchedule()
    await using harness = await createHarness({ fault, schedule })
    const { handoff, memory } = harness
    await handoff.save(workspace, { messages: codingConversation.slice(0, 2) })
    fault.code = 'full'
    await handoff.save(workspace, { sessionId: first, messages: codingConversation.slice(0, 3) })
    expect(delays()).toEqual([1_000])
    fire()
    await handoff.retry()
    expect([delays(), handoff.getPendingWrites()[0]?.attempts]).toEqual([[2_000], 2])
    const next = await handoff.save(workspace, { sessionId: first, messages: codingConversation })
    expect([next.degraded, next.messages, handoff.getPendingWrites().length]).toEqual(['not durable', 4, 2])
    expect((await memory.transcript(`${workspace}:${first}`)).length).toBe(2)
    fault.code = undefined
    fire()
    await handoff.retry()
    expect([delays(), handoff.getPendingWrites()]).toEqual([[], []])
    expect((await memory.transcript(`${workspace}:${first}`)).map(({ content }) => content)).toEqual(
      codingConversation.map(({ content }) => content),
    )
  })

  verifies('H-11', 'with only the graph failing stores the transcript and queues the rest', async () => {
    const fault: Fault = { code: 'full', onlyGraph: true }
    await using harness = await createHarness({ fault })
    expect((await harness.handoff.save(workspace, { messages: codingConversation })).degraded).toBe('not durable')
    expect((await harness.memory.transcript(`${workspace}:${first}`)).length).toBe(4)
    fault.code = undefined
    expect(await harness.handoff.retry()).toBe(0)
    expect((await harness.handoff.get(workspace, first)).items).toBe(3)
    expect((await harness.memory.transcript(`${workspace}:${first}`)).length).toBe(4)
  })

  verifies('H-11', 'with a pending chain of sessions writes them in order after recovery', async () => {
    const fault: Fault = { code: 'full' }
    await using harness = await createHarness({ fault })
    const { handoff } = harness
    await handoff.save(workspace, { messages: codingConversation })
    const { sessionId } = await handoff.restore(workspace)
    expect((await handoff.save(workspace, { sessionId, conversationContext: 'User: We go on.' })).degraded).toBe(
      'not durable',
    )
    const third = await handoff.save(workspace, { conversationContext: 'User: And on.', continues: sessionId })
    expect([third.degraded, (await handoff.list(workspace)).total, handoff.getPendingWrites().length]).toEqual([
      'not durable',
      3,
      4,
    ])
    fault.code = undefined
    expect(await handoff.retry()).toBe(0)
    expect(
      (await handoff.getChain(workspace, first)).map(({ sessionId: id, messageCount }) => [id, messageCount]),
    ).toEqual([
      [first, 4],
      [sessionId, 1],
      [third.sessionId, 1],
    ])
  })

  verifies('H-11', 'with appended messages stores them once and in order after recovery', async () => {
    const fault: Fault = {}
    await using harness = await createHarness({ fault })
    await harness.handoff.append(workspace, { messages: [{ role: 'user', content: 'One.' }] })
    const add = (content: string) =>
      harness.handoff.append(workspace, { sessionId: first, messages: [{ role: 'user', content }] })
    fault.code = 'not-durable'
    expect(await add('Two.')).toMatchObject({ degraded: 'not durable', messageIds: [] })
    expect((await add('Three.')).degraded).toBe('not durable')
    fault.code = undefined
    harness.time.now += 60_000
    expect(await add('Four.')).toMatchObject({ messageIds: ['m4'] })
    const messages = await harness.memory.transcript(`${workspace}:${first}`)
    expect(messages.map(({ content, at: time }) => [content, time - noon])).toEqual([
      ['One.', 0],
      ['Two.', 0],
      ['Three.', 0],
      ['Four.', 60_000],
    ])
  })

  verifies('H-11', 'with a full queue rejects the save', async () => {
    const fault: Fault = { code: 'full' }
    await using harness = await createHarness({ fault, settings: { pending: 2_000 } })
    expect((await harness.handoff.save(workspace, { conversationContext: 'User: One.' })).degraded).toBe('not durable')
    expect(
      await errorCode(harness.handoff.save(workspace, { conversationContext: `User: ${'Two. '.repeat(400)}` })),
    ).toBe('not-durable')
    expect(harness.handoff.getPendingWrites().length).toBe(1)
    fault.code = undefined
  })

  verifies('H-11', 'lets a pending session be read and counted, and rejects marks and analytics', async () => {
    const fault: Fault = { code: 'full' }
    await using harness = await createHarness({ fault })
    const { handoff } = harness
    await handoff.save(workspace, { messages: codingConversation })
    expect((await handoff.getTranscript(workspace, first)).map(({ content }) => content)).toEqual(
      codingConversation.map(({ content }) => content),
    )
    expect((await handoff.check(workspace, { sessionId: first })).tokens).toBe(
      (await handoff.check(workspace, { messages: codingConversation })).tokens,
    )
    const notStored = `Session ${first} is not stored yet: the store fails. Try again when it works; restore_session works now.`
    await expect(handoff.mark(workspace, first, { messageIds: ['m1'] })).rejects.toThrow(notStored)
    await expect(handoff.getAnalytics(workspace, first)).rejects.toThrow(notStored)
    fault.code = undefined
    expect((await handoff.mark(workspace, first, { messageIds: ['m1'] })).marked).toEqual(['m1'])
  })

  verifies('H-11', 'with a predecessor deleted meanwhile still writes the pending session', async () => {
    const fault: Fault = {}
    await using harness = await createHarness({ fault })
    await harness.handoff.save(workspace, { messages: codingConversation })
    fault.code = 'full'
    const { sessionId } = await harness.handoff.save(workspace, {
      conversationContext: 'User: We go on.',
      continues: first,
    })
    fault.code = undefined
    await using other = await createHarness({ file: harness.file })
    await other.handoff.delete(workspace, first)
    expect([await harness.handoff.retry(), harness.handoff.getPendingWrites()]).toEqual([0, []])
    expect((await harness.handoff.get(workspace, sessionId)).messageCount).toBe(1)
  })

  it('lets a pending session be deleted', async () => {
    const fault: Fault = { code: 'full' }
    await using harness = await createHarness({ fault })
    await harness.handoff.save(workspace, { messages: codingConversation })
    fault.code = undefined
    await harness.handoff.delete(workspace, first)
    expect([
      await harness.handoff.retry(),
      (await harness.handoff.list(workspace)).total,
      await harness.memory.transcript(`${workspace}:${first}`),
    ]).toEqual([0, 0, []])
  })

  it('with an invalid request queues nothing', async () => {
    await using harness = await createHarness()
    expect(
      await errorCode(harness.handoff.save(workspace, { messages: [{ role: 'nobody' as 'user', content: 'x' }] })),
    ).toBe('bad-message')
    expect(harness.handoff.getPendingWrites()).toEqual([])
  })
})
