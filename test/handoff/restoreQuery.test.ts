import { describe, expect, it } from 'vitest'
import type { MessageInput } from '../../src/domain/chat.ts'
import { verifies } from '../requirements/verifies.ts'
import { createHarness } from './harness.ts'

const workspace = 'friends'
const budget = 500
const topics = [
  'the garden',
  'a new recipe',
  'the bus strike',
  'an old film',
  'the weather',
  'a crossword',
  'the choir',
]
const moods = ['It went better than we thought', 'Nobody could explain it to us', 'We laughed about it all evening']

/** Answers that are spread over a long conversation, each far from the end. */
const statements: Readonly<Record<number, readonly [name: string, text: string]>> = {
  20: ['Mel', 'Oliver keeps stealing socks again, and Luna just watches him. Our two cats never get bored.'],
  45: ['Caro', 'I joined the pottery course on 3 March, the first one in years.'],
  70: ['Mel', 'Swimming lessons cost us 45 euros each now.'],
  95: ['Caro', 'My brother Tim works at the harbour in Porto.'],
  130: ['Mel', 'We rent the flat in Oak Street for now.'],
  180: ['Mel', 'We moved out last month, so the current address is 9 Mill Lane.'],
  205: ['Caro', 'I never eat peanuts, they make me ill.'],
}

const longConversation = (): readonly MessageInput[] =>
  Array.from({ length: 420 }, (_, index) => {
    const [name, content] = statements[index] ?? [
      index % 2 === 0 ? 'Mel' : 'Caro',
      `${moods[index % 3]}, ${topics[index % 7]} number ${index} of K-${index * 37}. Tell me more about ${topics[(index * 3) % 7]} when we meet.`,
    ]
    return { role: index % 2 === 0 ? 'user' : 'assistant', name, content }
  })

describe('restore with a query', () => {
  const questions: readonly (readonly [kind: string, query: string, ...answers: readonly string[]])[] = [
    ['who', "What are Mel's pets called?", 'Oliver'],
    ['when', 'When did Caro start pottery?', '3 March'],
    ['how many', 'How much do the swimming lessons cost?', '45 euros'],
    ['latest', "What is Mel's current address?", '9 Mill Lane'],
    ['negation', 'What does Caro never eat?', 'peanuts'],
    ['two questions', 'Where does Tim work, and what did Caro join?', 'Porto', 'pottery course'],
  ]
  for (const [kind, query, ...answers] of questions)
    verifies('H-05', `that asks ${kind} › of a long conversation › shows the answer within the budget`, async () => {
      await using harness = await createHarness()
      const { sessionId } = await harness.handoff.save(workspace, { messages: longConversation() })
      const without = await harness.handoff.restore(workspace, { sessionId, budget })
      const restored = await harness.handoff.restore(workspace, { sessionId, budget, query })
      const isShown = (text: string) => answers.map((answer) => text.includes(answer))
      expect(isShown(restored.context)).toEqual(answers.map(() => true))
      expect(restored.tokens).toBeLessThanOrEqual(budget)
      // The end of the conversation is shown with a query, too.
      expect([without, restored].map(({ context }) => context.includes('number 419'))).toEqual([true, true])
    })

  it('in a session of the chain › that the budget has room for › shows the answer there', async () => {
    await using harness = await createHarness()
    const { handoff } = harness
    const first = await handoff.save(workspace, { messages: longConversation() })
    const { sessionId } = await handoff.save(workspace, {
      conversationContext: 'User: The harbour is closed today.\nAssistant: Then we go by bus.',
      continues: first.sessionId,
    })
    const { context } = await handoff.restore(workspace, { sessionId, budget, query: "What are Mel's pets called?" })
    expect([context.includes('## Before that'), context.includes('Oliver')]).toEqual([true, true])
  })
})
