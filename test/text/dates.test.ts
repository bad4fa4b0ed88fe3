import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findPeriod } from '../../src/text/dates.ts'
import { verifies } from '../requirements/verifies.ts'

/** A Wednesday in a year without a leap day. */
const now = Date.parse('2026-05-20T15:30:00Z')
const ever = -8.64e15

/** Formats the range found as days or times. */
function describePeriod(text: string, at = now, offset = 0): string {
  const found = findPeriod(text, at, offset)
  if (found === undefined) return 'nothing'
  return `${shown(found.from)} ${shown(found.to)}`
}

const shown = (at: number): string =>
  at === ever ? 'ever' : new Date(at).toISOString().replace('T00:00:00.000Z', '').replace(':00.000Z', '')

describe('findPeriod', () => {
  it.each([
    ['what did I say today?', '2026-05-20 2026-05-21'],
    ["what is on today's list?", '2026-05-20 2026-05-21'],
    ['what did you tell me earlier today', '2026-05-20 2026-05-20T15:30'],
    ['Yesterday you mentioned a book.', '2026-05-19 2026-05-20'],
    ['what about the day before yesterday', '2026-05-18 2026-05-19'],
    ['did it rain last night?', '2026-05-19T18:00 2026-05-20T06:00'],
    ['what happened this week?', '2026-05-18 2026-05-25'],
    ['what happened last week?', '2026-05-11 2026-05-18'],
    ["last week's invoices", '2026-05-11 2026-05-18'],
    ['this month', '2026-05-01 2026-06-01'],
    ['last month', '2026-04-01 2026-05-01'],
    ['this year', '2026-01-01 2027-01-01'],
    ['LAST YEAR', '2025-01-01 2026-01-01'],
    ['this weekend', '2026-05-23 2026-05-25'],
    ['where was I last weekend?', '2026-05-16 2026-05-18'],
    ['what did I order last Monday?', '2026-05-18 2026-05-19'],
    ['last wednesday', '2026-05-13 2026-05-14'],
    ['who called on Monday?', '2026-05-18 2026-05-19'],
    ['who called on friday morning?', '2026-05-15 2026-05-16'],
    ['what did I say 3 days ago?', '2026-05-17 2026-05-18'],
    ['one day ago', '2026-05-19 2026-05-20'],
    ['two weeks ago', '2026-05-04 2026-05-11'],
    ['a week ago', '2026-05-11 2026-05-18'],
    ['a couple of months ago', '2026-03-01 2026-04-01'],
    ['5 months ago', '2025-12-01 2026-01-01'],
    ['two years ago', '2024-01-01 2025-01-01'],
    ['in the last 3 days', '2026-05-17T15:30 2026-05-20T15:30'],
    ['over the past two weeks', '2026-05-06T15:30 2026-05-20T15:30'],
    ['the last 2 months', '2026-03-20T15:30 2026-05-20T15:30'],
    ['in the past week', '2026-05-13T15:30 2026-05-20T15:30'],
    ['what did we decide in March?', '2026-03-01 2026-04-01'],
    ['and in may?', '2026-05-01 2026-06-01'],
    ['in August', '2025-08-01 2025-09-01'],
    ['last March', '2026-03-01 2026-04-01'],
    ['last May', '2025-05-01 2025-06-01'],
    ['March 2025', '2025-03-01 2025-04-01'],
    ['in march of 2024', '2024-03-01 2024-04-01'],
    ['back in Sept 2023', '2023-09-01 2023-10-01'],
    ['what did I do in 2024?', '2024-01-01 2025-01-01'],
    ['during 1999', '1999-01-01 2000-01-01'],
    ['on 3 May', '2026-05-03 2026-05-04'],
    ['on 3 may', '2026-05-03 2026-05-04'],
    ['on May 3rd', '2026-05-03 2026-05-04'],
    ['the 3rd of May', '2026-05-03 2026-05-04'],
    ['on May 3rd, 2025', '2025-05-03 2025-05-04'],
    ['on 3 July, 2023', '2023-07-03 2023-07-04'],
    ['20 May', '2026-05-20 2026-05-21'],
    ['on 21 May', '2025-05-21 2025-05-22'],
    ['what broke on 2025-11-02?', '2025-11-02 2025-11-03'],
    ['at 2025-11-02T23:10:00Z.', '2025-11-02 2025-11-03'],
    ['between Monday and Tuesday', '2026-05-18 2026-05-20'],
    ['between March and May 2024', '2024-03-01 2024-06-01'],
    ['between November and February', '2025-11-01 2026-03-01'],
    ['between 3 and 5 May', '2026-05-03 2026-05-06'],
    ['from 2025-01-05 to 2025-01-07', '2025-01-05 2025-01-08'],
    ['since Monday', '2026-05-18 2026-05-20T15:30'],
    ['since last week', '2026-05-11 2026-05-20T15:30'],
    ['since 2025', '2025-01-01 2026-05-20T15:30'],
    ['before March', 'ever 2026-03-01'],
    ['before yesterday', 'ever 2026-05-19'],
    ['before May 2025', 'ever 2025-05-01'],
    ['after March 2025', '2025-04-01 2026-05-20T15:30'],
    ['after 3 May', '2026-05-04 2026-05-20T15:30'],
    ['I left it there. In March, I think', '2026-03-01 2026-04-01'],
    ['was it yesterday or in March?', '2026-05-19 2026-05-20'],
  ])('reads %j as %s', (text, expected) => expect(describePeriod(text)).toBe(expected))

  it.each([
    ['the end of a leap February', 'last month', '2024-03-31T12:00:00Z', '2024-02-01 2024-03-01'],
    [
      'a month back from a day that one lacks',
      'in the last month',
      '2026-03-31T12:00:00Z',
      '2026-02-28T12:00 2026-03-31T12:00',
    ],
    ['a year back from a leap day', 'in the last year', '2024-02-29T12:00:00Z', '2023-02-28T12:00 2024-02-29T12:00'],
    ['the newest leap day', 'on 29 February', '2026-05-20T00:00:00Z', '2024-02-29 2024-03-01'],
    ['a leap day eight years back', 'on 29 February', '1903-06-01T00:00:00Z', '1896-02-29 1896-03-01'],
    ['the day before New Year', 'yesterday', '2026-01-01T00:00:00Z', '2025-12-31 2026-01-01'],
    ['the last moment of a year', 'today', '2025-12-31T23:59:59.999Z', '2025-12-31 2026-01-01'],
    ['December in January', 'last month', '2026-01-15T00:00:00Z', '2025-12-01 2026-01-01'],
    ['a week across a year', 'this week', '2026-01-01T12:00:00Z', '2025-12-29 2026-01-05'],
    ['a Monday seen on a Monday', 'on Monday', '2026-05-18T08:00:00Z', '2026-05-11 2026-05-12'],
    ['a week that begins today', 'this week', '2026-05-18T00:00:00Z', '2026-05-18 2026-05-25'],
    ['a week on its last day', 'last week', '2026-05-24T23:00:00Z', '2026-05-11 2026-05-18'],
    ['a weekend seen on Sunday', 'this weekend', '2026-05-24T23:00:00Z', '2026-05-23 2026-05-25'],
    ['a month that has just begun', 'in March', '2026-03-01T00:00:00Z', '2026-03-01 2026-04-01'],
    ['days before 1970', 'last Monday', '1969-12-31T12:00:00Z', '1969-12-29 1969-12-30'],
    [
      'a range that ends before its beginning was meant',
      'between November and February',
      '2025-12-10T00:00:00Z',
      '2024-11-01 2025-03-01',
    ],
    ['weekdays of the week before', 'between Monday and Wednesday', '2026-05-19T00:00:00Z', '2026-05-11 2026-05-14'],
  ])('handles %s', (_, text, at, expected) => expect(describePeriod(text, Date.parse(at))).toBe(expected))

  it('uses the offset: 20 May has begun in Auckland, but not in Los Angeles', () => {
    const late = Date.parse('2026-05-19T22:00:00Z')
    expect(describePeriod('today', late, 12 * 60)).toBe('2026-05-19T12:00 2026-05-20T12:00')
    expect(describePeriod('today', late, -7 * 60)).toBe('2026-05-19T07:00 2026-05-20T07:00')
    expect(describePeriod('before today', late, 12 * 60)).toBe('ever 2026-05-19T12:00')
  })

  it.each([
    ['What did we decide in March?', 'in March'],
    ['(yesterday) it rained', 'yesterday'],
    ['what, in the last 3 days, was new?', 'in the last 3 days'],
    ['between 3 May and 5 May, please', 'between 3 May and 5 May'],
    ['since Monday: nothing', 'since Monday'],
    ["today's plan", "today's"],
  ])('locates the phrase of %j as %j', (text, said) =>
    expect(text.slice(...(findPeriod(text, now)?.span ?? []))).toBe(said),
  )
})

