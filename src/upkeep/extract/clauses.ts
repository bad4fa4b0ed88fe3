import type { Sentence } from '../../text/sentences.ts'
import type { LanguageRules } from './languages/language.ts'
import { closeQuote, foldText } from './phrases.ts'

/**
 * An asserted part of a sentence without its lead-in: `content.slice(start, end)`. `folded` has the same length, but no
 * accents and quotations.
 */
export type Clause = {
  readonly text: string
  readonly folded: string
  readonly start: number
  readonly end: number
  /** Lead-in that was removed, with the clause before it: `I changed my mind:`. */
  readonly before: string
}

type Grammar = {
  readonly boundary: RegExp
  readonly leadIn: RegExp
  readonly hypothetical: RegExp
  readonly question: RegExp
  readonly reporting: RegExp
}

const grammars = new Map<string, Grammar>()

/** Compiles the patterns of a language on first use. */
function grammarOf(rules: LanguageRules): Grammar {
  const known = grammars.get(rules.code)
  if (known !== undefined) return known
  const { openings, commaOpenings, conjunctions, coordinators, leadIns, hypothetical, questions, reporting } = rules
  const grammar = {
    boundary: new RegExp(
      [
        '[;!?…]+',
        // a full stop, but not a decimal point, a dot in a name or an abbreviated title
        '(?<!\\d|\\b(?:dr|dra|prof|mr|mrs|ms|sr|sra|hr|fr|mme|st))\\.(?=["\'”’)\\]*]*(?:\\s|$))',
        '\\s?[–—]\\s?|\\s--?\\s|\\s\\(|\\)(?=[\\s.,]|$)',
        `,?\\s(?:${conjunctions})\\s`,
        `,\\s(?=(?:${openings}|${commaOpenings})\\b)`,
        `(?<=\\w{3}):\\s(?=(?:${openings})\\b)`,
        `,?\\s(?:${coordinators})\\s(?!i (?:are|were)\\b)(?=(?:${openings}|it|now i'm|now i)\\b)`,
      ].join('|'),
      'gi',
    ),
    leadIn: new RegExp(
      `^(?:[\\s,:*_#•–—"“'.-]+|\\d{1,2}[.)]\\s+|[a-z]{2,15} #?\\d{1,6}:\\s+|(?:great|cool|alright|perfect|wow|haha|lol|nope|yep|no|nao|si|sure|right|hi|hello|thanks|thank you|sorry)[,.!]+\\s+|(?:${leadIns})(?=[\\s,:!.])[,:!.]*\\s+)`,
      'i',
    ),
    hypothetical: new RegExp(
      `^(?:(?:and|but|so|or|then|well|maybe|perhaps|only|even|und|et|y|e|en),?\\s)?(?:${hypothetical})(?![\\w])`,
      'i',
    ),
    question: new RegExp(
      `^(?:(?:and|but|so|or|also|then|please|hey|ok|okay|well),?\\s)*[¿]?(?:${questions})(?![\\w'-])`,
      'i',
    ),
    reporting: new RegExp(`\\b(?:${reporting})[,:]?$`, 'i'),
  }
  grammars.set(rules.code, grammar)
  return grammar
}

