import { sentencesOf } from '../../text/sentences.ts'
import { termsOf } from '../../text/words.ts'

/** So many places are tried at most: a text that repeats itself endlessly must not make looking slow. */
const tries = 200

/**
 * Tells which names and numbers stand in a text to the letter, white space aside, and not as a part of a longer one. The
 * text is read once, however many are asked for.
 *
 * @example
 * finderIn('see src/a.ts')('a.ts') // true
 */
export function finderIn(text: string): (wanted: string) => boolean {
  const flat = flatten(text)
  const places = new Map<string, number[]>()
  let before = ''
  let beforeAt = 0
  const add = (key: string, place: number): void => {
    const list = places.get(key)
    if (list === undefined) places.set(key, [place])
    else if (list.length < tries) list.push(place)
  }
  for (const { 0: atom, index } of flat.matchAll(/[\p{L}\p{N}]+/gu)) {
    add(atom, index)
    if (before !== '') add(`${before} ${atom}`, beforeAt)
    before = atom
    beforeAt = index
  }
  return (wanted) => {
    const name = flatten(wanted).trim()
    const [first, second] = Array.from(name.slice(0, 2_000).matchAll(/[\p{L}\p{N}]+/gu))
    if (first === undefined) return false
    const key = second === undefined ? first[0] : `${first[0]} ${second[0]}`
    return (places.get(key) ?? []).some((place) => standsAt(flat, name, place - first.index))
  }
}

const flatten = (text: string): string => text.replace(/\s+/g, ' ')

function standsAt(text: string, name: string, place: number): boolean {
  if (place < 0 || !text.startsWith(name, place)) return false
  const joins = (left: string, right: string): boolean => /[\p{L}\p{N}_]/u.test(left) && /[\p{L}\p{N}_]/u.test(right)
  return (
    !joins(text.charAt(place - 1), name.charAt(0)) &&
    !joins(name.charAt(name.length - 1), text.charAt(place + name.length))
  )
}

const negation =
  /\b(?:not|no|never|none|nor|without|avoid\w*|except\w*|only|unless|exclud\w+|forb[ia]d\w*|prohibit\w*|refrain\w*|ban\w{0,4}|instead|rather|cannot)\b|n['’]t\b/i
const negating = new Set(
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
  ].flatMap((word) => [word, ...termsOf(word)]),
)

/** Tells which constraints a text keeps: one sentence has most of their words, and a negation. */
export function constraintsIn(text: string): (clause: string) => boolean {
  const byTerm = new Map<string, Set<string>[]>()
  for (const sentence of sentencesOf(text)) {
    if (!negation.test(sentence.text)) continue
    const terms = new Set(termsOf(sentence.text))
    for (const term of terms) {
      const known = byTerm.get(term)
      if (known === undefined) byTerm.set(term, [terms])
      else if (known.length < tries) known.push(terms)
    }
  }
  return (clause) => {
    const wanted = [...new Set(termsOf(clause))].filter((term) => !negating.has(term))
    const least = wanted.length <= 2 ? wanted.length : Math.ceil((2 * wanted.length) / 3)
    const isKept = (terms: ReadonlySet<string>): boolean => wanted.filter((term) => terms.has(term)).length >= least
    return wanted.length === 0 || wanted.some((term) => byTerm.get(term)?.some(isKept))
  }
}
