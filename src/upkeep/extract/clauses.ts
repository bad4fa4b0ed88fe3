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
        // a full stop, but not a decimal point or a dot in a name
        '(?<!\\d)\\.(?=["\'”’)\\]*]*(?:\\s|$))',
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
  const parts = splitAtBoundaries(foldText(sentence.text), grammar)
  let previous = ''
  for (const [index, part] of parts.entries()) {
    if (grammar.hypothetical.test(part.folded)) break
    // A quotation after the verb is all that was reported.
    const isReported = grammar.reporting.test(previous) && !parts[index - 1]?.isQuoting && !ownSpeech.test(previous)
    const isLast = index === parts.length - 1
    const isAsked = endsAsQuestion.test(sentence.text)
    // Only English texts leave out the question mark; elsewhere a verb may come first in a statement.
    const isQuestion = (isAsked && isLast) || ((isAsked || rules.code === 'en') && grammar.question.test(part.folded))
    if (!isReported && !isQuestion) {
      const [start, end] = [sentence.start + part.start, sentence.start + part.end]
      clauses.push({
        ...part,
        start,
        end,
        text: content.slice(start, end),
        before: `${previous} ${part.before}`.trim(),
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

function trimClause(text: string, from: number, to: number, leadIn: RegExp): Part | undefined {
  let start = from
  for (let taken = 0; taken < maxLeadIns; taken++) {
    const lead = leadIn.exec(text.slice(start, to))?.[0] ?? ''
    start += lead.length
    if (lead === '') break
  }
  const before = text.slice(from, start)
  const whole = text.slice(start, to)
  const rest = closeQuote(whole.replace(/[\s,:*_"'”’\ufffc]+$/, ''), whole)
  start += rest.length - rest.trimStart().length
  const folded = rest.trim()
  return folded === ''
    ? undefined
    : { folded, start, end: start + folded.length, before, isQuoting: whole.includes('\ufffc') }
}
