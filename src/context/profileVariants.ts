import type { Tokens } from '../domain/entry.ts'
import { getOrCompute } from '../domain/keyed.ts'
import type { Profile } from '../domain/profile.ts'

const profilesBeyond = new WeakMap<Profile, Profile>()

/** The profile for what lies beyond a client's own conversation: its bands without those that show the conversation. */
export const profileBeyond = (profile: Profile): Profile =>
  getOrCompute(profilesBeyond, profile, () => ({
    ...profile,
    bands: profile.bands.filter(({ claim }) => 'kind' in claim || 'recalled' in claim),
  }))

const profilesForSmallBudgets = new WeakMap<Profile, Profile>()

/**
 * The profile for a budget. Where the tail is a share of a small budget, the beginning of the prompt changes with every
 * turn anyway; derived entries are then shown in one block with recalled messages, which saves the framing of another.
 */
export function profileForBudget(profile: Profile, budget: Tokens): Profile {
  const isSmall = profile.bands.some(({ claim }) => 'tail' in claim && budget <= claim.tail.smallBudget.budget)
  return isSmall
    ? getOrCompute(profilesForSmallBudgets, profile, () => ({
        ...profile,
        bands: profile.bands.map((band) => ('kind' in band.claim ? { ...band, volatile: true } : band)),
      }))
    : profile
}
