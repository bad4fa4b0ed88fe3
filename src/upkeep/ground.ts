import { findFacts } from '../text/facts.ts'
import type { Sentence } from '../text/sentences.ts'
import { termsOf } from '../text/words.ts'
import { type Claim, claimsIn } from './extract/claims.ts'
import { clausesOf } from './extract/clauses.ts'
import { type Found, importanceOf, isKeyed, type Told } from './extract/found.ts'
import { linesSpoken, sentencesSpoken } from './extract/spoken.ts'
import { topicCalled } from './extract/topics.ts'
import { keyFrom } from './extract/wording.ts'

/** What stands at most this many sentences apart is taken for one statement. */
const nearby = 3

/**
 * What a model has extracted, as far as a user has said it: every word that means something, every number, URL and
 * identifier of a value must stand close together in one message of a user, in the user's own words, stated and not
 * denied. Everything else is refused and counted.
 *
 * @example
 * groundFacts({ user_preferences: { theme: 'dark', font: 'Arial' } }, [said('I prefer dark mode.')]) // theme is found, font refused
 */
export function groundFacts(
  answer: unknown,
  messages: readonly Told[],
): { readonly found: readonly Found[]; readonly refused: number } {
  const said = messages.filter(({ role }) => role === 'user').map(partsOf)
  const latestFirst = [...said].reverse()
  const claims = claimsIn(answer)
  // of what is said again, a key has the value since the last time, a list since the first
  const found = claims
    .map((claim) => ground(claim, isKeyed(claim.field) ? latestFirst : said))
    .filter((one) => one !== undefined)
  return { found, refused: claims.length - found.length }
}

/** A piece of a sentence between two commas or the like. */
type Part = {
  readonly text: string
  readonly start: number
  readonly end: number
  readonly sentence: number
  readonly isStated: boolean
  readonly terms: ReadonlySet<string>
  readonly urls: readonly string[]
}
type SaidParts = { readonly message: Told; readonly parts: readonly Part[]; readonly terms: ReadonlySet<string> }

function partsOf(message: Told): SaidParts {
  const sentences = sentencesSpoken(linesSpoken(message.content))
  const parts = sentences.flatMap((sentence, place) => split(sentence, place))
  return { message, parts, terms: new Set(parts.flatMap(({ terms }) => [...terms])) }
}

const boundary = /[,;:](?=\s)|[–—()]|\s(?:but|and i|because|although|though)\s|$/gi

function split(sentence: Sentence, place: number): readonly Part[] {
  const clauses = clausesOf(sentence)
  const parts: Part[] = []
  let from = 0
  for (const { 0: mark, index } of sentence.text.matchAll(boundary)) {
    const text = sentence.text.slice(from, index)
    const [start, end] = [sentence.start + from, sentence.start + index]
    from = index + mark.length
    if (!/[\p{L}\p{N}]/u.test(text)) continue
    const isStated = clauses.some((clause) => clause.start < end && start < clause.end)
    parts.push({
      text,
      start,
      end,
      sentence: place,
      isStated,
      terms: new Set(termsOf(numbersJoined(text))),
      urls: urlsIn(text),
    })
  }
  return parts
}

