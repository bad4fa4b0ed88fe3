import { describe, expect, it } from 'vitest'
import { findValues, findValuesInSteps, phoneForms } from '../../src/text/values.ts'
import { verifies } from '../requirements/verifies.ts'

const keysOf = (text: string): readonly (readonly string[])[] => findValues(text).map(({ keys }) => keys)

describe('findValues', () => {
  it.each([
    ['14 March 2026', '2026-03-14'],
    ['14.03.2026', '2026-03-14'],
    ['2026-03-14', '2026-03-14'],
    ['March 14th, 2026', '2026-03-14'],
    ['14. März 2026', '2026-03-14'],
    ['14 de marzo de 2026', '2026-03-14'],
    ['le 14 mars', '--03-14'],
    ['14 maart', '--03-14'],
    ['3/14', '--03-14'],
    ['in March 2026', '2026-03'],
    ['on Fridays', 'weekday:5'],
    ['am Freitag', 'weekday:5'],
    ['1,234.50', ':1234.5'],
    ['1.234,50', ':1234.5'],
    ['12 500', ':12500'],
    ['5k', ':5000'],
    ['1.2 million', ':1200000'],
    ['twenty-five', ':25'],
    ['zwölf', ':12'],
    ['quatorze', ':14'],
    ['$49', 'usd:49'],
    ['49 USD', 'usd:49'],
    ['49 dollars', 'usd:49'],
    ['80,50 €', 'eur:80.5'],
    ['15 percent', '%:15'],
    ['15%', '%:15'],
    ['3 pm', '15:00'],
    ['15:00', '15:00'],
    ['15 Uhr', '15:00'],
    ['01:30', '01:30'],
    ['90 minutes', 'minute:90'],
    ['1.5 hours', 'minute:90'],
    ['1 hour and 30 minutes', 'minute:90'],
    ['two weeks', 'minute:20160'],
    ['14 days', 'minute:20160'],
    ['0.5 kg', 'gram:500'],
  ])('with %s › returns %s', (text, key) => expect(keysOf(text)).toEqual([[key]]))

  it('with an ambiguous notation › returns all readings', () => {
    expect(keysOf('05/06')).toEqual([['--06-05', '--05-06']])
    expect(keysOf('1.234')).toEqual([[':1234', ':1.234']])
    expect(keysOf('at 3:30')).toEqual([['03:30', '15:30']])
  })
  it('with two days of a month › returns both dates', () =>
    expect(keysOf('14–21 March')).toEqual([['--03-14'], ['--03-21']]))
  it('with list numbers and numbers in identifiers › skips them', () =>
    expect(keysOf('1. First\n2) Second, see db-prod-2 and v2_3')).toEqual([]))
})

describe('phoneForms', () => {
  const shareForm = (one: string, other: string): boolean =>
    phoneForms(one).some((form) => phoneForms(other).includes(form))
  it('with and without a country code › has a form in common', () => {
    expect(shareForm('491711234567', '01711234567')).toBe(true)
    expect(shareForm('00491711234567', '491711234567')).toBe(true)
  })
  it('with another digit › has none', () => expect(shareForm('02079460958', '02079460985')).toBe(false))
})

verifies('R-03', 'findValues › of a text of many values › pauses at each of them', () => {
  const text = Array.from({ length: 1_000 }, (_, at) => `{"speed":${at}.5,"at":"${at % 12}:30"}`).join('\n')
  expect([...findValuesInSteps(text)].length).toBeGreaterThan(2_000)
})
