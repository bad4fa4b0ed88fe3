import { findWeakness, type Weakness } from './analyse.ts'
import type { Collection, Pattern } from './collect.ts'
import {
  type BoundedText,
  boundedInCampaign,
  boundedTexts,
  type FalseFinding,
  falseFindings,
  falseInCampaign,
} from './exceptions.ts'

/** Steps that a pattern may take on the longest text that it is applied to: some milliseconds. */
const maxSteps = 10_000_000

const concerns = ({ path, pattern = '' }: BoundedText | FalseFinding, { at, source }: Pattern): boolean =>
  (path.endsWith('/') ? at.startsWith(path) : at.startsWith(`${path}:`)) && source.startsWith(pattern)

/** Finds the length of the texts that a pattern is applied to; Infinity if it has no limit. */
export const maxCharactersOf = (pattern: Pattern): number =>
  Math.min(
    ...[...boundedTexts, ...boundedInCampaign]
      .filter((text) => concerns(text, pattern))
      .map(({ maxCharacters }) => maxCharacters),
  )

export const isFalseFinding = (pattern: Pattern): boolean =>
  [...falseFindings, ...falseInCampaign].some((finding) => concerns(finding, pattern))

function describe({ at, source, flags }: Pattern, { degree, attack }: Weakness): string {
  const kind = degree === Infinity ? 'exponential' : `polynomial (degree ${degree})`
  return `${at} ${kind}, attack: ${attack}: /${source}/${flags}`
}

/** Returns the patterns that take superlinear time in texts of any length, and exceptions that are not needed. */
export function checkPatterns({ patterns, unreached }: Collection): readonly string[] {
  const used = new Set<BoundedText | FalseFinding>()
  const violations = patterns.flatMap((pattern) => {
    const weakness = findWeakness(pattern)
    if (weakness === undefined) return []
    const exceptions = [
      ...boundedTexts.filter(({ maxCharacters }) => maxCharacters ** weakness.degree <= maxSteps),
      ...falseFindings,
    ].filter((exception) => concerns(exception, pattern))
    for (const exception of exceptions) used.add(exception)
    return exceptions.length > 0 ? [] : [describe(pattern, weakness)]
  })
  return [
    ...violations,
    ...unreached.map((at) => `${at} creates no pattern: call its function in createLazily.ts`),
    ...[...boundedTexts, ...falseFindings]
      .filter((exception) => !used.has(exception))
      .map(({ path, pattern = '' }) => `${path} ${pattern}: no exception is needed`),
  ]
}
