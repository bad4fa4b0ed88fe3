import type { Tokens } from '../domain/entry.ts'
import type { Band } from '../domain/profile.ts'
import type { ContextCandidates } from './gatherCandidates.ts'

/** Returns the tokens a band may spend before the other bands had their share. */
export function shareOf({ share = 1 }: Band, budget: Tokens, input: ContextCandidates): Tokens {
  return Math.floor(budget * (typeof share === 'number' ? share : hasCode(input) ? share.withCode : share.without))
}

function hasCode(input: ContextCandidates): boolean {
  return (
    input.derived.some((entry) => entry.kind === 'item' && entry.category === 'code') ||
    input.head.recent.some((message) => message.content.includes('```'))
  )
}
