import type { Tokens } from '../domain/entry.ts'
import type { Band } from '../domain/profile.ts'
import type { Gathered } from './gather.ts'

/** What a band may spend before the others have had their shares. */
export function shareOf({ share = 1 }: Band, budget: Tokens, gathered: Gathered): Tokens {
  return Math.floor(budget * (typeof share === 'number' ? share : hasCode(gathered) ? share.withCode : share.without))
}

function hasCode(gathered: Gathered): boolean {
  return (
    gathered.derived.some((entry) => entry.kind === 'item' && entry.category === 'code') ||
    gathered.head.recent.some((message) => message.content.includes('```'))
  )
}
