import type { Work } from '../../domain/work.ts'
import { type Anchor, findAnchorsInSteps, isCompoundWord } from '../../text/anchors.ts'
import { findValues, findValuesInSteps, phoneForms, type Value } from '../../text/values.ts'
import { splitWords } from '../../text/words.ts'
import { findMisplaced, findReversedStatements, findStale } from './contradictions.ts'
import { capitalisesNouns, compactForm, type SourceIndex, type ValueIndex } from './sourceIndex.ts'
import { splitClauses } from './valueClauses.ts'

/** A fault of a summary, and the words of it that are wrong. */
export type ClaimFault = { readonly why: 'invented' | 'misplaced' | 'stale' | 'negated'; readonly detail: string }

/** Compares the claims of a summary with its source. */
export function* findClaimFaults(text: string, source: SourceIndex): Work<readonly ClaimFault[]> {
  const clauses = yield* splitClauses(text)
  const anchors = (yield* findAnchorsInSteps(text)).filter(
    ({ kind }) => kind === 'url' || kind === 'path' || kind === 'identifier',
  )
  const invented = [
    ...findInventedAnchors(anchors, source),
    ...(yield* findInventedValues(text, anchors, source)),
    ...(yield* findInventedNames(text, source)),
  ]
  yield text.length
  if (invented.length > 0) return [...new Set(invented)].map((detail) => ({ why: 'invented', detail }))
  const faults: ClaimFault[] = []
  for (const detail of yield* findMisplaced(clauses, source)) faults.push({ why: 'misplaced', detail })
  yield text.length
  for (const detail of yield* findStale(clauses, source)) faults.push({ why: 'stale', detail })
  yield text.length
  for (const detail of yield* findReversedStatements(clauses, source)) faults.push({ why: 'negated', detail })
  return faults
}

function findInventedAnchors(anchors: readonly Anchor[], source: SourceIndex): readonly string[] {
  const isSaid = (anchor: Anchor): boolean => {
    if (isCompoundWord(anchor) || source.has(anchor.text.toLowerCase())) return true
    if (source.compact.has(compactForm(anchor.text))) return true
    // `30-day` and `14-21` are values with a word, which are compared as such.
    return anchor.kind === 'identifier' && /^\d{1,6}-[a-z]+(?:-[a-z]+)?$/i.test(anchor.text)
  }
  return anchors.filter((anchor) => !isSaid(anchor)).map((anchor) => anchor.text)
}

/** Words that announce a number which was calculated. */
const derivation =
  /(?<![\p{L}])(?:total\p{L}{0,4}|sum|sums|altogether|together|combined|in all|overall|difference|remain\p{L}{0,3}|left|sav\p{L}{1,4}|each|per|apiece|more|less|fewer|plus|minus|later|earlier|longer|shorter|cheaper|net|balance|double|half|gesamt\p{L}{0,6}|insgesamt|zusammen|summe|übrig|verbleib\p{L}{0,4}|pro|je|en tout|au total|reste\p{L}{0,2}|ensemble|restant\p{L}{0,2}|en total|suma|juntos|sobra|quedan?|ao todo|resta\p{L}{0,2}|totaal|samen|resterend\p{L}{0,1})(?![\p{L}])/iu
const approximation =
  /(?:about|around|approximately|approx\.?|roughly|nearly|almost|over|under|more than|less than|some|ca\.?|circa|etwa|rund|knapp|environ|presque|unos|cerca de|ongeveer|~|≈)\s?$/iu
/** Largest number that may count things of the source. */
const maxCount = 10
/** With more numbers, some sum is likely to equal any number. */
const maxOperands = 24

/** Names that a value is compared with in the time of one character. */
const namesPerChar = 100
/** Numbers of the source that a value is compared with in the time of one character. */
const dimensionsPerChar = 10

