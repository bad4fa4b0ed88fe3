import { runSync, type Work } from '../domain/work.ts'

/** Text worth preserving verbatim: `text.slice(start, end)` of the searched text. */
export type FactMatch = { readonly text: string; readonly start: number; readonly end: number }

// Every pattern has an anchor and bounded repetitions, so that matching is linear in the length of the text.
const url = /\b(?:https?|ftp|wss?):\/\/[^\s<>"'`\u3000-\u303f\uff00-\uff65]+/gi
const errorMessage =
  /(?:error|exception|failure|fatal|panic|failed)(?:\[[^\]\n]{1,40}\]|\([^)\n]{1,40}\)| [A-Z]{1,5}-?\d{1,6})?:[ \t]{0,4}[^\s:][^\n]{0,199}|failed (?:to|with) [^\n]{1,199}/gi
const errorProperty =
  /\\?["']\w{0,20}(?:error|exception|failure)(?:_?message)?\\?["'][ \t]{0,4}:[ \t]{0,4}(\\?["'])[^\n]{1,200}?\1/gi
const selector = /selector(?:All)?\\?["'`]?[ \t]{0,4}[:=(][ \t]{0,4}(\\?["'`])([^\n]{1,200}?)\1/gi
const quotedId = /(["'`])(#[a-z_][\w-]{0,100}(?:[ .>+~:[#][^\n"'`]{0,100})?)\1/gi
const attribute = /\b(?:class|className|id)=(\\?["'])[^\n]{1,200}?\1/g
const ipv4 = /(?<![\w.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?::\d{1,5})?(?![\w]|\.\d)/g
const ipv6 = /(?<![\w:.])(?:[\da-f]{1,4}:){0,7}:?(?::[\da-f]{1,4}){1,7}(?![\w:])/gi
const number = /(?<!\w|\w[-.])(?:[A-Za-z]{1,20}-|[#$€£¥vV])?\d[\d.,:/-]*\d(?:%|[A-Za-z]{1,3})?(?!\w)/g

/**
 * Finds URLs, e-mail addresses, error messages, selectors, class names, ids, IP addresses and numbers, ordered by
 * start.
 */
export const findFacts = (text: string): FactMatch[] => runSync(findFactsInSteps(text))

/** `findFacts` as interruptible work. */
export function* findFactsInSteps(text: string): Work<FactMatch[]> {
  const names = [
    yield* findUrls(text),
    yield* findEmails(text),
    yield* findMatches(text, ipv4, isIpv4),
    yield* findMatches(text, ipv6, isIpv6),
    yield* findMatches(text, number, isNumber),
  ]
  const others = [
    yield* findErrorMessages(text),
    yield* findMatches(text, errorProperty),
    yield* findGroups(text, selector),
    yield* findGroups(text, quotedId),
    yield* findMatches(text, attribute),
  ]
  const outer = outermost(names.flat())
  yield text.length
  return [outer, ...others].flat().sort(bySpan)
}

/** Matches per step; they are cheap, so that a slice has many. */
const matchesPerStep = 512

/** Collects the facts of matches, with a pause after many of them and at the end. */
function* collectFacts<T>(
  text: string,
  matches: Iterable<T>,
  toFact: (match: T) => FactMatch | undefined,
): Work<FactMatch[]> {
  const found: FactMatch[] = []
  let tried = 0
  for (const match of matches) {
    const fact = toFact(match)
    if (fact !== undefined) found.push(fact)
    if (++tried % matchesPerStep === 0) yield 8 * matchesPerStep
  }
  yield text.length
  return found
}

type Span = { readonly start: number; readonly end: number }

/** Orders by start; of two with the same start, the longer one comes first. */
export const bySpan = (left: Span, right: Span): number => left.start - right.start || right.end - left.end

/** Drops spans nested in another one, such as the port of an address. */
export function outermost<T extends Span>(spans: readonly T[]): T[] {
  let reached = -1
  return [...spans].sort(bySpan).filter(({ end }) => {
    const isInside = end <= reached
    if (!isInside) reached = end
    return !isInside
  })
}

const findMatches = (
  text: string,
  pattern: RegExp,
  isFact: (match: string) => boolean = () => true,
): Work<FactMatch[]> =>
  collectFacts(text, text.matchAll(pattern), ({ 0: fact, index }) =>
    isFact(fact) ? { text: fact, start: index, end: index + fact.length } : undefined,
  )

/** Finds the second group of a pattern; the first group is the quote that ends the match. */
const findGroups = (text: string, pattern: RegExp): Work<FactMatch[]> =>
  collectFacts(text, text.matchAll(pattern), ({ 0: whole, 1: quote = '', 2: fact = '', index }) => {
    const end = index + whole.length - quote.length
    return { text: fact, start: end - fact.length, end }
  })

function* findUrls(text: string): Work<FactMatch[]> {
  if (!text.includes('://')) return []
  const found = yield* findMatches(text, url)
  return found.map(({ text: whole, start }) => {
    const fact = trimPunctuation(whole)
    return { text: fact, start, end: start + fact.length }
  })
}

/** Removes trailing punctuation of the sentence from a URL; a closing bracket stays if the URL opens it. */
function trimPunctuation(found: string): string {
  let end = found.length
  let unmatched = countOccurrences(found, ')') - countOccurrences(found, '(')
  for (; end > 0; end--) {
    const last = found.charAt(end - 1)
    if (last === ')') {
      if (unmatched <= 0) break
      unmatched--
    } else if (!'.,;:!?]}*_\\|'.includes(last)) break
  }
  return found.slice(0, end)
}

const countOccurrences = (text: string, character: string): number => text.split(character).length - 1

/** Tells whether a character may be part of an e-mail's local part: letters, digits and `. _ % + -`. */
const isLocalPart = (code: number): boolean =>
  (code >= 97 && code <= 122) ||
  (code >= 65 && code <= 90) ||
  (code >= 48 && code <= 57) ||
  code === 46 ||
  code === 95 ||
  code === 37 ||
  code === 43 ||
  code === 45

const emailDomain = /@[a-z\d](?:[a-z\d-]{0,62}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,62}[a-z\d])?){1,8}/iy

const findEmails = (text: string): Work<FactMatch[]> => collectFacts(text, readEmails(text), (fact) => fact)

/** Lists the addresses, and undefined for an @ that belongs to none. */
function* readEmails(text: string): Generator<FactMatch | undefined> {
  for (let at = text.indexOf('@'); at >= 0; at = text.indexOf('@', at + 1)) {
    let start = at
    while (start > 0 && at - start <= 64 && isLocalPart(text.charCodeAt(start - 1))) start--
    while (text.charAt(start) === '.') start++
    emailDomain.lastIndex = at
    const isAddress = start < at && at - start <= 64 && emailDomain.test(text)
    const end = emailDomain.lastIndex
    yield isAddress ? { text: text.slice(start, end), start, end } : undefined
  }
}

/** Requires two adjacent digits or a decimal: `1,2` and `1-5` are several one-digit numbers. */
const isNumber = (fact: string): boolean => /\d\d|\d\.\d/.test(fact)
const isIpv4 = (fact: string): boolean =>
  fact
    .split(':')[0]
    ?.split('.')
    .every((part) => Number(part) < 256) ?? false
/** Accepts eight groups, or `::` and a digit. */
const isIpv6 = (fact: string): boolean => /\d/.test(fact) && (fact.includes('::') || fact.split(':').length === 8)

/**
 * Finds error messages with the name before them (`TypeError: …`), up to the end of the sentence or enclosing string.
 */
const findErrorMessages = (text: string): Work<FactMatch[]> =>
  collectFacts(text, readErrorMessages(text), (fact) => fact)

function* readErrorMessages(text: string): Generator<FactMatch> {
  let searchFrom = 0
  for (;;) {
    // Others may use the pattern between two steps.
    errorMessage.lastIndex = searchFrom
    const match = errorMessage.exec(text)
    if (match === null) return
    const start = findNameStart(text, match.index)
    const end = match.index + measureMessage(match[0])
    yield { text: text.slice(start, end), start, end }
    searchFrom = end
  }
}

function findNameStart(text: string, index: number): number {
  let start = index
  while (start > 0 && index - start < 60 && isLocalPart(text.charCodeAt(start - 1))) start--
  while (start < index && !/[A-Za-z]/.test(text.charAt(start))) start++
  return start
}

/** Returns the length of the message up to the end of its sentence or of the string that contains it. */
function measureMessage(message: string): number {
  let openQuote = ''
  let end = 0
  for (; end < message.length; end++) {
    const character = message.charAt(end)
    const isLast = /^[\s,)\]}]?$/.test(message.charAt(end + 1))
    if ('.!?;'.includes(character) && /^\s?$/.test(message.charAt(end + 1))) break
    if (character === '\\' && /[nr"']/.test(message.charAt(end + 1))) break
    if (!'"\'`'.includes(character)) continue
    if (openQuote === character) openQuote = ''
    else if (openQuote === '' && /[\s(=[{:]/.test(message.charAt(end - 1))) openQuote = character
    else if (openQuote === '' && isLast) break
  }
  return message.slice(0, end).trimEnd().length
}
