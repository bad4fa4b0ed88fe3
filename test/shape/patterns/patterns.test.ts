import { describe, expect, it } from 'vitest'
import { parseSource } from '../source.ts'
import { findWeakness } from './analyse.ts'
import { collectPatterns } from './collect.ts'
import { checkPatterns } from './rule.ts'

const degreeOf = (pattern: RegExp) => findWeakness(pattern)?.degree ?? 1

describe('the analysis finds', () => {
  // The first three were in the source and took seconds to minutes for a short text.
  it('an exponential pattern of bounded repetitions', () =>
    expect(
      degreeOf(
        /(?:\s|\\[nrt]|["'`:$>#]|(?:cat|#[^\n]{0,80}|pgpass) ?){0,8}?(?:\\:|[\w.*/[\]-]){1,80}:(?:\d{1,5}|\*):(?:[^\s:\\"'⟨]|\\.){1,64}/y,
      ),
    ).toBe(Infinity))
  it('an exponential pattern of an unbounded repetition', () =>
    expect(
      degreeOf(
        /(?<!\w)WIFI:(?:[A-OQ-Z]\w{0,3}:(?:[^;\\\n]|\\+[^\n]){0,100};){0,6}P:((?:[^;\\\n⟨]|\\+[^\n]){1,100})(?=;|$)/,
      ),
    ).toBe(Infinity))
  it('a cubic pattern', () => expect(degreeOf(/^ {0,3}(#{1,6})[ \t]+(.*?\S)[ \t#]*$/)).toBe(3))
  it('a path of three parts, which tries every start', () =>
    expect(degreeOf(/[A-Za-z][\w.-]*\/[\w.@-]*[A-Za-z][\w.@-]*\/[\w.-]*[A-Za-z]/)).toBe(3))
  it('escapes that are read in two ways', () =>
    expect(degreeOf(/(?:\\{1,4}[nrt]|[\s"'`>|+,\\]){0,40}[A-Z][\w-]{1,20}: /y)).toBe(Infinity))
  it('a search for marks at the end, unless it starts at the first mark', () => {
    expect(degreeOf(/[.,:;]+$/)).toBe(2)
    expect(degreeOf(/(?<![.,:;])[.,:;]+$/)).toBe(1)
  })
  it('nothing in linear patterns', () => expect(degreeOf(/^(?:[\w]{1,30} ){0,5}\d{4}$/)).toBe(1))
})

describe('the rule reports', () => {
  const literal = { at: 'src/a.ts:1', source: '(a|a)*b', flags: '' }
  const run = (patterns: Parameters<typeof checkPatterns>[0]['patterns'], unreached: readonly string[] = []) =>
    checkPatterns({ patterns, unreached }).filter((violation) => !violation.endsWith('no exception is needed'))

  it('the place, kind and attack of a pattern', () =>
    expect(run([{ ...literal, source: '(?:a+)+b' }])).toEqual([
      'src/a.ts:1 exponential, attack: what the pattern begins with, "a" many times, then a character that does not match: /(?:a+)+b/',
    ]))
  it('a call of RegExp that created nothing', () =>
    expect(run([], ['src/a.ts:2'])).toEqual(['src/a.ts:2 creates no pattern: call its function in createLazily.ts']))
  it('polynomial time in texts that are too long for it', () => {
    const slots = { at: 'src/upkeep/extract/slots.ts:1', flags: 'u' }
    expect(run([{ ...slots, source: String.raw`\p{Lu}\S*$` }])).toEqual([])
    expect(run([{ ...slots, source: String.raw`\p{Lu}\S*\S*\S*\S*x` }])).toHaveLength(1)
    expect(run([{ ...slots, source: String.raw`\p{Lu}\S*$|(?:a+)+b` }])).toHaveLength(1)
  })
  it('an exception that is not needed', () =>
    expect(checkPatterns({ patterns: [], unreached: [] }).join()).toContain('no exception is needed'))
  it('literals', async () => {
    const { patterns, unreached } = await collectPatterns([parseSource('src/a.ts', 'const a = /b+/g')])
    expect(patterns).toEqual([{ at: 'src/a.ts:1', source: 'b+', flags: 'g' }])
    expect(unreached).toEqual([])
  })
})