const endsAsQuestion = /[?？][\s"'”’)\]*_]*$/
const ownSpeech = /^(?:(?:as|like|wie|comme|como|zoals) )?(?:i|we|ich|wir|je|j'|nous|yo|eu|ik|wij)\b/i
/** A request in the form of a question that says how something is to be done from then on. */
const lastingRequest =
  /^(?:and |also |so |then )?((?:can|could|would|will) you (?:please |kindly |also )*)(?:send|write|answer|reply|respond|call|use|pay|ship|deliver|address|speak|text|e-?mail)\b(?=.{0,80}\b(?:instead|from now on|always|in (?:english|german|french|spanish|portuguese|dutch|italian)|by (?:bank transfer|e-?mail|post|letter|phone|text))\b)/i
const maxLeadIns = 6

/**
 * Lists the asserted clauses of a sentence. Questions, hypotheticals (`if I preferred …`) and reported speech (`she
 * said …`) are excluded. `content` is the message, in which `sentence.start` is a position.
 *
 * @example
 * statedClauses(sentence, content, english) // 'Actually I prefer tea, can you note that?' gives 'I prefer tea'
 */
export function statedClauses(sentence: Sentence, content: string, rules: LanguageRules): readonly Clause[] {
  const grammar = grammarOf(rules)
  const clauses: Clause[] = []
  const folded = foldText(sentence.text)
  const parts = joinCorrections(splitAtBoundaries(folded, grammar), folded)
  let previous = ''
  for (const [index, part] of parts.entries()) {
    if (grammar.hypothetical.test(part.folded)) break
    // A quotation after the verb is all that was reported.
    const isReported = grammar.reporting.test(previous) && !parts[index - 1]?.isQuoting && !ownSpeech.test(previous)
    const isLast = index === parts.length - 1
    const isAsked = endsAsQuestion.test(sentence.text)
    // Only English texts leave out the question mark; elsewhere a verb may come first in a statement.
    const isQuestion = (isAsked && isLast) || ((isAsked || rules.code === 'en') && grammar.question.test(part.folded))
    const request = isQuestion ? lastingRequest.exec(part.folded)?.[1] : undefined
    if (!isReported && (!isQuestion || request !== undefined)) {
      const lead = request?.length ?? 0
      const [start, end] = [sentence.start + part.start + lead, sentence.start + part.end]
      clauses.push({
        folded: part.folded.slice(lead),
        start,
        end,
        text: content.slice(start, end),
        before: `${previous} ${part.before} ${request ?? ''}`.trim(),
      })
    }
    previous = part.folded
  }
  return clauses
}

type Part = Pick<Clause, 'folded' | 'start' | 'end' | 'before'> & { readonly isQuoting: boolean }

function splitAtBoundaries(folded: string, { boundary, leadIn }: Grammar): readonly Part[] {
  const parts: Part[] = []
  let from = 0
  const take = (to: number): void => {
    const part = trimClause(folded, from, to, leadIn)
    if (part !== undefined) parts.push(part)
  }
  for (const { 0: separator, index } of folded.matchAll(boundary)) {
    take(index)
    from = index + separator.length
  }
  take(folded.length)
  return parts
}

/** A slip of the tongue with the right word after it: `Monday... no sorry, Tuesday`. */
const correction =
  /^[\s.,;!…–—-]*(?:(?:oh|ah|ach|no|nein|non|nee|wait|moment)[,.!…]*\s+)?(?:sorry|i mean(?:t)?|or rather|pardon|i meant to say|entschuldigung|ich meine|quatsch|vielmehr|je veux dire|perdon|quiero decir|desculpe?|quero dizer|ik bedoel)[,.!:…]*\s+(?:i mean(?:t)? )?[^,;!?]{1,40}$/i

/** Joins a correction with the clause that it corrects, so that the fact has both. */
function joinCorrections(parts: readonly Part[], folded: string): readonly Part[] {
  const joined: Part[] = []
  for (const part of parts) {
    const last = joined.at(-1)
    if (last !== undefined && correction.test(folded.slice(last.end, part.end)))
      joined[joined.length - 1] = { ...last, folded: folded.slice(last.start, part.end), end: part.end }
    else joined.push(part)
  }
  return joined
}

function trimClause(text: string, from: number, to: number, leadIn: RegExp): Part | undefined {
  let start = from
  for (let taken = 0; taken < maxLeadIns; taken++) {
    const lead = leadIn.exec(text.slice(start, to))?.[0] ?? ''
    start += lead.length
    if (lead === '') break
  }
  const before = text.slice(from, start)
  const whole = text.slice(start, to)
  const rest = closeQuote(whole.replace(/(?<![\s,:*_"'”’\ufffc])[\s,:*_"'”’\ufffc]+$/, ''), whole)
  start += rest.length - rest.trimStart().length
  const folded = rest.trim()
  return folded === ''
    ? undefined
    : { folded, start, end: start + folded.length, before, isQuoting: whole.includes('\ufffc') }
}
