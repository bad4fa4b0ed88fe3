import type { Work } from '../../domain/work.ts'
import { type Anchor, findAnchors, findAnchorsInSteps, isCompoundWord } from '../../text/anchors.ts'
import { splitSentencesInSteps } from '../../text/sentences.ts'
import { findValues, findValuesInSteps, phoneForms, type Value } from '../../text/values.ts'
import { extractTerms } from '../../text/words.ts'
import type { NamedEntity, SummaryMessage } from './summary.ts'

/** Tells whether a text has a name, number or clause. */
type TextFinder = (searched: string) => boolean

/** Cost of indexing a word, in characters. */
const atomWork = 4
/** Positions kept per key; bounds the time for a text that repeats itself. */
const maxPositions = 200

/**
 * Indexes a text and returns a function that tells if a name or number occurs in it literally, except for white space,
 * and not as part of a longer word.
 *
 * @example
 * createTextFinder('see src/a.ts')('a.ts') // true
 */
export function* createTextFinder(text: string): Work<TextFinder> {
  const collapsed = collapseWhitespace(text)
  const positions = new Map<string, number[]>()
  let previous = ''
  let previousPosition = 0
  const add = (key: string, position: number): void => {
    const list = positions.get(key)
    if (list === undefined) positions.set(key, [position])
    else if (list.length < maxPositions) list.push(position)
  }
  for (const { 0: atom, index } of collapsed.matchAll(/[\p{L}\p{N}]+/gu)) {
    add(atom, index)
    if (previous !== '') add(`${previous} ${atom}`, previousPosition)
    previous = atom
    previousPosition = index
    yield atom.length + atomWork
  }
  return (searched) => {
    const name = collapseWhitespace(searched).trim()
    const [first, second] = Array.from(name.slice(0, 2_000).matchAll(/[\p{L}\p{N}]+/gu))
    if (first === undefined) return false
    const key = second === undefined ? first[0] : `${first[0]} ${second[0]}`
    return (positions.get(key) ?? []).some((position) => isWholeMatchAt(collapsed, name, position - first.index))
  }
}

const collapseWhitespace = (text: string): string => text.replace(/\s+/g, ' ')

function isWholeMatchAt(text: string, name: string, position: number): boolean {
  if (position < 0 || !text.startsWith(name, position)) return false
  const joins = (left: string, right: string): boolean => /[\p{L}\p{N}_]/u.test(left) && /[\p{L}\p{N}_]/u.test(right)
  return (
    !joins(text.charAt(position - 1), name.charAt(0)) &&
    !joins(name.charAt(name.length - 1), text.charAt(position + name.length))
  )
}

