import { describe, expect, it } from 'vitest'
import { fresh } from '../../src/handoff/save/fresh.ts'
import { examineFile } from '../../src/stores/sqlite/repair.ts'
import { start } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { coding, noon, type Stage, stage } from './stage.ts'

const workspace = 'billing'
const session = `session_${noon}`

describe('processes that save the same session at once', () => {
  verifies(
    'H-11',
    'lose nothing, store nothing twice, and leave rows that tell of everything',
    async () => {
      await using at = await stage()
      await at.handoff.save(workspace, {
        conversationContext: 'User: We begin together, and each of us adds what is to be said.',
      })
      const writers = ['Ann', 'Bob'].map(
        (who) => start('test/handoff/saver.ts', [at.file, workspace, session, who, '12']).ended,
      )
      for (const { code, stderr } of await Promise.all(writers)) expect([code, stderr]).toEqual([0, ''])
      const said = (await at.memory.transcript(`${workspace}:${session}`)).map(({ content }) => content)
      for (const who of ['Ann', 'Bob'])
        expect(said.filter((one) => one.startsWith(who))).toEqual(
          Array.from({ length: 12 }, (_, number) => `${who} says ${number}.`),
        )
      expect([said.length, (await at.handoff.get(workspace, session)).messageCount]).toEqual([25, 25])
    },
    60_000,
  )

  verifies('H-11', 'leave rows that tell also of what came while they were made', async () => {
    let times = 0
    const providers = {
      gather: async () => {
        times += 1
        if (times === 1)
          await at.memory.append(`${workspace}:${session}`, [{ role: 'user', content: 'TODO: call Zoe.' }])
        return { provided: [], degraded: [] }
      },
    }
    await using at = await stage({ providers })
    expect(
      (
        await at.handoff.save(workspace, {
          conversationContext: 'User: We begin together, and each of us adds what is to be said.',
        })
      ).messages,
    ).toBe(2)
    expect(times).toBe(2)
    expect((await at.handoff.restore(workspace)).contextItems).toMatchObject([
      { category: 'task', content: 'TODO: call Zoe.' },
    ])
  })

  const meanwhile = async (other: (at: Stage) => Promise<unknown>): Promise<Stage> => {
    let isFirst = false
    const providers = {
      gather: async () => {
        if (isFirst) {
          isFirst = false
          await other(at)
        }
        return { provided: [], degraded: [] }
      },
    }
    const at = await stage({ providers })
    await at.handoff.save(workspace, { messages: coding })
    isFirst = true
    await at.handoff.save(workspace, {
      sessionId: session,
      messages: [...coding, { role: 'user', content: 'It goes on.' }],
    })
    return at
  }

  verifies('H-11', 'do not take back what another has said of the session meanwhile', async () => {
    const said = {
      title: 'The umlaut',
      workspaceState: { activeProject: 'portal' },
      contextItems: [{ category: 'task', content: 'Call Zoe.' }],
    } as const
    await using at = await meanwhile(({ handoff }) => handoff.save(workspace, { sessionId: session, ...said }))
    expect(await at.handoff.get(workspace, session)).toMatchObject({
      title: 'The umlaut',
      workspaceState: { activeProject: 'portal' },
      messageCount: 5,
    })
    expect((await at.handoff.restore(workspace)).contextItems.map(({ content }) => content)).toContain('Call Zoe.')
  })

  verifies('H-11', 'do not take back what another has marked meanwhile', async () => {
    await using at = await meanwhile(({ handoff }) => handoff.mark(workspace, session, { messageIds: ['m3'] }))
    const { contextItems } = await at.handoff.restore(workspace)
    expect(contextItems.filter(({ marked }) => marked).map(({ sources }) => sources)).toEqual([['m3'], ['m3']])
  })

  verifies(
    ['H-11', 'X-07'],
    'and are killed while they save keep what they acknowledged, once and in order; the next restore or save makes the rest whole',
    async () => {
      await using at = await stage()
      await at.handoff.save(workspace, {
        conversationContext: 'User: We begin together, and each of us adds what is to be said.',
      })
      const said = async (): Promise<readonly string[]> =>
        (await at.memory.transcript(`${workspace}:${session}`)).map(({ content }) => content)
      for (let round = 0; round < 6; round++) {
        const child = start('test/handoff/saver.ts', [at.file, workspace, session, `Ann ${round}`, '1000'])
        await child.until(`\n${2 + 3 * round}\n`)
        child.process.kill('SIGKILL')
        const acknowledged = (await child.ended).stdout.split('\n').length - 1
        const own = (await said()).filter((one) => one.startsWith(`Ann ${round}`))
        expect(own).toEqual(Array.from({ length: own.length }, (_, number) => `Ann ${round} says ${number}.`))
        expect([0, 1]).toContain(own.length - acknowledged)
        const { sessionId } = await at.handoff.restore(workspace, { sessionId: session })
        expect((await at.handoff.get(workspace, sessionId)).continuedFrom).toBe(session)
        expect((await at.handoff.get(workspace, session)).messageCount).toBe((await said()).length)
        const again = [
          'User: We begin together, and each of us adds what is to be said.',
          ...own.map((content) => `Assistant: ${content}`),
        ].join('\n')
        expect((await at.handoff.save(workspace, { sessionId: session, conversationContext: again })).added).toBe(0)
      }
      expect((await examineFile(at.file)).faults).toEqual([])
    },
    120_000,
  )

  it('and begin one each do not get the same id', async () => {
    await using at = await stage()
    const { Handoff } = await import('../../src/handoff/handoff.ts')
    const [one, other] = [0, 1].map(() => new Handoff({ memory: at.memory, graph: at.graph, clock: () => noon }))
    const ids = await Promise.all(
      [one, other].map((handoff) => handoff?.save(workspace, { conversationContext: 'User: Hello.' })),
    )
    expect(new Set(ids.map((saved) => saved?.sessionId)).size).toBe(2)
  })
})

describe('what is new in a conversation that is told again', () => {
  const cases: readonly (readonly [stored: string, told: string, from: number])[] = [
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
    // "continue", a reply, "continue", another: what is told begins with a third "continue".
    ['abac', 'ad', 0],
    ['abac', 'abx', 2],
  ]
  const short: readonly (readonly [stored: string, told: string, from: number])[] = [
    ['abc', 'ad', 0],
    ['abc', 'cd', 0],
    ['a', 'ab', 0],
    ['abc', 'bcd', 2],
    ['abc', 'abd', 2],
    ['abcd', 'acx', 0],
  ]
  for (const [stored, told, from] of short)
    it(`${told} after ${stored}, all of them short: from ${from} on`, () =>
      expect(fresh([...stored], [...told], () => false)).toBe(from))
  for (const [stored, told, from] of cases)
    it(`${told} after ${stored || 'nothing'}: from ${from} on`, () => expect(fresh([...stored], [...told])).toBe(from))
})
