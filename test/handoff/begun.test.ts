import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { coding, day, noon, stage } from './stage.ts'

const workspace = 'billing'
const first = `session_${noon}`
const user = (content: string) => ({ role: 'user' as const, content })
const refused = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: unknown) => error instanceof MemoryError && `${error.code}: ${error.message}`,
  )

describe('a session that was only added to', () => {
  verifies(
    ['H-04', 'H-05'],
    'is listed as not summed up yet, and is the most recent one if it was added to last',
    async () => {
      await using at = await stage()
      const { handoff, time } = at
      const { sessionId: older } = await handoff.save(workspace, { messages: coding })
      time.now += day
      const { sessionId: talk } = await handoff.append(workspace, {
        messages: [user('The invoice is due on 3 December.')],
      })
      expect((await handoff.list(workspace)).sessions).toMatchObject([
        {
          sessionId: talk,
          unsaved: true,
          messageCount: 1,
          title: 'The invoice is due on 3 December.',
          savedAt: '2026-11-16T12:00:00.000Z',
        },
        { sessionId: older, messageCount: 4 },
      ])
      expect(
        (await handoff.list(workspace, { limit: 1, offset: 1 })).sessions.map(({ sessionId }) => sessionId),
      ).toEqual([older])
      expect(await handoff.list('other')).toEqual({ sessions: [], total: 0 })
      const { continues, context } = await handoff.restore(workspace)
      expect([continues, context.includes('3 December')]).toEqual([talk, true])
      expect((await handoff.list(workspace)).sessions.map(({ sessionId, unsaved }) => [sessionId, unsaved])).toEqual([
        [talk, undefined],
        [older, undefined],
      ])
    },
  )

  verifies('H-05', 'goes on from the one it was restored from, with what was added', async () => {
    await using at = await stage()
    const { handoff, time } = at
    await handoff.save(workspace, { messages: coding })
    time.now += day
    const { sessionId } = await handoff.restore(workspace)
    time.now += day
    const added = await handoff.append(workspace, {
      sessionId,
      messages: [user('The login page of billing-portal is fixed, ticket T-9.')],
    })
    // It is known already what it goes on from.
    expect(added.suggestion).toBeUndefined()
    expect(await handoff.get(workspace, sessionId)).toMatchObject({
      messageCount: 1,
      unsaved: true,
      continuedFrom: first,
    })
    const next = await handoff.restore(workspace)
    expect([next.continues, next.context.includes('T-9'), next.earlier.map(({ session }) => session)]).toEqual([
      sessionId,
      true,
      [first],
    ])
  })

  verifies('H-07', 'is written to a directory with the others, and one that nobody went on with is not', async () => {
    await using at = await stage()
    await at.handoff.append(workspace, { messages: coding })
    expect((await at.handoff.restore(workspace)).continues).toBe(first)
    const talk = await at.handoff.append(workspace, { messages: [user('The invoice is due on 3 December.')] })
    expect(await at.handoff.export(workspace, { directory: at.folder })).toMatchObject({ sessions: 2, messages: 5 })
    await using other = await stage()
    expect(await other.handoff.import({ directory: at.folder })).toMatchObject({
      sessions: 2,
      messages: 5,
      skipped: [],
    })
    expect((await other.handoff.get(workspace, talk.sessionId)).title).toBe('The invoice is due on 3 December.')
  })

  verifies('H-06', 'is listed whatever clients write beside it', async () => {
    await using at = await stage()
    await at.handoff.append(workspace, { messages: coding })
    const note = (id: string, session: string) => ({ type: 'session_begun', id, properties: { session } })
    await at.graph.write(workspace, {
      entities: [
        note('begun_no such id', 'no such id'),
        note('begun_a', 'b'),
        note('begun_', ''),
        note('begun_constructor', 'constructor'),
        note('begun_nowhere', 'nowhere'),
      ],
    })
    expect((await at.handoff.list(workspace)).sessions.map(({ sessionId }) => sessionId)).toEqual([first])
  })

  verifies('H-04', 'is forgotten when it is deleted', async () => {
    await using at = await stage()
    const { sessionId } = await at.handoff.append(workspace, { messages: coding })
    await at.handoff.delete(workspace, sessionId)
    expect([await at.handoff.list(workspace), (await at.graph.entities(workspace)).total]).toEqual([
      { sessions: [], total: 0 },
      0,
    ])
  })
})

