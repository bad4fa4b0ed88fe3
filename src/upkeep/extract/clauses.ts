import type { Sentence } from '../../text/sentences.ts'
import { leavesOpen } from './spoken.ts'

/** A part of a sentence that states something on its own, without the words it is led in by: `content.slice(start, end)`. */
export type Clause = { readonly text: string; readonly start: number; readonly end: number }

/** Words a new clause begins with; before them a comma or an `and` ends the clause before. */
const opening =
  "(?:i|i'm|i've|i'd|i'll|we|we're|we've|we'll|my|our|it's|that's|he|she|they|you|there|let's|please|can|could|would|should|call me|remember that|note that)"
const boundary = new RegExp(
  [
    '[;!?…]+',
    // a full stop, but not the point of a number or of a name
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
const supposed =
  /^(?:(?:and|but|so|or|then|well|maybe|perhaps|only|even),?\s)?(?:if|whenever|when|unless|suppos(?:e|ing)|imagine|assum(?:e|ing)|pretend|whether|in case|let's say|had i|were i|as if|maybe|perhaps)\b/i
const isAsked = /[?？][\s"'”’)\]*_]*$/
const asks =
  /^(?:(?:and|but|so|or|also|then|please|hey|ok|okay|well),?\s)*(?:can|could|would|will|shall|should|do(?! not\b|n't)|does|did|is|are|am|was|were|has|have|any|what|what's|how|how's|why|which|who|where|when|don't you|isn't|aren't|right|ok|mind|wondering)\b/i
const reports =
  /\b(?:said|says|told (?:me|us|him|her|them)|tells (?:me|us)|asked|asks|replied|wrote|writes|goes|claims?|claimed)[,:]?$/i
const mostLeadIns = 6

/**
 * What a sentence states, clause by clause. Questions, what is only supposed (`if I preferred …`) and what stands in
 * quotation marks or after `she said` states nothing.
 *
 * @example
 * clausesOf(sentence('Actually I prefer tea, can you note that?')) // 'I prefer tea'
 */
export function clausesOf(sentence: Sentence): readonly Clause[] {
  const clauses: Clause[] = []
  let before = ''
  for (const part of partsOf(sentence.text)) {
    if (supposed.test(part.text)) break
    const isQuoted = leavesOpen(sentence.text.slice(0, part.start))
    const isReported = reports.test(before)
    before = part.text
    const isQuestion = asks.test(part.text) || (isAsked.test(sentence.text) && part.isLast)
    if (!isQuoted && !isReported && !isQuestion)
      clauses.push({ text: part.text, start: sentence.start + part.start, end: sentence.start + part.end })
  }
  return clauses
}

type Part = Clause & { readonly isLast: boolean }

function partsOf(text: string): readonly Part[] {
  const parts: Part[] = []
  const take = (from: number, to: number): void => {
    const part = trimmed(text, from, to)
    if (part !== undefined) parts.push({ ...part, isLast: false })
  }
  let from = 0
  for (const { 0: mark, index } of text.matchAll(boundary)) {
    take(from, index)
    from = index + mark.length
  }
  take(from, text.length)
  return parts.map((part, place) => ({ ...part, isLast: place === parts.length - 1 }))
}

function trimmed(text: string, from: number, to: number): Clause | undefined {
  let start = from
  for (let taken = 0; taken < mostLeadIns; taken++) {
    const lead = leadIn.exec(text.slice(start, to))?.[0] ?? ''
    start += lead.length
    if (lead === '') break
  }
  const found = text.slice(start, to).replace(/[\s,:*_"'”’]+$/, '')
  start += found.length - found.trimStart().length
  return found.trim() === '' ? undefined : { text: found.trim(), start, end: start + found.trim().length }
}
