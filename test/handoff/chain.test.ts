import { describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { coding, day, noon, stage } from './stage.ts'

const workspace = 'billing'
const first = `session_${noon}`

describe('sessions that go on from each other', () => {
  verifies(['H-05', 'H-17'], 'make a chain, whichever of them is asked', async () => {
    await using at = await stage()
    const { handoff, time } = at
    await handoff.save(workspace, { messages: coding })
    const ids = [first]
    for (let number = 1; number < 4; number++) {
      time.now += day
      const { sessionId } = await handoff.restore(workspace)
      await handoff.save(workspace, { sessionId, conversationContext: `User: Part ${number} of the portal.` })
      ids.push(sessionId)
    }
    for (const id of ids) expect((await handoff.chain(workspace, id)).map(({ sessionId }) => sessionId)).toEqual(ids)
    const { earlier, context } = await handoff.restore(workspace)
    expect(earlier.map(({ session }) => session)).toEqual(ids.slice(0, 3))
    expect(context).toContain('Part 2 of the portal.')
    // A link that is gone ends the chain, and nothing else.
    await handoff.delete(workspace, ids[1] as string)
    expect((await handoff.chain(workspace, ids[3] as string)).map(({ sessionId }) => sessionId).slice(0, 2)).toEqual(ids.slice(2))
  })

  it('may branch', async () => {
    await using at = await stage()
    await at.handoff.save(workspace, { messages: coding })
    const [left, right] = [await at.handoff.restore(workspace), await at.handoff.restore(workspace)]
    expect((await at.handoff.chain(workspace, first)).map(({ sessionId }) => sessionId).sort()).toEqual([first, left.sessionId, right.sessionId].sort())
  })

  it('that claim to go on from each other in a circle still end', async () => {
    await using at = await stage()
    const { sessionId } = await at.handoff.save(workspace, {
      conversationContext: 'User: One.',
      continues: (await at.handoff.save(workspace, { messages: coding })).sessionId,
    })
    await at.handoff.save(workspace, { sessionId: first, continues: sessionId })
    expect((await at.handoff.chain(workspace, first)).length).toBe(2)
    expect((await at.handoff.restore(workspace, { sessionId: first })).continues).toBe(first)
  })
})

describe('a new chat', () => {
  verifies('H-17', 'is offered the most recent session that matches how it begins', async () => {
    await using at = await stage()
    const { handoff, time } = at
    const talks = [
      'Our invoice template breaks on umlauts in INV-2041.',
      'The login page of billing-portal fails with E-4711.',
      'The login page of billing-portal needs a new logo.',
      'We plan the summer party.',
    ]
    const ids: string[] = []
    for (const talk of talks) {
      ids.push((await handoff.save(workspace, { conversationContext: `User: ${talk}` })).sessionId)
      time.now += day
    }
    await handoff.save('other', { conversationContext: 'User: The login page of billing-portal is theirs.' })
    expect((await handoff.suggest(workspace, 'Back to the billing-portal login page.'))?.sessionId).toBe(ids[2])
    expect((await handoff.suggest(workspace, 'INV-2041 again'))?.sessionId).toBe(ids[0])
    expect(await handoff.suggest(workspace, '')).toMatchObject({ sessionId: ids[3], why: 'most recent' })
    expect(await handoff.suggest(workspace, 'zebra')).toBeUndefined()
    expect(await handoff.suggest('empty', '')).toBeUndefined()
    const begun = await handoff.append(workspace, { messages: [{ role: 'user', content: 'What about the summer party?' }] })
    expect(begun.suggestion).toMatchObject({ sessionId: ids[3], why: 'about the same', title: 'We plan the summer party.' })
    expect(
      (await handoff.append(workspace, { sessionId: begun.sessionId, messages: [{ role: 'user', content: 'Hm, the party?' }] })).suggestion,
    ).toBeUndefined()
  })

  verifies('H-17', 'is told of other sessions that are named or about the same, and is linked to them', async () => {
    await using at = await stage()
    const { handoff, time, graph } = at
    const invoice = await handoff.save(workspace, { conversationContext: 'User: The invoice template breaks on umlauts in INV-2041.' })
    time.now += day
    const party = await handoff.save(workspace, { conversationContext: 'User: We plan the summer party on the roof.' })
    time.now += day
    await handoff.save(workspace, { conversationContext: `User: The login page fails. See ${party.sessionId} for the date.` })
    time.now += day
    const restored = await handoff.restore(workspace, { query: 'umlauts in the invoice template' })
    expect(restored.earlier.map(({ session }) => session)).toEqual([party.sessionId, invoice.sessionId])
    expect(restored.context).toContain('We plan the summer party on the roof.')
    const { relationships } = await graph.relationships(workspace, { from: restored.sessionId, types: ['SESSION_REFERENCES'] })
    expect(relationships).toMatchObject([{ to: invoice.sessionId, properties: { found: 'search' } }])
  })
})
