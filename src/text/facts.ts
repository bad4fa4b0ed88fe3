/** Something worth keeping to the letter, and where it stands. */
export type FoundFact = { readonly text: string; readonly start: number; readonly end: number }

// Every pattern is anchored and what it may try in vain is bounded, so that no text makes it slow.
const url = /\b(?:https?|ftp|wss?):\/\/[^\s<>"'`\u3000-\u303f\uff00-\uff65]+/gi
const failure =
  /(?:error|exception|failure|fatal|panic|failed)(?:\[[^\]\n]{1,40}\]|\([^)\n]{1,40}\)| [A-Z]{1,5}-?\d{1,6})?:[ \t]{0,4}[^\s:][^\n]{0,199}|failed (?:to|with) [^\n]{1,199}/gi
const namedFailure =
  /\\?["']\w{0,20}(?:error|exception|failure)(?:_?message)?\\?["'][ \t]{0,4}:[ \t]{0,4}(\\?["'])[^\n]{1,200}?\1/gi
const selector = /selector(?:All)?\\?["'`]?[ \t]{0,4}[:=(][ \t]{0,4}(\\?["'`])([^\n]{1,200}?)\1/gi
const quotedId = /(["'`])(#[a-z_][\w-]{0,100}(?:[ .>+~:[#][^\n"'`]{0,100})?)\1/gi
const attribute = /\b(?:class|className|id)=(\\?["'])[^\n]{1,200}?\1/g
const address = /(?<![\w.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?::\d{1,5})?(?![\w]|\.\d)/g
const longAddress = /(?<![\w:.])(?:[\da-f]{1,4}:){0,7}:?(?::[\da-f]{1,4}){1,7}(?![\w:])/gi
const number = /(?<!\w|\w[-.])(?:[A-Za-z]{1,20}-|[#$€£¥vV])?\d[\d.,:/-]*\d(?:%|[A-Za-z]{1,3})?(?!\w)/g

/** URLs, e-mail addresses, error messages, selectors, class names, ids, IP addresses and numbers, in the order they begin. */
export function findFacts(text: string): FoundFact[] {
  const names = [
    ...urlsIn(text),
    ...emailsIn(text),
    ...matches(text, address, isAddress),
    ...matches(text, longAddress, isLongAddress),
  ]
  const messages = [...failuresIn(text), ...matches(text, namedFailure)]
  const elements = [...groupsIn(text, selector), ...groupsIn(text, quotedId), ...matches(text, attribute)]
  return [...outermost([...names, ...matches(text, number, isNumber)]), ...messages, ...elements].sort(byPlace)
}

const byPlace = (left: FoundFact, right: FoundFact): number => left.start - right.start || right.end - left.end

/** Leaves out what lies inside another one: the port of an address is no number of its own. */
export function outermost(facts: readonly FoundFact[]): FoundFact[] {
  let reached = -1
  return [...facts].sort(byPlace).filter(({ end }) => {
    const isInside = end <= reached
    if (!isInside) reached = end
    return !isInside
  })
}

function matches(text: string, pattern: RegExp, isOne: (fact: string) => boolean = () => true): FoundFact[] {
  const found: FoundFact[] = []
  for (const { 0: fact, index } of text.matchAll(pattern))
    if (isOne(fact)) found.push({ text: fact, start: index, end: index + fact.length })
  return found
}

function groupsIn(text: string, pattern: RegExp): FoundFact[] {
  const found: FoundFact[] = []
  for (const { 0: whole, 1: quote = '', 2: fact = '', index } of text.matchAll(pattern)) {
    const end = index + whole.length - quote.length
    found.push({ text: fact, start: end - fact.length, end })
  }
  return found
}

function urlsIn(text: string): FoundFact[] {
  if (!text.includes('://')) return []
  return matches(text, url).map(({ text: whole, start }) => {
    const fact = withoutPunctuation(whole)
    return { text: fact, start, end: start + fact.length }
  })
}

/** A full stop or bracket after a URL belongs to the sentence, unless the bracket was opened inside it. */
function withoutPunctuation(found: string): string {
  let end = found.length
  let surplus = occurrences(found, ')') - occurrences(found, '(')
  for (; end > 0; end--) {
    const last = found.charAt(end - 1)
    if (last === ')') {
      if (surplus <= 0) break
      surplus--
    } else if (!'.,;:!?]}*_\\|'.includes(last)) break
  }
  return found.slice(0, end)
}

const occurrences = (text: string, mark: string): number => text.split(mark).length - 1

const isLocal = (code: number): boolean =>
  (code >= 97 && code <= 122) ||
  (code >= 65 && code <= 90) ||
  (code >= 48 && code <= 57) ||
  code === 46 ||
  code === 95 ||
  code === 37 ||
  code === 43 ||
  code === 45

const domain = /@[a-z\d](?:[a-z\d-]{0,62}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,62}[a-z\d])?){1,8}/iy

function emailsIn(text: string): FoundFact[] {
  const found: FoundFact[] = []
  for (let at = text.indexOf('@'); at >= 0; at = text.indexOf('@', at + 1)) {
    let start = at
    while (start > 0 && at - start <= 64 && isLocal(text.charCodeAt(start - 1))) start--
    while (text.charAt(start) === '.') start++
    domain.lastIndex = at
    if (start >= at || at - start > 64 || !domain.test(text)) continue
    found.push({ text: text.slice(start, domain.lastIndex), start, end: domain.lastIndex })
  }
  return found
}

/** Two digits together or a decimal: `1,2` and `1-5` are several numbers of one digit. */
const isNumber = (fact: string): boolean => /\d\d|\d\.\d/.test(fact)
const isAddress = (fact: string): boolean =>
  fact
    .split(':')[0]
    ?.split('.')
    .every((part) => Number(part) < 256) ?? false
/** Nothing else has eight groups, or two colons together and a digit. */
const isLongAddress = (fact: string): boolean =>
  /\d/.test(fact) && (fact.includes('::') || fact.split(':').length === 8)

/** An error message: with the name before it (`TypeError: …`), up to the end of its sentence or of the string it stands in. */
function failuresIn(text: string): FoundFact[] {
  const found: FoundFact[] = []
  failure.lastIndex = 0
  for (let match = failure.exec(text); match !== null; match = failure.exec(text)) {
    const start = nameStart(text, match.index)
    const end = match.index + messageLength(match[0])
    found.push({ text: text.slice(start, end), start, end })
    failure.lastIndex = end
  }
  return found
}

function nameStart(text: string, place: number): number {
  let start = place
  while (start > 0 && place - start < 60 && isLocal(text.charCodeAt(start - 1))) start--
  while (start < place && !/[A-Za-z]/.test(text.charAt(start))) start++
  return start
}

function messageLength(message: string): number {
  let open = ''
  let end = 0
  for (; end < message.length; end++) {
    const character = message.charAt(end)
    const isLast = /^[\s,)\]}]?$/.test(message.charAt(end + 1))
    if ('.!?;'.includes(character) && /^\s?$/.test(message.charAt(end + 1))) break
    if (character === '\\' && /[nr"']/.test(message.charAt(end + 1))) break
    if (!'"\'`'.includes(character)) continue
    if (open === character) open = ''
    else if (open === '' && /[\s(=[{:]/.test(message.charAt(end - 1))) open = character
    else if (open === '' && isLast) break
  }
  return message.slice(0, end).trimEnd().length
}
