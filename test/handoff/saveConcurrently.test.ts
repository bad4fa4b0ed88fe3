import { describe, expect, it } from 'vitest'
import { firstNewIndex } from '../../src/handoff/save/newMessages.ts'
import { examineFile } from '../../src/stores/sqlite/repair.ts'
import { startProgram } from '../cli/command.ts'
import { isCampaign } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { codingConversation, createHarness, type HandoffHarness, noon } from './harness.ts'

const workspace = 'billing'
const session = `session_${noon}`

describe('concurrent saves of one session', () => {
  verifies(
    'H-11',
    'by several processes store every message once, and the rows cover all of them',
    async () => {
      await using harness = await createHarness()
      await harness.handoff.save(workspace, {
        conversationContext: 'User: We begin together, and each of us adds what is to be said.',
      })
      const writers = ['Ann', 'Bob'].map(
        (who) => startProgram('test/handoff/saver.ts', [harness.file, workspace, session, who, '12']).result,
      )
      for (const { code, stderr } of await Promise.all(writers)) expect([code, stderr]).toEqual([0, ''])
      const contents = (await harness.memory.transcript(`${workspace}:${session}`)).map(({ content }) => content)
      for (const who of ['Ann', 'Bob'])
        expect(contents.filter((content) => content.startsWith(who))).toEqual(
          Array.from({ length: 12 }, (_, number) => `${who} says ${number}.`),
        )
      expect([contents.length, (await harness.handoff.get(workspace, session)).messageCount]).toEqual([25, 25])
    },
    60_000,
  )

  verifies('H-11', 'with messages appended meanwhile build the rows again', async () => {
    let gatherCalls = 0
    const providers = {
      gather: async () => {
        gatherCalls += 1
        if (gatherCalls === 1)
          await harness.memory.append(`${workspace}:${session}`, [{ role: 'user', content: 'TODO: call Zoe.' }])
        return { provided: [], degraded: [] }
      },
    }
    await using harness = await createHarness({ providers })
    expect(
      (
        await harness.handoff.save(workspace, {
          conversationContext: 'User: We begin together, and each of us adds what is to be said.',
        })
      ).messages,
    ).toBe(2)
    expect(gatherCalls).toBe(2)
    expect((await harness.handoff.restore(workspace)).contextItems).toMatchObject([
      { category: 'task', content: 'TODO: call Zoe.' },
    ])
  })

  /** Saves a session while another writer changes it. */
  const saveDuring = async (change: (harness: HandoffHarness) => Promise<unknown>): Promise<HandoffHarness> => {
    let isNext = false
    const providers = {
      gather: async () => {
        if (isNext) {
          isNext = false
          await change(harness)
        }
        return { provided: [], degraded: [] }
      },
    }
    const harness = await createHarness({ providers })
    await harness.handoff.save(workspace, { messages: codingConversation })
    isNext = true
    await harness.handoff.save(workspace, {
      sessionId: session,
      messages: [...codingConversation, { role: 'user', content: 'It goes on.' }],
    })
    return harness
  }

  verifies('H-11', 'keep the title, state and items that another writer set meanwhile', async () => {
    const changes = {
      title: 'The umlaut',
      workspaceState: { activeProject: 'portal' },
      contextItems: [{ category: 'task', content: 'Call Zoe.' }],
    } as const
    await using harness = await saveDuring(({ handoff }) => handoff.save(workspace, { sessionId: session, ...changes }))
    expect(await harness.handoff.get(workspace, session)).toMatchObject({
      title: 'The umlaut',
      workspaceState: { activeProject: 'portal' },
      messageCount: 5,
    })
    expect((await harness.handoff.restore(workspace)).contextItems.map(({ content }) => content)).toContain('Call Zoe.')
  })

  verifies('H-11', 'keep the marks that another writer set meanwhile', async () => {
    await using harness = await saveDuring(({ handoff }) => handoff.mark(workspace, session, { messageIds: ['m3'] }))
    const { contextItems } = await harness.handoff.restore(workspace)
    expect(contextItems.filter(({ marked }) => marked).map(({ sources }) => sources)).toEqual([['m3'], ['m3']])
  })

  verifies(
    ['H-11', 'X-07'],
    'killed by SIGKILL keep acknowledged messages once and in order, and the next restore or save repairs the rows',
    async () => {
      await using harness = await createHarness()
      await harness.handoff.save(workspace, {
        conversationContext: 'User: We begin together, and each of us adds what is to be said.',
      })
      const readContents = async (): Promise<readonly string[]> =>
        (await harness.memory.transcript(`${workspace}:${session}`)).map(({ content }) => content)
      for (let round = 0; round < (isCampaign ? 3 : 2); round++) {
        const child = startProgram('test/handoff/saver.ts', [harness.file, workspace, session, `Ann ${round}`, '1000'])
        await child.waitForOutput(`\n${2 + 3 * round}\n`)
        child.process.kill('SIGKILL')
        const acknowledged = (await child.result).stdout.split('\n').length - 1
        const own = (await readContents()).filter((content) => content.startsWith(`Ann ${round}`))
        expect(own).toEqual(Array.from({ length: own.length }, (_, number) => `Ann ${round} says ${number}.`))
        expect([0, 1]).toContain(own.length - acknowledged)
        const { sessionId } = await harness.handoff.restore(workspace, { sessionId: session })
        expect((await harness.handoff.get(workspace, sessionId)).continuedFrom).toBe(session)
        expect((await harness.handoff.get(workspace, session)).messageCount).toBe((await readContents()).length)
        const again = [
          'User: We begin together, and each of us adds what is to be said.',
          ...own.map((content) => `Assistant: ${content}`),
        ].join('\n')
        expect((await harness.handoff.save(workspace, { sessionId: session, conversationContext: again })).added).toBe(
          0,
        )
      }
      expect((await examineFile(harness.file)).faults).toEqual([])
    },
    120_000,
  )

  it('by two instances without an id get different ids', async () => {
    await using harness = await createHarness()
    const { Handoff } = await import('../../src/handoff/handoff.ts')
    const [one, other] = [0, 1].map(
      () => new Handoff({ memory: harness.memory, graph: harness.graph, clock: () => noon }),
    )
    const ids = await Promise.all(
      [one, other].map((handoff) => handoff?.save(workspace, { conversationContext: 'User: Hello.' })),
    )
    expect(new Set(ids.map((saved) => saved?.sessionId)).size).toBe(2)
  })
})