function* findInventedValues(text: string, names: readonly Anchor[], source: SourceIndex): Work<readonly string[]> {
  const isInName = ({ start, end }: Value): boolean =>
    names.some((name) => name.start <= start && end <= name.end && !/^\d{1,6}-[a-z]/i.test(name.text))
  const invented: string[] = []
  for (const value of yield* findValuesInSteps(text)) {
    if (!isInName(value) && !isKnownValue(value, source.values) && !isDerived(value, text, source))
      invented.push(value.text)
    yield value.text.length + names.length / namesPerChar + source.values.dimensions.size / dimensionsPerChar
  }
  return invented
}

/** True if a value is in the source, in any notation. */
function isKnownValue(value: Value, { keys, dimensions, phones, years }: ValueIndex): boolean {
  if (value.keys.some((key) => keys.has(key))) return true
  if (value.digits !== undefined && phoneForms(value.digits).some((form) => phones.has(form))) return true
  if (value.kind === 'date')
    return value.keys.some((key) => isKnownDate(key, keys, years)) || hasParts(value, dimensions)
  if (value.kind === 'time')
    return value.keys.some((key) => key.endsWith(':00') && isKnownHour(Number(key.slice(0, 2)), dimensions))
  if (value.amounts === undefined) return value.kind === 'number' && hasParts(value, dimensions)
  return value.amounts.some((amount) => {
    const known = dimensions.get(String(amount))
    return known !== undefined && (value.dimension === undefined || known.has('') || known.has('part'))
  })
}

const isKnownHour = (hour: number, dimensions: ValueIndex['dimensions']): boolean =>
  [hour, (hour + 12) % 24].some((reading) => dimensions.get(String(reading))?.has('') === true)

/** A date with a year is known if the source has it without one, and the year. */
const isKnownDate = (key: string, keys: ReadonlySet<string>, years: ReadonlySet<string>): boolean =>
  /^\d{4}-\d\d-\d\d$/.test(key) &&
  keys.has(`-${key.slice(4)}`) &&
  years.has(key.slice(0, 4)) &&
  !hasOtherYear(key, keys)
const hasOtherYear = (key: string, keys: ReadonlySet<string>): boolean =>
  [...keys].some((other) => other.length === 10 && other.endsWith(key.slice(4)) && /^\d/.test(other) && other !== key)

/** True if all numbers of a notation such as `24/7` or `5 of 10` are in the source. */
const hasParts = ({ text }: Value, dimensions: ValueIndex['dimensions']): boolean =>
  /^[\d\s/.-]+$/.test(text) && (text.match(/\d+/g) ?? []).every((number) => dimensions.has(String(Number(number))))

/** True if a number was rounded, calculated from numbers of the source, or counts a few things. */
function isDerived(value: Value, text: string, source: SourceIndex): boolean {
  if (value.kind !== 'number' || value.amounts === undefined) return false
  const [sentence, offset] = sentenceAround(text, value)
  const all = [...source.values.dimensions]
    .filter(([, dimensions]) => value.dimension === undefined || dimensions.has(value.dimension) || dimensions.has(''))
    .map(([number]) => Number(number))
  const isNear = (amount: number): boolean => all.some((known) => known >= 20 && Math.abs(known - amount) <= known / 10)
  if (approximation.test(sentence.slice(0, offset)) && value.amounts.some(isNear)) return true
  const nearby = findValues(sentence).flatMap((other) => (other.start === offset ? [] : (other.amounts ?? [])))
  if (value.amounts.some((amount) => isCalculated(amount, nearby.slice(0, maxOperands)))) return true
  if (value.dimension === undefined && hasOtherCount(value, text, source)) return false
  if (
    derivation.test(sentence) &&
    all.length <= maxOperands &&
    value.amounts.some((amount) => isCalculated(amount, all))
  )
    return true
  return value.dimension === undefined && value.amounts.some((amount) => Number.isInteger(amount) && amount <= maxCount)
}

/** Characters of a sentence on either side of a value that may explain it. */
const maxReach = 600