describe('a save that was never answered', () => {
  verifies(
    ['H-08', 'H-11'],
    'is gone on with when the same is saved again, and not by another chat that begins with the same few words',
    async () => {
      await using at = await stage()
      const stop = new AbortController()
      const messages = Array.from({ length: 600 }, (_, number) => user(`Step ${number} of the plan is done.`))
      const saving = at.handoff.save(workspace, { messages }, { signal: stop.signal, progress: () => stop.abort() })
      expect(await refused(saving)).toContain('aborted: Saving was stopped by the caller.')
      at.time.now += 1_000
      expect((await at.handoff.save(workspace, { messages })).sessionId).toBe(first)
      expect((await at.handoff.list(workspace)).total).toBe(1)
      const talk = await at.handoff.append(workspace, { messages: [user('Hello.')] })
      at.time.now += 1_000
      expect(
        (await at.handoff.save(workspace, { messages: [user('Hello.'), user('Another chat.')] })).sessionId,
      ).not.toBe(talk.sessionId)
    },
  )
})

describe('what a client gives', () => {
  verifies('H-04', 'is refused if a message has no content, which would be lost without a word', async () => {
    await using at = await stage()
    const words = 'bad-message: messages[1].content is missing; it holds what was said, as text or as a list of parts.'
    const messages = [user('One.'), { role: 'user', text: 'Two.' } as unknown as { role: 'user' }]
    expect(await refused(at.handoff.save(workspace, { messages }))).toBe(words)
    expect(await refused(at.handoff.append(workspace, { messages }))).toBe(words)
    expect(await refused(at.handoff.save(workspace, { conversationContext: JSON.stringify(messages) }))).toBe(words)
    const call = { id: 'c', function: { name: 'look', arguments: '{}' } }
    expect(
      (await at.handoff.save(workspace, { messages: [{ role: 'assistant', tool_calls: [call] }, user('Three.')] }))
        .messages,
    ).toBe(2)
  })

  verifies('H-04', 'is refused if it is a conversation twice over', async () => {
    await using at = await stage()
    expect(
      await refused(at.handoff.save(workspace, { conversationContext: 'User: One.', messages: [user('Two.')] })),
    ).toBe(
      'bad-option: conversationContext and messages were both given, and only one of them can be saved. Give the conversation once.',
    )
  })

  verifies('H-04', 'is stored twice rather than lost where few words are said again', async () => {
    await using at = await stage()
    const { sessionId } = await at.handoff.save(workspace, {
      messages: [user('go on'), { role: 'assistant', content: 'Part 1' }],
    })
    await at.handoff.save(workspace, { sessionId, messages: [user('go on'), { role: 'assistant', content: 'Part 2' }] })
    expect((await at.handoff.transcript(workspace, sessionId)).map(({ content }) => content)).toEqual([
      'go on',
      'Part 1',
      'go on',
      'Part 2',
    ])
  })

  verifies(
    ['H-04', 'H-09'],
    'may be an id with its workspace before it, and with another one is found nowhere',
    async () => {
      await using at = await stage()
      const { handoff } = at
      await handoff.save(workspace, { messages: coding })
      const { sessionId: theirs } = await handoff.save('other', { messages: coding })
      const id = `${workspace}:${first}`
      expect([
        (await handoff.get(workspace, id)).sessionId,
        (await handoff.restore(workspace, { sessionId: id })).continues,
      ]).toEqual([first, first])
      expect((await handoff.save(workspace, { sessionId: id, messages: [user('More of it.')] })).messages).toBe(5)
      expect((await handoff.append(workspace, { sessionId: id, messages: [user('And more.')] })).sessionId).toBe(first)
      expect((await handoff.check(workspace, { sessionId: id })).tokens).toBeGreaterThan(0)
      const words = `bad-option: There is no session "other:${theirs}" in this workspace. list_sessions tells which there are.`
      for (const work of [
        () => handoff.get(workspace, `other:${theirs}`),
        () => handoff.restore(workspace, { sessionId: `other:${theirs}` }),
        () => handoff.save(workspace, { sessionId: `other:${theirs}`, messages: coding }),
        () => handoff.save(workspace, { messages: coding, continues: `other:${theirs}` }),
        () => handoff.append(workspace, { sessionId: `other:${theirs}`, messages: coding }),
        () => handoff.delete(workspace, `other:${theirs}`),
      ])
        expect(await refused(work())).toBe(words)
      await handoff.delete(workspace, id)
      expect((await handoff.get('other', theirs)).messageCount).toBe(4)
    },
  )

  it('may be text in which a line only looks like a speaker', async () => {
    await using at = await stage()
    const told = 'System: Be brief.\nUser: My machine:\nSystem: linux\nCPU: x86\nAssistant: Thanks.'
    const { sessionId } = await at.handoff.save(workspace, { conversationContext: told })
    expect((await at.handoff.transcript(workspace, sessionId)).map(({ role, content }) => [role, content])).toEqual([
      ['system', 'Be brief.'],
      ['user', 'My machine:\nSystem: linux\nCPU: x86'],
      ['assistant', 'Thanks.'],
    ])
  })
})
