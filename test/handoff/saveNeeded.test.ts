import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { MessageInput } from '../../src/domain/chat.ts'
import { verifies } from '../requirements/verifies.ts'
import { createHarness, describeOutcome, userMessage } from './harness.ts'

const workspace = 'billing'
const settings = { budget: 600 }
const chatter = (index: number): string =>
  `Oh well, that is how it goes with ${['gardens', 'trains', 'soups', 'songs'][index % 4]} and the like, day ${index} was no other.`

/** Conversation of about 3,500 tokens with a decision, a constraint and an open task. */
const conversation: readonly MessageInput[] = [
  {
    role: 'user',
    content: 'We move the invoices of billing-portal to src/invoices/store.ts. We never delete an invoice.',
  },
  ...Array.from(
    { length: 120 },
    (_, index): MessageInput => ({
      role: index % 2 === 0 ? 'assistant' : 'user',
      content: chatter(index),
    }),
  ),
  { role: 'assistant', content: 'We decided to use pages of 500 rows. TODO: test src/invoices/store.ts with 2 pages.' },
  { role: 'user', content: 'Good, go on with the second page.' },
]
const middle = chatter(60)
const more: readonly MessageInput[] = [
  { role: 'assistant', content: 'The second page of src/invoices/store.ts works, it holds 412 rows.' },
  userMessage('Then write the report for invoice R-2041.'),
]

describe('save with keep: needed', () => {
  verifies('H-04', 'of a new session › stores no full transcript and tells what it left out', async () => {
    await using harness = await createHarness({ settings })
    const { handoff, file, memory } = harness
    const saved = await handoff.save(workspace, { messages: conversation, keep: 'needed' })
    const stored = await handoff.getTranscript(workspace, saved.sessionId)
    expect([saved.messages, saved.added, stored.length]).toEqual([123, 123, 123])
    const tokens = stored.reduce((sum, { content }) => sum + memory.tokenizer.count(content), 0)
    expect(tokens).toBeLessThan(1_000)
    const full = conversation.reduce((sum, { content }) => sum + memory.tokenizer.count(content as string), 0)
    expect(saved.leftOut?.tokens).toBeGreaterThan(full - 1_000)
    expect(saved.leftOut?.messages).toBe(
      stored.filter(({ content }, at) => content !== conversation[at]?.content).length,
    )
    expect(await handoff.get(workspace, saved.sessionId)).toMatchObject({ keep: 'needed', messageCount: 123 })
    await memory.close()
    expect(readFileSync(file).includes(middle)).toBe(false)
  })

  verifies('H-05', 'then restore › shows goal, decision, constraint, task and the newest messages', async () => {
    await using harness = await createHarness({ settings })
    const { handoff } = harness
    const { sessionId } = await handoff.save(workspace, { messages: conversation, keep: 'needed' })
    for (const budget of [400, 2_000]) {
      const { context, tokens } = await handoff.restore(workspace, { sessionId, budget })
      const wanted = [
        'src/invoices/store.ts',
        'never delete an invoice',
        'pages of 500 rows',
        'TODO: test',
        'go on with',
      ]
      expect(wanted.filter((text) => !context.includes(text))).toEqual([])
      expect(tokens).toBeLessThanOrEqual(budget)
      expect(context).toContain('… stands for what was left out.')
    }
  })

  verifies('H-08', 'again with the whole conversation or its new part › stores only the new messages', async () => {
    for (const messages of [[...conversation, ...more], more, [...conversation.slice(-2), ...more]]) {
      await using harness = await createHarness({ settings })
      const { handoff } = harness
      const { sessionId } = await handoff.save(workspace, { messages: conversation, keep: 'needed' })
      const again = await handoff.save(workspace, { sessionId, messages })
      expect([again.added, again.messages, again.leftOut]).toEqual([2, 125, { messages: 0, tokens: 0 }])
      const repeated = await handoff.save(workspace, { sessionId, messages })
      expect([repeated.added, repeated.messages]).toEqual([0, 125])
      expect((await handoff.restore(workspace, { sessionId, budget: 500 })).context).toContain('R-2041')
    }
  })

  verifies(
    'H-04',
    'of a session stored in full › replaces the messages, and marks and erasure still work',
    async () => {
      await using harness = await createHarness({ settings })
      const { handoff, memory } = harness
      const { sessionId } = await handoff.save(workspace, { messages: conversation })
      await handoff.mark(workspace, sessionId, { text: 'day 60' })
      const saved = await handoff.save(workspace, { sessionId, keep: 'needed' })
      expect([saved.added, saved.messages]).toEqual([0, 123])
      const stored = await handoff.getTranscript(workspace, sessionId)
      expect(stored).toHaveLength(123)
      expect(stored.filter(({ content }) => content === '…').length).toBeGreaterThan(80)
      expect((await handoff.restore(workspace, { sessionId, budget: 2_000 })).context).toContain('day 60')
      await memory.forget({ key: `${workspace}:${sessionId}`, messageIds: [stored[121]?.id ?? ''] })
      const { context } = await handoff.restore(workspace, { sessionId, budget: 2_000 })
      expect([context.includes('pages of 500 rows'), context.includes('never delete an invoice')]).toEqual([
        false,
        true,
      ])
    },
  )

  it('of messages appended later › shortens them with the next save', async () => {
    await using harness = await createHarness({ settings })
    const { handoff } = harness
    const { sessionId } = await handoff.save(workspace, { messages: conversation.slice(0, 3), keep: 'needed' })
    await handoff.append(workspace, { sessionId, messages: conversation.slice(3) })
    const saved = await handoff.save(workspace, { sessionId })
    expect(saved.messages).toBe(123)
    expect(saved.leftOut?.messages).toBeGreaterThan(80)
  })

  it('with another value › is refused and stores nothing', async () => {
    await using harness = await createHarness({ settings })
    const keep = 'some' as 'all'
    expect(await describeOutcome(harness.handoff.save(workspace, { messages: conversation, keep }))).toBe(
      'bad-option: keep is "some"; it must be one of all, needed.',
    )
    expect((await harness.handoff.list(workspace)).total).toBe(0)
  })
})