describe('findPeriod without a date', () => {
  it.each([
    'May I ask something?',
    'you may 3 times refuse',
    'it may be in the file',
    'before may I ask',
    'they march on',
    'the troops march 3 miles',
    'the last march was long',
    'wait a second',
    'the second of them',
    'the last one',
    'my last message',
    'at last',
    'the last 3 messages',
    'the last week of the course',
    'the last 2 days of the trip',
    'the last day',
    'the day after',
    'a week after May 3rd',
    'two days before yesterday',
    'version 2024.1 of it',
    'in v2025',
    'in 2000 words',
    'over 2024 people',
    'after 2000 steps',
    'port 2024',
    '2024',
    'costs $2024',
    'Monday',
    'on Mondays',
    'next Monday',
    'before next week',
    'in a month',
    '3 days',
    '1,500 days ago',
    '0 days ago',
    '30 February',
    'on 31 June',
    '2025-02-29',
    '2025-13-01',
    'logs/2025-05-03/a.txt',
    'call 555-2025-05-03',
    'after today',
    'before Jan calls',
    'between you and me',
    'between us. And in the end',
    'the meeting in. March on',
    '',
  ])('finds none in %j', (text) => expect(describePeriod(text)).toBe('nothing'))
})

const pieces = fc.constantFrom(
  ...'today yesterday the day before after since between and from to last this past in on week month May march 3 3rd 31 2024 2025-02-29 of ago two'.split(
    ' ',
  ),
  ...[', ', '. ', '? ', "'s ", 'Monday', 'weekend', 'February', 'earlier', 'days', 'years'],
)
const questions = fc.array(pieces, { maxLength: 12 }).map((words) => words.join(' '))
const times = fc.integer({ min: Date.UTC(1900, 0, 1), max: Date.UTC(2100, 0, 1) })

