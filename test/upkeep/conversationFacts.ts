import type { Fact } from '../../src/domain/entry.ts'
import { extractFacts } from '../../src/upkeep/extract/extract.ts'
import { factsAsOf, mergeFacts } from '../../src/upkeep/extract/merge.ts'

/** Facts of a conversation: one user message per text, at the times 1, 2, 3 and so on. Names are left out. */
function factsOf(texts: readonly string[]): readonly Fact[] {
  const messages = texts.map((content, index) => ({
    id: `m${index + 1}`,
    role: 'user' as const,
    content,
    at: index + 1,
  }))
  return mergeFacts([], extractFacts(messages), { at: 0, createId: String }).put.filter(
    ({ field }) => field !== 'entities',
  )
}

const toLine = ({ key, value }: Fact): string => `${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`

/** Current facts as `key: value`. */
export const currentFacts = (...texts: readonly string[]): string[] =>
  factsOf(texts)
    .filter(({ until }) => until === undefined)
    .map(toLine)

/** Facts that held after a number of messages, as `key: value`. */
export const factsAfter = (count: number, ...texts: readonly string[]): string[] =>
  factsAsOf(factsOf(texts), count).map(toLine)
