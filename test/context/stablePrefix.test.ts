import fc from 'fast-check'
import { describe, expect } from 'vitest'
import type { MessageInput } from '../../src/domain/chat.ts'
import type { DerivedEntry } from '../../src/domain/entry.ts'
import type { Context } from '../../src/domain/ledger.ts'
import type { Tokenizer } from '../../src/domain/ports.ts'
import type { Tail } from '../../src/domain/profile.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { thread } from '../../src/profiles/thread.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { arbitraryText } from './arbitraryText.ts'
import { isCampaign, propertyTimeoutMs, seed } from './campaign.ts'
import { startTime } from './cases.ts'
import { createMemory, key } from './harness.ts'

const numRuns = isCampaign ? 600 : 12
const [tail] = thread.bands.flatMap(({ claim }) => ('tail' in claim ? [claim.tail] : [])) as [Tail]

/** Turns of ordinary size. A paste of over half the budget would displace the messages before it. */
const turn = fc
  .tuple(
    fc.constantFrom<MessageInput['role']>('user', 'user', 'assistant', 'assistant', 'system'),
    arbitraryText,
    fc.integer({ min: 1, max: 200 }),
  )
  .map(
    ([role, start, times]): MessageInput => ({
      role,
      content: `${start.slice(0, 300)} ${'lorem ipsum dolor '.repeat(times)}`,
    }),
  )
const dialogue = fc.record({
  budget: fc.oneof(
    fc.integer({ min: 1_500, max: tail.smallBudget.budget }),
    fc.integer({ min: tail.smallBudget.budget + 1, max: 16_000 }),
  ),
  facts: fc.integer({ min: 0, max: 40 }),
  turns: fc.array(turn, { minLength: 10, maxLength: 120, size: 'max' }),
})

const createFacts = (count: number): DerivedEntry[] =>
  Array.from({ length: count }, (_, at) => {
    return {
      kind: 'fact',
      id: `f${at}`,
      at: startTime,
      field: 'user_preferences',
      key: `${at}`,
      value: 'likes '.repeat(at),
      importance: at % 10,
      sources: [],
    }
  })

/** Appends the turns one by one and builds a context after each turn of the user. */
async function buildContexts(
  turns: readonly MessageInput[],
  budget: number,
  facts: number,
  exact: Tokenizer,
): Promise<{ contexts: Context[]; weight: number }> {
  const store = ramStore()
  await store.commit({
    id: 'facts',
    key,
    at: startTime,
    epoch: 0,
    append: [],
    put: createFacts(facts),
    drop: [],
    expiresAt: noExpiry,
  })
  const memory = createMemory(store, thread, exact)
  const contexts: Context[] = []
  let weight = 0
  for (const message of turns) {
    for (const stored of await memory.append(key, [message])) weight = stored.offset + stored.weight
    if (message.role === 'user') contexts.push(await memory.context(key, { budget }))
  }
  return { contexts, weight }
}

/** Returns the first message of the tail and its verdict. */
function tailStart({ ledger }: Context): string {
  const line = ledger.lines.find(({ band }) => band === 'tail')
  return `${line?.entries?.[0]} ${line?.verdict}`
}

/** True if the tail starts at another message, or slides from now on, which declares no cacheable prefix. */
const isCut = (context: Context, next: Context): boolean =>
  tailStart(context) !== tailStart(next) || next.ledger.cacheable.messages === 0

const repeatsPrefix = (context: Context, next: Context): boolean => {
  const { messages } = context.ledger.cacheable
  return JSON.stringify(context.messages.slice(0, messages)) === JSON.stringify(next.messages.slice(0, messages))
}

describe('cacheable prefix', () => {
  verifies(
    'X-11',
    'with new turns is repeated byte for byte by the next context, except where the tail was cut, which is rare',
    async () => {
      const exact = await exactTokenizer('o200k_base')
      let [contextCount, cutCount] = [0, 0]
      const property = fc.asyncProperty(dialogue, async ({ budget, facts, turns }) => {
        const { contexts, weight } = await buildContexts(turns, budget, facts, exact)
        const pairs = contexts.slice(1).map((next, at) => [contexts[at] as Context, next] as const)
        const broken = pairs.filter(([context, next]) => !repeatsPrefix(context, next))
        expect(broken.filter(([context, next]) => !isCut(context, next))).toEqual([])
        // In a small budget a sliding tail declares no prefix, so only the turn that starts the sliding breaks one.
        const messageBudget = facts === 0 ? budget : budget - Math.floor(0.1 * budget)
        const maxCuts =
          budget <= tail.smallBudget.budget
            ? 1
            : 1 + Math.floor(weight / Math.floor((tail.high - tail.low) * messageBudget))
        expect(broken.length).toBeLessThanOrEqual(maxCuts)
        if (budget > tail.smallBudget.budget)
          for (const { messages, ledger } of contexts)
            expect(messages.length - ledger.cacheable.messages).toBeLessThanOrEqual(2)
        contextCount += contexts.length
        cutCount += broken.length
      })
      // Shrinking a dialogue of a hundred turns takes long. Seed and path reproduce a failure.
      await fc.assert(property, { numRuns, seed, endOnFailure: true })
      console.log(`stable prefix: ${numRuns} dialogues, ${contextCount} contexts, ${cutCount} cuts, seed ${seed}`)
    },
    propertyTimeoutMs,
  )
})