const negation =
  /\b(?:not|no|never|none|nor|without|avoid\w*|except\w*|only|unless|exclud\w+|forb[ia]d\w*|prohibit\w*|refrain\w*|ban\w{0,4}|instead|rather|cannot)\b|n['’]t\b/i
const negationTerms = new Set(
  [
    'never',
    'avoid',
    'without',
    'except',
    'unless',
    'not',
    'only',
    'must',
    'shall',
    'may',
    'cannot',
    "mustn't",
    "don't",
  ].flatMap((word) => [word, ...extractTerms(word)]),
)

/**
 * Returns a function that tells if a text has a constraint: one negated sentence with at least two thirds of its terms.
 */
export function* createConstraintFinder(text: string): Work<TextFinder> {
  const byTerm = new Map<string, Set<string>[]>()
  for (const sentence of yield* splitSentencesInSteps(text)) {
    yield sentence.text.length
    if (!negation.test(sentence.text)) continue
    const terms = new Set(extractTerms(sentence.text))
    for (const term of terms) {
      const known = byTerm.get(term)
      if (known === undefined) byTerm.set(term, [terms])
      else if (known.length < maxPositions) known.push(terms)
    }
  }
  return (clause) => {
    const clauseTerms = [...new Set(extractTerms(clause))].filter((term) => !negationTerms.has(term))
    const minTerms = clauseTerms.length <= 2 ? clauseTerms.length : Math.ceil((2 * clauseTerms.length) / 3)
    const matches = (terms: ReadonlySet<string>): boolean =>
      clauseTerms.filter((term) => terms.has(term)).length >= minTerms
    return clauseTerms.length === 0 || clauseTerms.some((term) => byTerm.get(term)?.some(matches))
  }
}

/**
 * Weight of an anchor as a name at the end of a summary: high for URLs, paths and long numbers, low for plain numbers.
 */
function anchorWeight(anchor: Pick<Anchor, 'kind' | 'text'>): number {
  if (anchor.kind === 'url' || anchor.kind === 'path') return isCompoundWord(anchor) ? 0.4 : 1
  if (anchor.kind === 'number')
    return /\d[.,]?\d[.,]?\d[.,]?\d/.test(anchor.text) || /^[$€£¥].*\d\d/.test(anchor.text) ? 0.8 : 0.1
  if (anchor.kind !== 'identifier') return 0
  return isCompoundWord(anchor) ? 0.4 : /^#\d|^[a-z]+(?:\.[a-z]+)+$|^[$.@]/.test(anchor.text) ? 0.4 : 1
}

/** Weight of a mention by speaker. */
const mentionWeights = { user: 3, person: 3, assistant: 1, tool: 0.5, system: 1 }

/** True if an anchor is worth naming at the end of a summary. */
export const isNameable = (anchor: Pick<Anchor, 'kind' | 'text'>): boolean =>
  !anchor.text.includes(', ') && anchorWeight(anchor) > 0.1

/** Returns the weight of a mention in a message. */
export const mentionWeight = ({ role, name }: Pick<SummaryMessage, 'role' | 'name'>): number =>
  role === 'assistant' && name !== undefined ? mentionWeights.person : mentionWeights[role]

/** A name with its own weight and the summed weight of its mentions. */
type NameCandidate = { readonly name: NamedEntity; readonly weight: number; readonly mentions: number }

/** Ranks the names and numbers of a conversation by importance for their length. */
export function* rankNames(
  messages: readonly SummaryMessage[],
  earlier: readonly NamedEntity[],
): Work<readonly NamedEntity[]> {
  const candidates = new Map<string, NameCandidate>()
  const add = (name: NamedEntity, weight: number, mention: number): void => {
    const known = candidates.get(name.text)
    candidates.set(name.text, { name: known?.name ?? name, weight, mentions: (known?.mentions ?? 0) + mention })
  }
  for (const name of earlier) add(name, Math.max(0, ...findAnchors(name.text).map(anchorWeight)), mentionWeights.user)
  for (const message of messages) {
    for (const anchor of yield* findAnchorsInSteps(message.content))
      if (isNameable(anchor))
        add(
          { text: anchor.text, sources: [{ message: message.id, span: [anchor.start, anchor.end] }] },
          anchorWeight(anchor),
          mentionWeight(message),
        )
    yield message.content.length
  }
  return [...candidates.values()]
    .sort((left, right) => candidateScore(right) - candidateScore(left))
    .map(({ name }) => name)
}

const candidateScore = ({ name, weight, mentions }: NameCandidate): number =>
  (weight * Math.log(2 + mentions)) / (4 + name.text.length)

/** Filters the names that a text does not contain. */
export function* missingNames(text: string, names: readonly NamedEntity[]): Work<readonly NamedEntity[]> {
  const has = yield* createValueFinder(text)
  const missing: NamedEntity[] = []
  for (const name of names) {
    if (!has(name.text)) missing.push(name)
    yield name.text.length
  }
  return missing
}

/**
 * Returns a function that tells if a text has a name or number in any notation: `0151 123` as `0151123`, `14 March` as
 * `2026-03-14`, `BK-1` as `BK 1`.
 */
export function* createValueFinder(text: string): Work<(name: string) => boolean> {
  const has = yield* createTextFinder(text)
  const values = yield* findValuesInSteps(text)
  const keys = new Set(values.flatMap((value) => [...value.keys, ...value.keys.map(withoutYear)]))
  const amounts = new Set(values.flatMap((value) => value.amounts ?? []))
  const phones = new Set(values.flatMap(({ digits }) => (digits === undefined ? [] : phoneForms(digits))))
  const isHere = ({ keys: own, amounts: numbers, digits }: Value): boolean =>
    own.some((key) => keys.has(key) || keys.has(withoutYear(key))) ||
    (numbers ?? []).some((number) => amounts.has(number)) ||
    (digits !== undefined && phoneForms(digits).some((form) => phones.has(form)))
  return (name) => {
    if (has(name)) return true
    const own = /[A-Za-z]{3}|_/.test(name.replace(/(?<!\p{L})\p{L}+$/u, '')) ? [] : findValues(name)
    return own.length > 0 && own.every(isHere)
  }
}

const withoutYear = (key: string): string => key.replace(/^\d{4}-(?=\d\d-\d\d$)/, '--')