describe('findPeriod with generated input', () => {
  verifies('T-14', 'returns a non-empty range and a span within the text', () => {
    const property = fc.property(fc.oneof(questions, fc.string()), times, (text, at) => {
      const found = findPeriod(text, at)
      if (found === undefined) return
      const { from, to, span } = found
      expect(from).toBeLessThan(to)
      expect(describePeriod(text.slice(...span), at)).toBe(describePeriod(text, at))
    })
    fc.assert(property, { numRuns: 5_000 })
  })

  verifies('T-14', 'with an offset equals the result in UTC at the shifted time, shifted back', () => {
    const property = fc.property(questions, times, fc.integer({ min: -720, max: 840 }), (text, at, offset) => {
      const [here, there] = [findPeriod(text, at, offset), findPeriod(text, at + offset * 60_000)]
      expect(here?.to).toBe(there && there.to - offset * 60_000)
    })
    fc.assert(property, { numRuns: 2_000 })
  })

  verifies('T-14', 'finds every day of 200 years by its date, and yesterday ends where today begins', () => {
    const property = fc.property(times, (at) => {
      const date = new Date(at).toISOString().slice(0, 10)
      expect(describePeriod(`on ${date}`, at)).toBe(describePeriod('today', at))
      expect(findPeriod('yesterday', at)?.to).toBe(findPeriod('today', at)?.from)
      expect(findPeriod('last week', at)?.to).toBe(findPeriod('this week', at)?.from)
      expect(findPeriod('last month', at)?.to).toBe(findPeriod('this month', at)?.from)
      expect(findPeriod('last year', at)?.to).toBe(findPeriod('this year', at)?.from)
    })
    fc.assert(property, { numRuns: 2_000 })
  })

  it('reads only the first 2,000 characters and rejects a phrase that may continue after them', () => {
    expect(describePeriod(`Look: ${'a'.repeat(1_880)}. What did I say in March 2024?`)).toBe('2024-03-01 2024-04-01')
    expect(describePeriod(`Look: ${'a'.repeat(1_970)}. What did I say in March 2024?`)).toBe('nothing')
    expect(describePeriod(`Look: ${'a'.repeat(3_000)}. What did I say in March 2024?`)).toBe('nothing')
    expect(describePeriod(`What did I say in March 2024?\n${'a'.repeat(1_000_000)}`)).toBe('2024-03-01 2024-04-01')
  })

  it('reads a megabyte of almost-dates only up to its limit', () => {
    for (const almost of ['between 3 and ', 'the last ', '2024-', '....', 'in the past 3 ', "'", ', ', '1,'])
      expect(describePeriod(almost.repeat(100_000))).toBe('nothing')
  })

  it('finds nothing if now is not a number', () => expect(describePeriod('today', Number.NaN)).toBe('nothing'))
})
