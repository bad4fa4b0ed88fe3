import scslre from 'scslre'
import type { Pattern } from './collect.ts'

/** Superlinear backtracking of a pattern. */
export type Weakness = {
  /** Exponent of the time in the length of the text; Infinity for exponential time. */
  readonly degree: number
  /** Description of a text that takes so long. */
  readonly attack: string
}

type Report = ReturnType<typeof scslre.analyse>['reports'][number]

/** Bounded repetitions of fewer times add little. */
const minLongRepetition = 3

/**
 * Replaces bounded repetitions by unbounded ones: the analysis takes no notice of bounds, but `(?:a|b{0,80}){0,8}` has
 * 80 to the power of 8 ways to divide a text. A fixed number of characters can be read in one way only.
 */
const unboundRepetitions = (source: string): string =>
  source.replace(
    /(\\.|\[(?:\\.|[^\]\\])*\])|\{(\d+),(\d+)\}|(?<=\))\{\d+\}/gsu,
    (whole, other: string | undefined, min: string | undefined, max: string | undefined) => {
      if (other !== undefined || Number(max) < minLongRepetition) return whole
      return min === '0' ? '*' : '+'
    },
  )

/** Repetition of a group, without which no pattern takes exponential time. */
const repeatedGroup = /\)[*+{]/

const describeAttack = ({ type, character }: Report): string =>
  `${type === 'Move' ? '' : 'what the pattern begins with, '}${JSON.stringify(character.pick)} many times, then a character that does not match`

/**
 * Finds superlinear backtracking by static analysis: polynomial in unbounded repetitions, and exponential also in
 * bounded ones. The degree is an upper bound.
 */
export function findWeakness({ source, flags }: Pick<Pattern, 'source' | 'flags'>): Weakness | undefined {
  const { reports } = scslre.analyse({ source, flags })
  const unbounded = unboundRepetitions(source)
  const candidates =
    unbounded === source || !repeatedGroup.test(unbounded)
      ? reports
      : [...reports, ...scslre.analyse({ source: unbounded, flags }, { reportTypes: { Move: false } }).reports]
  const exponential = candidates.find((report) => report.exponential)
  if (exponential !== undefined) return { degree: Infinity, attack: describeAttack(exponential) }
  const [first] = reports
  if (first === undefined) return undefined
  // A search tries every start, however many repetitions it could start with.
  const trades = reports.filter(({ type }) => type !== 'Move').length
  return { degree: 1 + trades + (trades < reports.length ? 1 : 0), attack: describeAttack(first) }
}
