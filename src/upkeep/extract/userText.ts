import { splitFencedLines } from '../../text/fences.ts'
import { type Sentence, splitSentences } from '../../text/sentences.ts'
import { isStopword } from '../../text/words.ts'

/** A line of a message; `isOwn` is false for text that the user quotes or has pasted. */
export type UserLine = { readonly text: string; readonly start: number; readonly isOwn: boolean }

/** Splits a message into lines and marks those in the user's own words. */
export function userLines(content: string): readonly UserLine[] {
  const text = blankTagged(content)
  const lines: UserLine[] = []
  let isQuotedRest = false
  for (const { start, end, fence } of splitFencedLines(text)) {
    const line = text.slice(start, end)
    const before = lines.at(-1)?.text ?? ''
    isQuotedRest ||= fence === 'none' && (quotesTheRest.test(line) || (header.test(line) && header.test(before)))
    lines.push({ text: line, start, isOwn: !isQuotedRest && fence === 'none' && !isPasted(line) })
  }
  return lines
}

/** Longer sentences are not prose but data. */
const maxSentenceChars = 2_000
/** Sentences beyond this number of one message are most likely pasted. */
const maxSentences = 2_000

/** Lists the sentences of the user's own lines with their positions in the message. */
export const userSentences = (lines: readonly UserLine[]): readonly Sentence[] =>
  lines
    .filter(({ isOwn }) => isOwn)
    .flatMap(({ text, start: offset }) =>
      withoutQuoted(splitSentences(text)).map(({ text, start, end }) => ({
        text,
        start: start + offset,
        end: end + offset,
      })),
    )
    .filter(({ text }) => text.length <= maxSentenceChars)
    .slice(0, maxSentences)

/** Drops sentences that start inside a quotation. */
function withoutQuoted(sentences: readonly Sentence[]): readonly Sentence[] {
  let isOpen = false
  return sentences.filter(({ text }) => {
    const began = isOpen
    isOpen = leavesQuoteOpen(text, began)
    return !began
  })
}