function sentenceAround(text: string, { start, end }: Value): readonly [sentence: string, offset: number] {
  const before = text.slice(Math.max(0, start - maxReach), start)
  const after = text.slice(end, end + maxReach)
  const offset = before.length - Math.max(before.lastIndexOf('\n'), before.lastIndexOf('. ')) - 1
  const stops = [after.indexOf('\n'), after.indexOf('. ')].filter((at) => at >= 0)
  return [text.slice(start - offset, end + Math.min(after.length, ...stops)), offset]
}

/** True if a number is the sum of several numbers, or the difference or product of two. */
function isCalculated(amount: number, numbers: readonly number[]): boolean {
  const isSame = (other: number): boolean => Math.abs(other - amount) < 0.005
  const sums = (from: number, rest: number, depth: number): boolean =>
    isSame(amount - rest) && depth > 1
      ? true
      : depth < 4 &&
        numbers
          .slice(from)
          .some((number, at) => number <= rest + 0.005 && number > 0 && sums(from + at + 1, rest - number, depth + 1))
  const pairs = numbers.some((one, at) =>
    numbers.some((other, index) => index !== at && (isSame(one - other) || isSame(one * other))),
  )
  const whole = numbers.reduce((sum, number) => sum + number, 0)
  return pairs || isSame(whole) || sums(0, amount, 0)
}

/** True if the source counts the same things with another number. */
function hasOtherCount(value: Value, text: string, source: SourceIndex): boolean {
  const known = countedThings.get(source) ?? collectCountedThings(source)
  countedThings.set(source, known)
  return wordsAfter(text, value.end).some((word) => known.has(word))
}

/** Words after the numbers of a source, collected on first use: many invented numbers are compared with them. */
const countedThings = new WeakMap<SourceIndex, ReadonlySet<string>>()

const collectCountedThings = ({ clauses }: SourceIndex): ReadonlySet<string> =>
  new Set(
    clauses.flatMap(({ text }) =>
      findValues(text).flatMap(({ kind, end }) => (kind === 'number' ? wordsAfter(text, end) : [])),
    ),
  )

const wordsAfter = (text: string, end: number): readonly string[] =>
  splitWords(text.slice(end, end + 40))
    .filter((word) => word.length > 2)
    .slice(0, 2)

/** Capitalised words of summaries that are not names. */
const knownNames = new Set(
  'user users assistant ai english german french spanish portuguese dutch italian markdown json html api url'.split(
    ' ',
  ),
)
/** Verbs whose subject is a person, which reveal a name at the start of a sentence. */
const personVerb =
  /(?<=^|[.!?]\s|\n(?:[-*•] )?)(\p{Lu}\p{Ll}{2,20}) (?:said|says|wants|asked|asks|lives|works|prefers|likes|told|agreed|mentioned|thinks|plans|loves|hates)(?![\p{L}])/gu
const pronouns = /^(?:she|they|user|who|everyone|everybody|nobody|both|person|client|customer|assistant|agent|model)$/i

function* findInventedNames(text: string, source: SourceIndex): Work<readonly string[]> {
  if (capitalisesNouns(text)) return []
  const isKnown = (name: string): boolean =>
    splitWords(name).every((word) => word.length < 3 || knownNames.has(word) || isKnownWord(word, source.words))
  const prose = text.replace(/^.{0,80}:$|^#.*$/gm, (heading) => ' '.repeat(heading.length))
  const inside = (yield* findAnchorsInSteps(prose)).filter(({ kind }) => kind === 'name').map((anchor) => anchor.text)
  const first = Array.from(prose.matchAll(personVerb), ({ 1: name = '' }) => name).filter(
    (name) => !pronouns.test(name),
  )
  return [...inside, ...first].filter((name) => !isKnown(name))
}

const isKnownWord = (word: string, words: ReadonlySet<string>): boolean => {
  const bare = word.replace(/['’]s?$/, '')
  return (
    words.has(word) ||
    words.has(bare) ||
    words.has(`${bare}s`) ||
    words.has(bare.replace(/s$/, '')) ||
    words.has(bare.replace(/(?:n|er|ern|ese|ish|ian)$/, ''))
  )
}
