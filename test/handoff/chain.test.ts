import { describe, expect, it } from 'vitest'
import { chainText } from '../../src/handoff/chain.ts'
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
    // Of a link that is gone the neighbours hold together.
    await handoff.delete(workspace, ids[1] as string)
    const left = ids.filter((_, at) => at !== 1)
    for (const id of left) expect((await handoff.chain(workspace, id)).map(({ sessionId }) => sessionId)).toEqual(left)
    const { relationships } = await at.graph.relationships(workspace, {
      types: ['SESSION_CONTINUES'],
      from: ids[2] as string,
    })
    expect(relationships.map(({ to }) => to)).toEqual([first])
    await handoff.delete(workspace, first)
    expect(await handoff.get(workspace, ids[2] as string)).not.toHaveProperty('continuedFrom')
    // They are still forgotten with what they quote.
    await at.memory.forget({ key: `${workspace}:${ids[2]}`, messageId: 'm1' })
    expect(JSON.stringify(await at.graph.entities(workspace, { session: ids[2] as string }))).not.toContain('Part 2')
  })

  it('may branch', async () => {
    await using at = await stage()
    await at.handoff.save(workspace, { messages: coding })
    const restored = [
      await at.handoff.restore(workspace),
      await at.handoff.restore(workspace),
      await at.handoff.restore(workspace),
    ]
    const [left, right] = restored.map(({ sessionId }) => sessionId)
    for (const sessionId of [left, right] as string[])
      await at.handoff.save(workspace, { sessionId, conversationContext: 'User: On.' })
    const chain = await at.handoff.chain(workspace, first)
    // The third was never gone on with.
    expect(chain.map(({ sessionId }) => sessionId)).toEqual([first, left, right])
    expect(chainText(chain)).toBe(`${first} → ${left}; ${first} → ${right}`)
    expect((await at.handoff.analytics(workspace, first)).sessions.length).toBe(3)
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
    const begun = await handoff.append(workspace, {
      messages: [{ role: 'user', content: 'What about the summer party?' }],
    })
    expect(begun.suggestion).toMatchObject({
      sessionId: ids[3],
      why: 'about the same',
      title: 'We plan the summer party.',
    })
    expect(
      (
        await handoff.append(workspace, {
          sessionId: begun.sessionId,
          messages: [{ role: 'user', content: 'Hm, the party?' }],
        })
      ).suggestion,
    ).toBeUndefined()
  })

  verifies('H-17', 'is told of other sessions that are named or about the same, and is linked to them', async () => {
    await using at = await stage()
    const { handoff, time, graph } = at
    const invoice = await handoff.save(workspace, {
      conversationContext: 'User: The invoice template breaks on umlauts in INV-2041.',
    })
    time.now += day
    const party = await handoff.save(workspace, { conversationContext: 'User: We plan the summer party on the roof.' })
    time.now += day
    await handoff.save(workspace, {
      conversationContext: `User: The login page fails. See ${party.sessionId} for the date.`,
    })
    time.now += day
    const restored = await handoff.restore(workspace, { query: 'umlauts in the invoice template' })
    expect(restored.earlier.map(({ session }) => session)).toEqual([party.sessionId, invoice.sessionId])
    expect(restored.context).toContain('We plan the summer party on the roof.')
    const { relationships } = await graph.relationships(workspace, {
      from: restored.sessionId,
      types: ['SESSION_REFERENCES'],
    })
    expect(relationships).toMatchObject([{ to: invoice.sessionId, properties: { found: 'search' } }])
  })
})
