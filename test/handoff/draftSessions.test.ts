import { describe, expect, it, vi } from 'vitest'
import { draftMarkerId } from '../../src/handoff/rows.ts'
import { internalsOf } from '../../src/memory.ts'
import { verifies } from '../requirements/verifies.ts'
import { codingConversation, createHarness, day, describeOutcome, noon, userMessage } from './harness.ts'

const workspace = 'billing'
const first = `session_${noon}`

describe('draft session', () => {
  verifies(
    ['H-04', 'H-05'],
    'is listed as unsaved and is restored by default if it is the most recent one',
    async () => {
      await using harness = await createHarness()
      const { handoff, time } = harness
      const { sessionId: older } = await handoff.save(workspace, { messages: codingConversation })
      time.now += day
      const { sessionId: talk } = await handoff.append(workspace, {
        messages: [userMessage('The invoice is due on 3 December.')],
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

  verifies('H-05', 'created by a restore keeps its predecessor and includes appended messages', async () => {
    await using harness = await createHarness()
    const { handoff, time } = harness
    await handoff.save(workspace, { messages: codingConversation })
    time.now += day
    const { sessionId } = await handoff.restore(workspace)
    time.now += day
    const added = await handoff.append(workspace, {
      sessionId,
      messages: [userMessage('The login page of billing-portal is fixed, ticket T-9.')],
    })
    // No suggestion: the predecessor is known.
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

  verifies('H-07', 'is exported, and a restored session that was never written to is not', async () => {
    await using harness = await createHarness()
    await harness.handoff.append(workspace, { messages: codingConversation })
    expect((await harness.handoff.restore(workspace)).continues).toBe(first)
    const talk = await harness.handoff.append(workspace, {
      messages: [userMessage('The invoice is due on 3 December.')],
    })
    expect(await harness.handoff.export(workspace, { directory: harness.folder })).toMatchObject({
      sessions: 2,
      messages: 5,
    })
    await using other = await createHarness()
    expect(await other.handoff.import({ directory: harness.folder })).toMatchObject({
      sessions: 2,
      messages: 5,
      skipped: [],
    })
    expect((await other.handoff.get(workspace, talk.sessionId)).title).toBe('The invoice is due on 3 December.')
  })

  verifies('H-06', 'with forged marker rows in the graph is still listed, and nothing else is', async () => {
    await using harness = await createHarness()
    await harness.handoff.append(workspace, { messages: codingConversation })
    const marker = (id: string, session: string) => ({ type: 'session_begun', id, properties: { session } })
    await harness.graph.write(workspace, {
      entities: [
        marker('begun_no such id', 'no such id'),
        marker('begun_a', 'b'),
        marker('begun_', ''),
        marker('begun_constructor', 'constructor'),
        marker('begun_nowhere', 'nowhere'),
      ],
    })
    expect((await harness.handoff.list(workspace)).sessions.map(({ sessionId }) => sessionId)).toEqual([first])
  })

  verifies('H-04', 'is deleted with its marker row', async () => {
    await using harness = await createHarness()
    const { sessionId } = await harness.handoff.append(workspace, { messages: codingConversation })
    await harness.handoff.delete(workspace, sessionId)
    expect([await harness.handoff.list(workspace), (await harness.graph.queryEntities(workspace)).total]).toEqual([
      { sessions: [], total: 0 },
      0,
    ])
  })
})

describe('save of a draft without its id', () => {
  verifies(
    ['H-08', 'H-11'],
    'with the same messages continues the draft, and with only a short message in common does not',
    async () => {
      await using harness = await createHarness()
      const abort = new AbortController()
      const messages = Array.from({ length: 600 }, (_, number) => userMessage(`Step ${number} of the plan is done.`))
      const saving = harness.handoff.save(
        workspace,
        { messages },
        { signal: abort.signal, progress: () => abort.abort() },
      )
      expect(await describeOutcome(saving)).toContain('aborted: Saving was stopped by the caller.')
      harness.time.now += 1_000
      expect((await harness.handoff.save(workspace, { messages })).sessionId).toBe(first)
      expect((await harness.handoff.list(workspace)).total).toBe(1)
      const talk = await harness.handoff.append(workspace, { messages: [userMessage('Hello.')] })
      harness.time.now += 1_000
      expect(
        (await harness.handoff.save(workspace, { messages: [userMessage('Hello.'), userMessage('Another chat.')] }))
          .sessionId,
      ).not.toBe(talk.sessionId)
    },
  )
})

describe('save without an id', () => {
  it('in a workspace with more drafts and saved sessions › reads no more rows and messages', async () => {
    await using harness = await createHarness()
    const { handoff, memory, graph } = harness
    const { sessions } = internalsOf(memory)
    const talkAbout = (number: number) => [
      userMessage(`Chat ${number} begins with a question that no other chat has.`),
      userMessage(`And chat ${number} goes on with another one.`),
    ]
    const startChats = async (from: number, count: number): Promise<void> => {
      for (let number = from; number < from + count; number++) {
        harness.time.now += 1_000
        await handoff.append(workspace, { messages: talkAbout(number) })
        await handoff.save(workspace, { messages: [userMessage(`Saved chat ${number} has a topic of its own.`)] })
      }
    }
    const countReads = async (number: number): Promise<number> => {
      const spies = [
        vi.spyOn(sessions, 'readHead'),
        vi.spyOn(sessions, 'readMessages'),
        vi.spyOn(graph, 'getEntity'),
        vi.spyOn(graph, 'queryEntities'),
      ]
      await handoff.save(workspace, { messages: talkAbout(number) })
      const results = await Promise.all(spies.flatMap((spy) => spy.mock.results.map(({ value }) => value)))
      for (const spy of spies) spy.mockRestore()
      return results.reduce((sum, result) => sum + 1 + (result?.length ?? result?.entities?.length ?? 0), 0)
    }
    await startChats(0, 20)
    const reads = await countReads(100)
    await startChats(20, 20)
    expect(await countReads(101)).toBe(reads)
  })
})

describe('list of very many draft sessions', () => {
  it('reads their markers once', async () => {
    await using harness = await createHarness()
    const { handoff, graph } = harness
    const markers = Array.from({ length: 1_100 }, (_, at) => ({
      type: 'session_begun',
      id: draftMarkerId(`s${at}`),
      properties: { session: `s${at}` },
    }))
    await graph.write(workspace, { entities: markers })
    const query = vi.spyOn(graph, 'queryEntities')
    await handoff.list(workspace)
    const reads = query.mock.calls.filter(([, options]) => options?.types?.includes('session_begun') === true)
    expect(reads).toHaveLength(1)
  })
})

describe('save and append', () => {
  verifies('H-04', 'with a message without content are rejected', async () => {
    await using harness = await createHarness()
    const message = 'bad-message: messages[1].content is missing. Give it as text or as a list of parts.'
    const messages = [userMessage('One.'), { role: 'user', text: 'Two.' } as unknown as { role: 'user' }]
    expect(await describeOutcome(harness.handoff.save(workspace, { messages }))).toBe(message)
    expect(await describeOutcome(harness.handoff.append(workspace, { messages }))).toBe(message)
    expect(
      await describeOutcome(harness.handoff.save(workspace, { conversationContext: JSON.stringify(messages) })),
    ).toBe(message)
    const call = { id: 'c', function: { name: 'look', arguments: '{}' } }
    expect(
      (
        await harness.handoff.save(workspace, {
          messages: [{ role: 'assistant', tool_calls: [call] }, userMessage('Three.')],
        })
      ).messages,
    ).toBe(2)
  })

  verifies('H-04', 'with both conversationContext and messages are rejected', async () => {
    await using harness = await createHarness()
    expect(
      await describeOutcome(
        harness.handoff.save(workspace, { conversationContext: 'User: One.', messages: [userMessage('Two.')] }),
      ),
    ).toBe(
      'bad-option: conversationContext and messages were both given, and only one of them can be saved. Give the conversation once.',
    )
  })

  verifies('H-04', 'with a repeated short message store it twice rather than losing it', async () => {
    await using harness = await createHarness()
    const { sessionId } = await harness.handoff.save(workspace, {
      messages: [userMessage('go on'), { role: 'assistant', content: 'Part 1' }],
    })
    await harness.handoff.save(workspace, {
      sessionId,
      messages: [userMessage('go on'), { role: 'assistant', content: 'Part 2' }],
    })
    expect((await harness.handoff.getTranscript(workspace, sessionId)).map(({ content }) => content)).toEqual([
      'go on',
      'Part 1',
      'go on',
      'Part 2',
    ])
  })

  verifies(
    ['H-04', 'H-09'],
    'with an id accept its workspace as a prefix, and find no session of another workspace',
    async () => {
      await using harness = await createHarness()
      const { handoff } = harness
      await handoff.save(workspace, { messages: codingConversation })
      const { sessionId: theirs } = await handoff.save('other', { messages: codingConversation })
      const id = `${workspace}:${first}`
      expect([
        (await handoff.get(workspace, id)).sessionId,
        (await handoff.restore(workspace, { sessionId: id })).continues,
      ]).toEqual([first, first])
      expect((await handoff.save(workspace, { sessionId: id, messages: [userMessage('More of it.')] })).messages).toBe(
        5,
      )
      expect((await handoff.append(workspace, { sessionId: id, messages: [userMessage('And more.')] })).sessionId).toBe(
        first,
      )
      expect((await handoff.check(workspace, { sessionId: id })).tokens).toBeGreaterThan(0)
      const message = `bad-option: There is no session "other:${theirs}" in this workspace. list_sessions tells which there are.`
      for (const work of [
        () => handoff.get(workspace, `other:${theirs}`),
        () => handoff.restore(workspace, { sessionId: `other:${theirs}` }),
        () => handoff.save(workspace, { sessionId: `other:${theirs}`, messages: codingConversation }),
        () => handoff.save(workspace, { messages: codingConversation, continues: `other:${theirs}` }),
        () => handoff.append(workspace, { sessionId: `other:${theirs}`, messages: codingConversation }),
        () => handoff.delete(workspace, `other:${theirs}`),
      ])
        expect(await describeOutcome(work())).toBe(message)
      await handoff.delete(workspace, id)
      expect((await handoff.get('other', theirs)).messageCount).toBe(4)
    },
  )

  it('with a line that only looks like a speaker keep it in the message', async () => {
    await using harness = await createHarness()
    const conversationContext = 'System: Be brief.\nUser: My machine:\nSystem: linux\nCPU: x86\nAssistant: Thanks.'
    const { sessionId } = await harness.handoff.save(workspace, { conversationContext })
    expect(
      (await harness.handoff.getTranscript(workspace, sessionId)).map(({ role, content }) => [role, content]),
    ).toEqual([
      ['system', 'Be brief.'],
      ['user', 'My machine:\nSystem: linux\nCPU: x86'],
      ['assistant', 'Thanks.'],
    ])
  })
})