describe('firstNewIndex', () => {
  const cases: readonly (readonly [stored: string, sent: string, index: number])[] = [
    ['', 'abc', 0],
    ['abc', 'abc', 3],
    ['abc', 'abcd', 3],
    ['abc', 'bcd', 2],
    ['abc', 'cd', 1],
    ['abc', 'xyz', 0],
    ['abc', 'ab', 2],
    ['abc', 'abx', 2],
    ['abc', 'a', 0],
    ['axbyc', 'abcd', 3],
    ['aaaa', 'aaaaa', 4],
    ['abab', 'abx', 2],
    // "continue", a reply, "continue", another reply: the sent part starts with a third "continue".
    ['abac', 'ad', 0],
    ['abac', 'abx', 2],
  ]
  const shortMessageCases: readonly (readonly [stored: string, sent: string, index: number])[] = [
    ['abc', 'ad', 0],
    ['abc', 'cd', 0],
    ['a', 'ab', 0],
    ['abc', 'bcd', 2],
    ['abc', 'abd', 2],
    ['abcd', 'acx', 0],
  ]
  for (const [stored, sent, index] of shortMessageCases)
    it(`of ${sent} after ${stored} with short messages is ${index}`, () =>
      expect(firstNewIndex([...stored], [...sent], () => false)).toBe(index))
  for (const [stored, sent, index] of cases)
    it(`of ${sent} after ${stored || 'nothing'} is ${index}`, () =>
      expect(firstNewIndex([...stored], [...sent])).toBe(index))
})
