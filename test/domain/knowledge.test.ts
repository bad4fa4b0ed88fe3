import { expect } from 'vitest'
import { parseKnowledge } from '../../src/domain/knowledge.ts'
import { verifies } from '../requirements/verifies.ts'

verifies('R-03', 'knowledge of over 8 million characters › is refused, with the limit', () => {
  const knowledge = { category: 'domain', key: 'long', value: 'x'.repeat(8_000_000) } as const
  expect(parseKnowledge(knowledge)).toBe(knowledge)
  for (const value of ['x'.repeat(8_000_001), ['x'.repeat(4_000_000), { more: 'x'.repeat(4_000_000) }]])
    expect(() => parseKnowledge({ ...knowledge, value })).toThrow(/text or JSON of at most 8000000 characters/)
})
