import { describe, expect, it } from 'vitest'
import type { SearchIndex, Store } from '../../src/domain/ports.ts'
import { FileService } from '../../src/files/files.ts'
import { formatChain } from '../../src/handoff/chain.ts'
import { internalsOf } from '../../src/memory.ts'
import { verifies } from '../requirements/verifies.ts'
import { codingConversation, createHarness, day, noon } from './harness.ts'

const workspace = 'billing'
const first = `session_${noon}`

describe('chain', () => {
  verifies(['H-05', 'H-17'], 'of any of its sessions returns the whole chain, also after one was deleted', async () => {
    await using harness = await createHarness()
    const { handoff, time } = harness
    await handoff.save(workspace, { messages: codingConversation })
    const ids = [first]
    for (let number = 1; number < 4; number++) {
      time.now += day
      const { sessionId } = await handoff.restore(workspace)
      await handoff.save(workspace, { sessionId, conversationContext: `User: Part ${number} of the portal.` })
      ids.push(sessionId)
    }
    for (const id of ids) expect((await handoff.getChain(workspace, id)).map(({ sessionId }) => sessionId)).toEqual(ids)
    const { earlier, context } = await handoff.restore(workspace)
    expect(earlier.map(({ session }) => session)).toEqual(ids.slice(0, 3))
    expect(context).toContain('Part 2 of the portal.')
    // Deleting a session links its neighbours.
    await handoff.delete(workspace, ids[1] as string)
    const remaining = ids.filter((_, index) => index !== 1)
    for (const id of remaining)
      expect((await handoff.getChain(workspace, id)).map(({ sessionId }) => sessionId)).toEqual(remaining)
    const { relationships } = await harness.graph.queryRelationships(workspace, {
      types: ['SESSION_CONTINUES'],
      from: ids[2] as string,
    })
    expect(relationships.map(({ to }) => to)).toEqual([first])
    await handoff.delete(workspace, first)
    expect(await handoff.get(workspace, ids[2] as string)).not.toHaveProperty('continuedFrom')
    // Relinked rows are still deleted with the message they quote.
    await harness.memory.forget({ key: `${workspace}:${ids[2]}`, messageId: 'm1' })
    expect(JSON.stringify(await harness.graph.queryEntities(workspace, { session: ids[2] as string }))).not.toContain(
      'Part 2',
    )
  })

  it('with two continuations of one session has two branches', async () => {
    await using harness = await createHarness()
    await harness.handoff.save(workspace, { messages: codingConversation })
    const restored = [
      await harness.handoff.restore(workspace),
      await harness.handoff.restore(workspace),
      await harness.handoff.restore(workspace),
    ]
    const [left, right] = restored.map(({ sessionId }) => sessionId)
    for (const sessionId of [left, right] as string[])
      await harness.handoff.save(workspace, { sessionId, conversationContext: 'User: On.' })
    const chain = await harness.handoff.getChain(workspace, first)
    // The third session was never written to.
    expect(chain.map(({ sessionId }) => sessionId)).toEqual([first, left, right])
    expect(formatChain(chain)).toBe(`${first} → ${left}; ${first} → ${right}`)
    expect((await harness.handoff.getAnalytics(workspace, first)).sessions.length).toBe(3)
  })

  it('with sessions that continue each other in a circle ends', async () => {
    await using harness = await createHarness()
    const { sessionId } = await harness.handoff.save(workspace, {
      conversationContext: 'User: One.',
      continues: (await harness.handoff.save(workspace, { messages: codingConversation })).sessionId,
    })
    await harness.handoff.save(workspace, { sessionId: first, continues: sessionId })
    expect((await harness.handoff.getChain(workspace, first)).length).toBe(2)
    expect((await harness.handoff.restore(workspace, { sessionId: first })).continues).toBe(first)
  })
})

describe('suggest and restore', () => {
  verifies('H-17', 'suggest the most recent session that matches the start of a new chat', async () => {
    await using harness = await createHarness()
    const { handoff, time } = harness
    const topics = [
      'Our invoice template breaks on umlauts in INV-2041.',
      'The login page of billing-portal fails with E-4711.',
      'The login page of billing-portal needs a new logo.',
      'We plan the summer party.',
    ]
    const ids: string[] = []
    for (const topic of topics) {
      ids.push((await handoff.save(workspace, { conversationContext: `User: ${topic}` })).sessionId)
      time.now += day
    }
    await handoff.save('other', { conversationContext: 'User: The login page of billing-portal is theirs.' })
    expect((await handoff.suggest(workspace, 'Back to the billing-portal login page.'))?.sessionId).toBe(ids[2])
    expect((await handoff.suggest(workspace, 'INV-2041 again'))?.sessionId).toBe(ids[0])
    expect(await handoff.suggest(workspace, '')).toMatchObject({ sessionId: ids[3], why: 'most recent' })
    expect(await handoff.suggest(workspace, 'zebra')).toBeUndefined()
    expect(await handoff.suggest('empty', '')).toBeUndefined()
    const started = await handoff.append(workspace, {
      messages: [{ role: 'user', content: 'What about the summer party?' }],
    })
    expect(started.suggestion).toMatchObject({
      sessionId: ids[3],
      why: 'about the same',
      title: 'We plan the summer party.',
    })
    expect(
      (
        await handoff.append(workspace, {
          sessionId: started.sessionId,
          messages: [{ role: 'user', content: 'Hm, the party?' }],
        })
      ).suggestion,
    ).toBeUndefined()
  })

  verifies('H-17', 'with a file of the workspace about the same topic › find sessions only', async () => {
    await using harness = await createHarness()
    const { handoff, memory, time } = harness
    const { sessionId } = await handoff.save(workspace, { conversationContext: 'User: The heron lives at the pond.' })
    time.now += day
    await handoff.save(workspace, { conversationContext: 'User: We plan the summer party.' })
    const store = internalsOf(memory).sessions as Store & SearchIndex
    const files = new FileService({ store, tokenizer: memory.tokenizer, masker: undefined, clock: () => time.now })
    await files.add(workspace, { name: 'birds.txt', bytes: Buffer.from('The heron eats the fish of the pond.') })
    await files.close()
    expect((await handoff.suggest(workspace, 'the heron of the pond'))?.sessionId).toBe(sessionId)
    const restored = await handoff.restore(workspace, { query: 'the heron of the pond' })
    expect(restored.earlier.map(({ session }) => session)).toEqual([sessionId])
  })

  verifies(
    'H-17',
    'mention sessions that are named or about the same topic, and link the new session to them',
    async () => {
      await using harness = await createHarness()
      const { handoff, time, graph } = harness
      const invoice = await handoff.save(workspace, {
        conversationContext: 'User: The invoice template breaks on umlauts in INV-2041.',
      })
      time.now += day
      const party = await handoff.save(workspace, {
        conversationContext: 'User: We plan the summer party on the roof.',
      })
      time.now += day
      await handoff.save(workspace, {
        conversationContext: `User: The login page fails. See ${party.sessionId} for the date.`,
      })
      time.now += day
      const restored = await handoff.restore(workspace, { query: 'umlauts in the invoice template' })
      expect(restored.earlier.map(({ session }) => session)).toEqual([party.sessionId, invoice.sessionId])
      expect(restored.context).toContain('We plan the summer party on the roof.')
      const { relationships } = await graph.queryRelationships(workspace, {
        from: restored.sessionId,
        types: ['SESSION_REFERENCES'],
      })
      expect(relationships).toMatchObject([{ to: invoice.sessionId, properties: { found: 'search' } }])
    },
  )
})
