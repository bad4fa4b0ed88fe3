import { describe, expect } from 'vitest'
import type { Item } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { openMemory, ramStore } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'

const key = 'workspace_1:session_9'
const budget = 8_000
const repeatLines = (count: number, text: string) =>
  Array.from({ length: count }, (_, index) => `${text} ${index}`).join('\n')
const createItem = (id: string, category: Item['category'], content: string): Item => ({
  kind: 'item',
  id,
  at: 1,
  category,
  content,
  importance: 7,
  marked: false,
  sources: [{ message: 'm1' }],
})

/** Measures the share of each band for a session with far more content than fits. */
async function measureShares(items: readonly Item[]) {
  const store = ramStore()
  const memory = await openMemory({ profile: 'handoff', store })
  const messages = Array.from({ length: 200 }, (_, at) => ({
    role: at % 2 === 0 ? ('user' as const) : ('assistant' as const),
    content: repeatLines(8, `we spoke of point ${at} in line`),
  }))
  await memory.append(key, messages)
  await store.commit({
    id: 'items',
    key: parseKey(key),
    at: 2,
    epoch: 0,
    append: [],
    put: items,
    drop: [],
    expiresAt: noExpiry,
  })
  const { ledger } = await memory.context(key, { budget })
  const share = (band: string): number =>
    ledger.lines.filter((line) => line.band === band).reduce((sum, line) => sum + line.tokens, 0) / budget
  return {
    code: share('code'),
    conversation: share('conversation'),
    metadata: share('metadata'),
    spent: ledger.spent / budget,
  }
}

const tasks = Array.from({ length: 40 }, (_, at) =>
  createItem(`t${at}`, 'task', repeatLines(10, `finish task ${at} by step`)),
)
const code = Array.from({ length: 40 }, (_, at) =>
  createItem(`c${at}`, 'code', repeatLines(30, `const value${at} = compute(`)),
)

describe('the handoff profile', () => {
  verifies('H-12', 'gives 60 % to code, 30 % to conversation and 10 % to metadata when there is code', async () => {
    const shares = await measureShares([...tasks, ...code])
    expect(shares.spent).toBeLessThanOrEqual(1)
    expect(shares.code).toBeCloseTo(0.6, 1)
    expect(shares.conversation).toBeCloseTo(0.3, 1)
    expect(shares.metadata).toBeCloseTo(0.1, 1)
  })

  verifies('H-12', 'gives 70 % to conversation and 30 % to metadata when there is no code', async () => {
    const shares = await measureShares(tasks)
    expect(shares.code).toBe(0)
    expect(shares.conversation).toBeCloseTo(0.7, 1)
    expect(shares.metadata).toBeCloseTo(0.3, 1)
  })
})