/** True if a quotation is open after a text. A quotation mark after a digit means inches. */
function leavesQuoteOpen(text: string, isOpen = false): boolean {
  let open = isOpen
  for (const { 0: mark } of text.matchAll(/(?<!\d)"|[“”„]/g)) open = mark === '"' ? !open : mark !== '”'
  return open
}

const tag = /<memory\b|^[ \t]{0,40}<([a-z][\w-]{0,30})(?=[\s/>])[^>\n]{0,300}>/gim
const closingTag = /<\/([a-z][\w-]{0,30})\s{0,9}>/gi

/**
 * Blanks recalled memory and the content of tags that start a line, such as pages, documents and reminders. Unclosed
 * memory extends to the end: missing user text is better than trusting recalled text.
 */
function blankTagged(content: string): string {
  if (!content.includes('<')) return content
  const closings = indexClosingTags(content)
  let result = ''
  let copiedTo = 0
  tag.lastIndex = 0
  for (let match = tag.exec(content); match !== null; match = tag.exec(content)) {
    const after = match.index + match[0].length
    const closing = nextClosing(closings.get(match[1]?.toLowerCase() ?? 'memory'), after)
    const end = closing ?? (match[1] === undefined ? content.length : after)
    result += `${content.slice(copiedTo, match.index)}\n${' '.repeat(end - match.index - 2)}\n`
    copiedTo = end
    tag.lastIndex = end
  }
  return result + content.slice(copiedTo)
}

type ClosingTags = { readonly ends: number[]; next: number }

/** Indexes the ends of closing tags by name once, so that many opening tags stay linear. */
function indexClosingTags(content: string): ReadonlyMap<string, ClosingTags> {
  const closings = new Map<string, ClosingTags>()
  for (const { 0: closing, 1: name = '', index } of content.matchAll(closingTag)) {
    const known = closings.get(name.toLowerCase()) ?? { ends: [], next: 0 }
    known.ends.push(index + closing.length)
    closings.set(name.toLowerCase(), known)
  }
  return closings
}

function nextClosing(closings: ClosingTags | undefined, after: number): number | undefined {
  if (closings === undefined) return undefined
  while ((closings.ends[closings.next] ?? Number.POSITIVE_INFINITY) <= after) closings.next++
  return closings.ends[closings.next]
}

/** Headings of rendered memory and phrases that introduce quoted messages: no text after them is the user's own. */
const quotesTheRest =
  /^\s{0,9}(?:#{1,3} (?:Background Context \(INTERNAL|Conversation Context$|Recalled from earlier)|\[(?:RECALLED FROM EARLIER|SYSTEM MESSAGE|IMPORTANT DATA|CONVERSATION SUMMARY|RECENT MESSAGES)|-{2,} ?(?:original|forwarded) message|begin forwarded message)|(?:wrote|writes|said|says|replied|answered):\s{0,9}$/i
const header = /^(?:from|to|cc|sent|date|subject): \S/i

const pastedPatterns: readonly RegExp[] = [
  // quotations, table rows, shell prompts, markup
  /^\s{0,40}(?:[>|❯]|\$ |<[!/a-z])/i,
  // JSON
  /^\s*(?:[{}[\]]{1,4},?\s*$|[{[]\s*["{[]|["'][\w .-]{1,60}["']\s{0,9}:)/,
  // logs and stack traces
  /^\s*\[?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b\]?[\s:])/,
  /^\s*(?:at \S.{0,200}[:(]\d|File ".{1,200}", line \d|Traceback )/,
  // code without a fence
  /[;{}]\s*$/,
  /^\s*(?:(?:const|let|var)\s[^=\n]{1,80}=|(?:import|from)\s.{1,200}\b(?:from|import)\s|(?:async )?(?:def|function|class|fn|func)\s\w{1,60}\s?[({:<]|[\w.[\]'"]{1,60} [+-]?= \S|@\w{1,60}\()/,
  /^\s*(?:SELECT|INSERT INTO|CREATE TABLE|DELETE FROM)\s/,
  // a transcript
  /^\s*\W{0,2}(?:assistant|ai|bot|system|tool|human|user|chatgpt|claude|gemini|copilot)\W{0,2}:/i,
]
const speakerPattern = /^\s*(\p{Lu}[\p{L}-]{1,20})(?: \p{Lu}[\p{L}-]{1,20})?: (?:["“]|(?:I|[Mm]y|[Ww]e|[Oo]ur)\b)/u
const ownLabels =
  /^(?:also|background|context|correction|edit|fyi|goal|important|info|me|myself|note|preferences?|ps|remember|reminder|update)$/i

/** True if a line is not the user's prose. `Ana: I live in Oslo` is a statement by Ana. */
function isPasted(line: string): boolean {
  if (pastedPatterns.some((pattern) => pattern.test(line))) return true
  const name = speakerPattern.exec(line)?.[1]
  return name !== undefined && !ownLabels.test(name)
}

/** An asserted part of a sentence without its lead-in: `content.slice(start, end)`. */
export type Clause = { readonly text: string; readonly start: number; readonly end: number }

/** First words of a new clause; a comma or `and` before them ends the previous clause. */
const opening =
  "(?:i|i'm|i've|i'd|i'll|we|we're|we've|we'll|my|our|it's|that's|he|she|they|you|there|let's|please|can|could|would|should|call me|remember that|note that)"
const clauseBoundary = new RegExp(
  [
    '[;!?…]+',
    // a full stop, but not a decimal point or a dot in a name
    '\\.(?=["\'”’)\\]*]*(?:\\s|$))',
    '\\s?[–—]\\s?|\\s--\\s|\\s\\(|\\)(?=[\\s.,]|$)',
    ",?\\s(?:but|because|although|(?:- )?(?:even )?though|whereas|'cause|cuz|unless|even if|so that)\\s",
    `,\\s(?=(?:${opening}|don't|do not|never|always|the \\w+ (?:is|are|was|were)|it|this|your|will|do|does|is|are|how|what|which|who|where|while|since|if|when|as|so|thanks|especially|however|also|right|ok|plus|then|thus)\\b)`,
    `,?\\s(?:and|so|then|or)\\s(?!i (?:are|were)\\b)(?=(?:${opening}|it|now i'm|now i)\\b)`,
  ].join('|'),
  'gi',
)
const leadIn = new RegExp(
  '^(?:[\\s,:*_#•–—"“\'-]+|\\d{1,2}[.)]\\s+|[a-z]{2,15} #?\\d{1,6}:\\s+|(?:yes|yeah|yep|no|nope|ok|okay|sure|right|great|thanks|thank you|sorry|hi|hello|hey|cool|alright|perfect|wow|haha|lol)[,.!]+\\s+|' +
    '(?:and|but|so|then|also|plus|actually|oh|well|ok|okay|yes|yeah|hey|btw|fyi|by the way|just so you know|for me|for the record|personally|honestly|in general|generally|overall|' +
    'as (?:i said|mentioned|a reminder)|from now on|going forward|in the future|these days|nowadays|lately|now|please|kindly|again|first|firstly|second|finally|basically|in fact|of course|however|' +
    'i (?:just |also )?(?:think|believe|guess|said|told you|mean|should mention|forgot to (?:say|mention))(?: that)?|(?:you should|just so you) know(?: that)?)(?=[\\s,:])[,:]?\\s+)',
  'i',
)
const hypothetical =
  /^(?:(?:and|but|so|or|then|well|maybe|perhaps|only|even),?\s)?(?:if|whenever|when|unless|suppos(?:e|ing)|imagine|assum(?:e|ing)|pretend|whether|in case|let's say|had i|were i|as if|maybe|perhaps)\b/i
const endsAsQuestion = /[?？][\s"'”’)\]*_]*$/
const startsAsQuestion =
  /^(?:(?:and|but|so|or|also|then|please|hey|ok|okay|well),?\s)*(?:can|could|would|will|shall|should|do(?! not\b|n't)|does|did|is|are|am|was|were|has|have|any|what|what's|how|how's|why|which|who|where|when|don't you|isn't|aren't|right|ok|mind|wondering)\b/i
const reportedSpeech =
  /\b(?:said|says|told (?:me|us|him|her|them)|tells (?:me|us)|asked|asks|replied|wrote|writes|goes|claims?|claimed)[,:]?$/i
const maxLeadIns = 6

/**
 * Lists the asserted clauses of a sentence. Questions, hypotheticals (`if I preferred …`), quotations and reported
 * speech (`she said …`) are excluded.
 *
 * @example
 * statedClauses(sentence) // 'Actually I prefer tea, can you note that?' gives 'I prefer tea'
 */
export function statedClauses(sentence: Sentence): readonly Clause[] {
  const clauses: Clause[] = []
  let previous = ''
  for (const part of splitAtBoundaries(sentence.text)) {
    if (hypothetical.test(part.text)) break
    const isQuoted = leavesQuoteOpen(sentence.text.slice(0, part.start))
    const isReported = reportedSpeech.test(previous)
    previous = part.text
    const isQuestion = startsAsQuestion.test(part.text) || (endsAsQuestion.test(sentence.text) && part.isLast)
    if (!isQuoted && !isReported && !isQuestion)
      clauses.push({ text: part.text, start: sentence.start + part.start, end: sentence.start + part.end })
  }
  return clauses
}

type ClausePart = Clause & { readonly isLast: boolean }

function splitAtBoundaries(text: string): readonly ClausePart[] {
  const parts: ClausePart[] = []
  const take = (from: number, to: number): void => {
    const part = trimClause(text, from, to)
    if (part !== undefined) parts.push({ ...part, isLast: false })
  }
  let from = 0
  for (const { 0: separator, index } of text.matchAll(clauseBoundary)) {
    take(from, index)
    from = index + separator.length
  }
  take(from, text.length)
  return parts.map((part, index) => ({ ...part, isLast: index === parts.length - 1 }))
}

function trimClause(text: string, from: number, to: number): Clause | undefined {
  let start = from
  for (let taken = 0; taken < maxLeadIns; taken++) {
    const lead = leadIn.exec(text.slice(start, to))?.[0] ?? ''
    start += lead.length
    if (lead === '') break
  }
  const rest = text.slice(start, to).replace(/[\s,:*_"'”’]+$/, '')
  start += rest.length - rest.trimStart().length
  const clause = rest.trim()
  return clause === '' ? undefined : { text: clause, start, end: start + clause.length }
}

export const maxValueChars = 300
const maxKeyChars = 48

const trailingFiller =
  /(?:[\s,.;:!?…"'”’)*_-]|\s(?:now|please|too|instead|thanks|though|as well|anyway|anymore|any more|these days|so much|a lot|again|lately|right now|from now on|btw|lol|haha))+$/i

/** Trims trailing punctuation and filler words: `light mode now, please` becomes `light mode`. */
export const trimPhrase = (text: string): string => text.replace(trailingFiller, '').trim()

/** Truncates a text to `maxValueChars` at the end of a clause, or else between two words. */
export function truncateValue(text: string): string {
  if (text.length <= maxValueChars) return text
  const head = text.slice(0, maxValueChars)
  const clause = Math.max(head.lastIndexOf(', '), head.lastIndexOf('; '), head.lastIndexOf('. '))
  const cut = clause > maxValueChars / 3 ? clause : head.lastIndexOf(' ')
  return trimPhrase(cut > 0 ? head.slice(0, cut) : head)
}

/** Lists the words of a text except stop words, in lower case. */
export const contentWords = (text: string): readonly string[] =>
  (text.toLowerCase().match(/[\p{L}\p{N}](?:[\p{L}\p{N}\p{M}+#]|['’./-](?=[\p{L}\p{N}]))*/gu) ?? []).filter(
    (word) => !isStopword(word.replace('’', "'")),
  )

/** Derives a key from the first content words of a text: `deploy_fridays`. */
export const keyFromText = (text: string, words = 3): string =>
  contentWords(text).slice(0, words).join('_').slice(0, maxKeyChars)

/** Matches the rest of a phrase after its noun. */
const phraseTail =
  /(?:[,;:(]|\s(?:of|in|for|with|on|at|when|while|from|by|as|because|to|that|which|where|who|over|and|or|like|such|than|if|during|after|before|since|using|about|into|due)\s).*$/i

/** Removes qualifiers from a phrase: `window seats with a view` becomes `window seats`. */
export const nounPhrase = (phrase: string): string => trimPhrase(phrase.replace(phraseTail, ''))

/** Returns the head word of a phrase: `seats` for `window seats with a view`. */
export const headWord = (phrase: string): string => contentWords(nounPhrase(phrase)).at(-1) ?? ''
