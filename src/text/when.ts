import type { Millis } from '../domain/entry.ts'
import { day, type Stretch } from './when/calendar.ts'
import { clausesOf, type Word } from './when/clauses.ts'
import { type Lead, type Named, namedAt, unitOf } from './when/named.ts'

/** A time that a text names, its end not part of it, and from where to where in the text it is named. */
export type Period = Stretch & { readonly said: readonly [start: number, end: number] }

/** Finds the time a text names, seen from a time. */
export type WhenIn = (text: string, now: Millis) => Period | undefined

const minute = 60_000
/** A question is asked in fewer characters; what follows them is what it is about. */
const longest = 2_000
/** As early as a date can be. */
const ever: Millis = -8.64e15

const leads: Readonly<Record<string, Lead>> = {
  in: 'in',
  during: 'in',
  on: 'on',
  over: 'over',
  within: 'over',
  for: 'over',
}
const joints: Readonly<Record<string, RegExp>> = { between: /^and$/, from: /^(?:to|until|till|through)$/ }

/**
 * The first time that an English text names, as somebody means it who says it now: in UTC, or `offset` minutes ahead of it.
 * What may be something else than a time is taken for something else. Of a long text only the first 2,000 characters are read.
 *
 * @example
 * whenIn('What did we decide in March?', Date.UTC(2026, 4, 20)) // from 1 March to 1 April 2026; said: [18, 26]
 */
export function whenIn(text: string, now: Millis, offset = 0): Period | undefined {
  const ahead = offset * minute
  for (const words of clausesOf(text.slice(0, longest))) {
    for (let at = 0; at < words.length; at++) {
      const found = phraseAt(words, at, now + ahead)
      if (found === undefined) continue
      const { from, to, end } = found
      const said = [(words[at] as Word).start, (words[end - 1] as Word).end] as const
      // The rest of the phrase may lie behind what is read, and mean another time.
      const isWhole = said[1] + 40 < longest || text.length <= longest
      return from < to && isWhole ? { from: from === ever ? ever : from - ahead, to: to - ahead, said } : undefined
    }
  }
  return undefined
}

/** The phrase that begins at a word: a time after what leads up to it, or one that stands alone. */
function phraseAt(words: readonly Word[], at: number, now: Millis): Named | undefined {
  const { text } = words[at] as Word
  const between = Object.hasOwn(joints, text) ? betweenAt(words, at, now) : undefined
  if (between !== undefined) return between
  if (text === 'since' || text === 'before' || text === 'after') return openAt(words, at, now)
  const lead = Object.hasOwn(leads, text) ? leads[text] : undefined
  return lead === undefined ? namedAt(words, at, now, 'none') : namedAt(words, at + 1, now, lead)
}

/** Since, before or after a time; a week after it is neither, and nothing that could be told. */
function openAt(words: readonly Word[], at: number, now: Millis): Named | undefined {
  const named = namedAt(words, at + 1, now, 'other')
  if (named === undefined) return undefined
  if (unitOf(words[at - 1]?.text ?? '') !== undefined) return { ...named, to: named.from }
  const { from, to, end } = named
  const { text } = words[at] as Word
  return text === 'before' ? { from: ever, to: from, end } : { from: text === 'since' ? from : to, to: now, end }
}

function betweenAt(words: readonly Word[], at: number, now: Millis): Named | undefined {
  const joint = joints[(words[at] as Word).text] as RegExp
  const first = namedAt(words, at + 1, now, 'other')
  const end = first?.end ?? at + 2
  const last = joint.test(words[end]?.text ?? '') ? namedAt(words, end + 1, now, 'other') : undefined
  if (last === undefined) return undefined
  if (first === undefined) return fromDate(words[at + 1]?.text ?? '', last)
  // without a year it is the one before the other end: from November to February, in March to May 2024
  const begin = first.floats === true ? (namedAt(words, at + 1, last.to - 1, 'other') ?? first) : first
  return { from: begin.from, to: last.to, end: last.end }
}

/** Between 3 and 5 May: the month is said once. */
function fromDate(text: string, last: Named): Named | undefined {
  const [first, date] = [Number(text), new Date(last.from).getUTCDate()]
  if (!/^\d{1,2}$/.test(text) || first < 1 || first >= date || last.to - last.from !== day) return undefined
  return { ...last, from: last.from - (date - first) * day }
}
