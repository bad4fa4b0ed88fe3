import { describe, expect } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { createHarness, noon } from './harness.ts'

const workspace = 'billing'
const first = `session_${noon}`

describe('analytics', () => {
  verifies('H-17', 'over a chain report the kept, used and missed items', async () => {
    await using harness = await createHarness({ settings: { items: 1 } })
    const { handoff } = harness
    await handoff.save(workspace, {
      conversationContext: 'User: We talked.',
      contextItems: [
        { category: 'code', content: 'export function parseInvoice(input: InvoiceFile) {}', importance: 9 },
        {
          category: 'data',
          content: 'The endpoint is https://api.example.org/v2/orders with code ORD-7781.',
          importance: 4,
        },
        { category: 'concept', content: 'Retries go through RetryQueue.', importance: 3 },
        { category: 'task', content: 'One day parseInvoice is to be renamed.', importance: 3 },
      ],
    })
    const { sessionId, contextItems } = await handoff.restore(workspace, { budget: 8_000 })
    expect(contextItems.map(({ category }) => category)).toEqual(['code'])
    await handoff.save(workspace, {
      sessionId,
      messages: [
        { role: 'user', content: 'What was the code ORD-7781 about, and what does parseInvoice do?' },
        { role: 'assistant', content: 'I call parseInvoice first; RetryQueue is mine to mention.' },
      ],
    })
    const found = await handoff.getAnalytics(workspace, first)
    expect(found).toMatchObject({ sessions: [first, sessionId], kept: 1, used: 1, missed: 1 })
    const [step] = found.steps
    expect(step).toMatchObject({ sessionId, continues: first, budget: 8_000, kept: 1, left: 3 })
    expect(step?.used).toMatchObject([{ category: 'code', importance: 9, identifiers: ['parseInvoice'] }])
    expect(step?.missed).toMatchObject([{ category: 'data', importance: 4, identifiers: ['ORD-7781'] }])
    expect(step?.preservation.budget).toBe(8_000)
    expect(await handoff.getAnalytics(workspace, sessionId)).toEqual(found)
  })

  verifies('H-17', 'with a user who asks for an omitted item by its number count it as missed', async () => {
    await using harness = await createHarness({ settings: { items: 1 } })
    await harness.handoff.save(workspace, {
      conversationContext: 'User: We talked.',
      contextItems: [
        { category: 'concept', content: 'Decision 12: the cache is kept for a day.', importance: 9 },
        { category: 'concept', content: 'Decision 97: a page has 40 rows.', importance: 4 },
        { category: 'concept', content: 'Decision 9: nothing is sent by mail.', importance: 4 },
      ],
    })
    const { sessionId } = await harness.handoff.restore(workspace)
    await harness.handoff.save(workspace, {
      sessionId,
      conversationContext: 'User: What was the page size in decision 97? As in decision 12?',
    })
    const [step] = (await harness.handoff.getAnalytics(workspace, first)).steps
    expect([
      step?.missed.map(({ identifiers }) => identifiers),
      step?.used.map(({ identifiers }) => identifiers),
    ]).toEqual([[['Decision 97']], [['Decision 12']]])
  })

  verifies('H-17', 'of a single session are empty', async () => {
    await using harness = await createHarness()
    await harness.handoff.save(workspace, { conversationContext: 'User: Alone.' })
    expect(await harness.handoff.getAnalytics(workspace, first)).toEqual({
      sessions: [first],
      steps: [],
      kept: 0,
      used: 0,
      missed: 0,
    })
  })
})