/** `5,000` and `5000` are one number. */
const numbersJoined = (text: string): string => text.replace(/(?<=\d)[,'’](?=\d{3}(?!\d))/g, '')
const urlsIn = (text: string): readonly string[] =>
  text.includes('://') ? findFacts(text).flatMap((fact) => (fact.text.includes('://') ? [fact.text] : [])) : []

/** What a value must be found by. */
type Wanted = {
  readonly terms: readonly string[]
  readonly urls: readonly string[]
  readonly isNegative: boolean
  readonly reach: number
}

function ground(claim: Claim, said: readonly SaidParts[]): Found | undefined {
  const { field, value } = claim
  if (value === undefined || (isKeyed(field) && claim.key === '')) return undefined
  const wanted = wantedOf(claim)
  if (wanted === undefined) return undefined
  for (const { message, parts, terms } of said) {
    if (!wanted.terms.every((term) => terms.has(term))) continue
    const span = nearest(parts, wanted, claim)
    if (span === undefined) continue
    const key = isKeyed(field) ? keyOf(claim.key, terms, message.content.slice(...span)) : ''
    return { field, key, value, importance: importanceOf[field], at: message.at, source: { message: message.id, span } }
  }
  return undefined
}

/** What parts of a document are called, whoever calls them so. */
const structural = /^(?:sections?|chapters?|title|outline|format|type|parts?|headings?|constraints\.\w+)$/

/** The model's name for something if the user has said it, or it is a name everybody uses; else one from the user's words. */
function keyOf(key: string, terms: ReadonlySet<string>, said: string): string {
  const words = termsOf(key.replace(/[._-]/g, ' ')).filter((term) => !framing.has(term))
  const isTheirs = words.length > 0 && words.length <= 4 && words.every((term) => terms.has(term))
  // `ui.theme` is a theme
  const topic = topicCalled(key.replace(/^[a-z]{1,12}\./, ''))
  return isTheirs || topic !== undefined || structural.test(key) ? key : keyFrom(said)
}

/** A model says `the user` where the user says `I`. */
const framing: ReadonlySet<string> = new Set(termsOf('user users'))

function wantedOf({ key, value }: Claim): Wanted | undefined {
  const texts = [value ?? ''].flat().map(String)
  const terms = [...new Set(texts.flatMap((text) => termsOf(numbersJoined(text))))].filter((term) => !framing.has(term))
  if (terms.length === 0) return undefined
  // a small number alone is everywhere: what it counts must be said as well
  const bare = terms.every((term) => /^\d{1,3}$/.test(term))
  const counted = bare ? termsOf(key.replace(/[._]/g, ' ')) : []
  if (bare && counted.length === 0) return undefined
  return {
    terms: [...terms, ...counted],
    urls: texts.flatMap(urlsIn),
    isNegative: negative.test(`${key.replace(/[._]/g, ' ')} ${texts.join(' ')}`),
    reach: nearby + texts.length - 1,
  }
}

const negative =
  /\b(?:not|never|no|none|nor|neither|without|cannot|can't|hates?|dislikes?|detests?|avoids?|avoiding|refuses?|allerg\w*)\b|n['’]t\b/i
const others = /\b(?:he|she|they)\b|\b(?:prefers|likes|loves|hates|wants|uses|enjoys|dislikes)\b/i

/** What somebody says who wants something so: a word alone may have been said of anything. */
const wishes =
  /\b(?:prefer|like|love|enjoy|want|wish|rather|favou?rite|hate|dislike|avoid|us(?:e|ing)|call me|always|never|please|(?<=^|[,:;] ?)(?:keep|make|write|answer|reply|respond|speak|format|set|switch|stick)|go with|need|allergic|vegan|vegetarian|do not|no)\b|n['’]t\b/i

/** The shortest run of parts that holds all that is wanted, says it of the user, and does not deny it. */
function nearest(parts: readonly Part[], wanted: Wanted, claim: Claim): readonly [number, number] | undefined {
  let best: readonly [number, number] | undefined
  for (let first = 0; first < parts.length; first++) {
    const run = runFrom(parts, first, wanted)
    const [head, tail] = [run?.[0], run?.at(-1)]
    if (run === undefined || head === undefined || tail === undefined || !holds(run, wanted, claim)) continue
    if (best === undefined || tail.end - head.start < best[1] - best[0]) best = [head.start, tail.end]
  }
  return best
}

function runFrom(parts: readonly Part[], first: number, { terms, urls, reach }: Wanted): readonly Part[] | undefined {
  const missing = new Set(terms)
  const sentence = parts[first]?.sentence ?? 0
  for (let last = first; last < parts.length && (parts[last] as Part).sentence < sentence + reach; last++) {
    const before = missing.size
    for (const term of (parts[last] as Part).terms) missing.delete(term)
    // a run that begins with nothing of it is found again from where it does begin
    if (last === first && missing.size === before) return undefined
    if (missing.size > 0) continue
    const run = parts.slice(first, last + 1)
    return urls.every((url) => run.some((part) => part.urls.includes(url))) ? run : undefined
  }
  return undefined
}

function holds(run: readonly Part[], wanted: Wanted, { field }: Claim): boolean {
  const isStatement = field === 'user_preferences' || field === 'key_decisions' || field === 'important_facts'
  const text = run.map((part) => part.text).join(' ')
  if (isStatement && run.some((part) => !part.isStated)) return false
  if ((isStatement || field === 'custom_fields') && negative.test(text) !== wanted.isNegative) return false
  return field !== 'user_preferences' || (wishes.test(text) && (/\bI\b/.test(text) || !others.test(text)))
}
