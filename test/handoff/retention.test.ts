import { describe, expect } from 'vitest'
import { handoff as profile } from '../../src/profiles/handoff.ts'
import { verifies } from '../requirements/verifies.ts'
import { codingConversation, createHarness, day, noon } from './harness.ts'

const workspace = 'billing'
const first = `session_${noon}`

describe('session', () => {
  verifies('H-08', 'expires after 30 days, swept or not', async () => {
    expect(profile.lifetime.age).toBe(30 * day)
    await using harness = await createHarness()
    const { handoff, graph, memory, time } = harness
    await handoff.save(workspace, { messages: codingConversation })
    const { sessionId: empty } = await handoff.restore(workspace)
    time.now += 30 * day - 1
    expect([(await handoff.list(workspace)).total, (await handoff.sweep([workspace])).ended]).toEqual([1, []])
    time.now += 1
    expect((await handoff.list(workspace)).total).toBe(0)
    await expect(handoff.get(workspace, first)).rejects.toThrow(`There is no session "${first}" in this workspace.`)
    expect((await handoff.sweep([workspace])).ended).toEqual([`${workspace}:${first}`, `${workspace}:${empty}`])
    expect((await graph.queryEntities(workspace)).entities.map(({ type }) => type)).toEqual(['workspace'])
    expect([
      (await graph.queryRelationships(workspace)).total,
      await memory.transcript(`${workspace}:${first}`),
    ]).toEqual([0, []])
  })

  verifies(['H-04', 'H-06'], 'with rows overwritten by a client is deleted and swept completely', async () => {
    await using harness = await createHarness()
    const { handoff, graph, time } = harness
    const saveAndOverwrite = async (): Promise<string> => {
      const { sessionId } = await handoff.save(workspace, {
        messages: codingConversation,
        workspaceState: { activeProject: 'portal' },
      })
      const { entities } = await graph.queryEntities(workspace, {
        session: sessionId,
        types: ['session', 'session_origin', 'conversation', 'workspace_state'],
      })
      await graph.write(workspace, {
        entities: entities.map(({ type, id, properties }) => ({
          type,
          id,
          properties: { ...properties, note: 'Written over.' },
        })),
      })
      return sessionId
    }
    const remainingTypes = async (): Promise<readonly string[]> =>
      (await graph.queryEntities(workspace)).entities.map(({ type }) => type)
    await handoff.delete(workspace, await saveAndOverwrite())
    expect(await remainingTypes()).toEqual(['workspace'])
    await saveAndOverwrite()
    time.now += 30 * day
    await handoff.sweep([workspace])
    expect(await remainingTypes()).toEqual(['workspace'])
  })

  verifies('H-04', 'list is paged with a total, most recently saved first, and omits deleted sessions', async () => {
    await using harness = await createHarness()
    const { handoff, graph, memory, time } = harness
    for (let number = 0; number < 5; number++) {
      await handoff.save(workspace, { conversationContext: `User: Talk number ${number}.` })
      time.now += 1_000
    }
    await handoff.save(workspace, {
      sessionId: first,
      conversationContext: 'User: Talk number 0.\nAssistant: It goes on.',
    })
    const page = async (limit: number, offset: number) =>
      (await handoff.list(workspace, { limit, offset })).sessions.map(({ title }) => title)
    expect(await page(2, 0)).toEqual(['Talk number 0.', 'Talk number 4.'])
    expect(await page(2, 4)).toEqual(['Talk number 1.'])
    expect((await handoff.list(workspace, { limit: 1 })).total).toBe(5)
    await handoff.delete(workspace, first)
    expect((await handoff.list(workspace)).total).toBe(4)
    expect(
      JSON.stringify([await graph.queryEntities(workspace), await graph.queryRelationships(workspace)]),
    ).not.toContain(first)
    expect(await memory.search(workspace, 'It goes on')).toEqual([])
    await expect(handoff.delete(workspace, first)).rejects.toThrow('There is no session')
    await expect(handoff.list(workspace, { limit: 0 })).rejects.toThrow(
      'limit is 0; it must be a whole number from 1 to 1000.',
    )
  })
})
