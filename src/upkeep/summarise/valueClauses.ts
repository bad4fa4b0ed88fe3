import type { Work } from '../../domain/work.ts'
import { splitSentences } from '../../text/sentences.ts'
import { findValuesInSteps, type Value } from '../../text/values.ts'
import { extractTerms } from '../../text/words.ts'

/** A part of a sentence that makes one statement, with its content words, names and values. */
export type Clause = {
  readonly text: string
  /** Stems of the content words, without numbers and words that every summary uses. */
  readonly terms: ReadonlySet<string>
  /** Capitalised words in lower case: names, and the first word of a sentence. */
  readonly names: ReadonlySet<string>
  readonly values: readonly Value[]
  /** Number of the sentence, counted through the whole text. */
  readonly sentence: number
}

/** Function words of six languages, and words of summaries about their speakers. Only longer ones than two letters. */
const commonWords = new Set(
  `user assistant customer client agent conversation chat summary discuss discussed discussion ask asked asks said say says told tell want wants wanted need needs
  needed mention mentioned thank thanks talk talked get got also still later first then will would could like one ones new now use used using make made going
  der die das den dem des ein eine einen einem einer und oder aber ist sind war waren wird werden wurde hat haben hatte ich sie wir ihr mir mich dir sich mein meine
  meinen dein ihre ihren nicht kein keine mit von vom zum zur bei für auf aus nach über unter auch noch nur schon dass wenn weil als wie was wer bitte möchte kann
  können soll sollte muss benutzer nutzer assistent kunde kundin
  les des une est sont était avec pour dans sur par pas que qui mais ont été elle nous vous ils elles mon mes son ses leur plus aussi veut veux voudrais utilisateur client
  los las una uno con por para del que pero como está son fue han sus usuario asistente cliente quiere quiero queremos también
  com uma não para dos das seu sua são foi mas usuário utilizador assistente quer também
  het een van met voor aan niet geen maar ook naar zijn haar wil gebruiker assistent klant heeft`
    .split(/\s+/)
    .flatMap((word) => [word, ...extractTerms(word)]),
)

/** Extracts the stems of the content words of a text. */
export const contentTerms = (text: string): string[] =>
  extractTerms(text).filter((term) => term.length > 2 && !/^\d/.test(term) && !commonWords.has(term))

/** Characters whose words are looked at in one step. */
const stepCharacters = 4_096

/** `contentTerms` as interruptible work. White space ends every word, so that a text can be split there. */
export function* contentTermsInSteps(text: string): Work<string[]> {
  const terms: string[] = []
  for (let [start, end] = [0, 0]; start < text.length; start = end) {
    const length = text.slice(start + stepCharacters).search(/\s/)
    end = length < 0 ? text.length : start + stepCharacters + length
    for (const term of contentTerms(text.slice(start, end))) terms.push(term)
    yield end - start
  }
  return terms
}

const boundary =
  /[,;:()–—\n]\s{0,4}|\s-\s|\s(?:and|but|while|whereas|or|then|und|aber|während|oder|et|mais|tandis que|y|pero|mas|maar|terwijl)\s/gi
const capitalised = /(?<![\p{L}\p{N}_])\p{Lu}[\p{L}\p{M}]{1,40}/gu

/** Splits a text into clauses. A boundary inside a date or number does not count. Interruptible work. */
export function* splitClauses(text: string): Work<readonly Clause[]> {
  const clauses: Clause[] = []
  for (const [index, { start, end, values }] of joinSentences(text, yield* findValuesInSteps(text)).entries()) {
    yield end - start
    let [from, next, covered] = [start, 0, 0]
    const close = (to: number): void => {
      const first = next
      while (next < values.length && (values[next] as Value).start < to) next++
      const clause = createClause(text, from, to, values.slice(first, next), index)
      if (/[\p{L}\p{N}]/u.test(clause.text)) clauses.push(clause)
      from = to
    }
    for (const match of text.slice(start, end).matchAll(boundary)) {
      const at = start + match.index
      while (covered < values.length && (values[covered] as Value).end <= at) covered++
      if ((values[covered]?.start ?? end) >= at) close(at)
    }
    close(end)
  }
  return clauses
}

function createClause(text: string, start: number, end: number, values: readonly Value[], sentence: number): Clause {
  const withoutValues = (hidden: readonly Value[]): string => {
    const parts: string[] = []
    let from = start
    for (const value of hidden) {
      if (value.start >= from) parts.push(text.slice(from, value.start))
      from = Math.min(value.end, end)
    }
    return [...parts, text.slice(from, end)].join(' ')
  }
  return {
    text: text.slice(start, end),
    terms: new Set(contentTerms(withoutValues(values.filter(({ kind }) => kind !== 'weekday')))),
    names: new Set(Array.from(withoutValues(values).matchAll(capitalised), ({ 0: name }) => name.toLowerCase())),
    values,
    sentence,
  }
}

type SentenceSpan = { readonly start: number; end: number; readonly values: Value[] }

/** Joins sentences that were split inside a value, such as `1. August`, and adds their values. */
function joinSentences(text: string, values: readonly Value[]): readonly SentenceSpan[] {
  const spans: SentenceSpan[] = []
  let next = 0
  for (const { start, end } of splitSentences(text)) {
    const last = spans.at(-1)
    const isInside = (last?.values.at(-1)?.end ?? 0) > start
    if (last !== undefined && isInside) last.end = end
    else spans.push({ start, end, values: [] })
    for (; next < values.length && (values[next] as Value).start < end; next++)
      spans.at(-1)?.values.push(values[next] as Value)
  }
  return spans
}

/** Negations in six languages, and words that a summary uses for them. */
const negation =
  /(?<![\p{L}])(?:not|no|never|none|nor|cannot|without|nicht|kein\p{L}{0,2}|nie|niemals|ohne|ne|pas|jamais|sans|aucun\p{L}{0,2}|nunca|jamás|sin|ningun\p{L}{0,2}|ningún|não|sem|nenhum\p{L}{0,1}|niet|geen|nooit|zonder)(?![\p{L}])|n['’]t(?![\p{L}])/iu
const softNegation =
  /(?<![\p{L}])(?:avoid\p{L}{0,3}|except\p{L}{0,4}|only|unless|exclud\p{L}{0,3}|forb[ia]d\p{L}{0,4}|prohibit\p{L}{0,4}|refrain\p{L}{0,3}|ban|banned|instead|rather|free|refus\p{L}{0,4}|declin\p{L}{0,3}|skip\p{L}{0,4}|dislik\p{L}{0,3}|hat(?:e|es|ed)|against|allerg\p{L}{0,4}|cancel\p{L}{0,5}|remov\p{L}{0,3}|stop\p{L}{0,4}|omit\p{L}{0,4}|lack\p{L}{0,3}|unable|rul(?:e|ed|es) out|off|out|less|fewer|drop\p{L}{0,4}|neither|vermeid\p{L}{0,4}|nur|verzicht\p{L}{0,4}|allergi\p{L}{0,4}|außer|statt|évit\p{L}{0,4}|seulement|sauf|évite|evit\p{L}{0,4}|sólo|solo|salvo|excepto|só|apenas|exceto|alleen|vermijd\p{L}{0,3}|behalve|opposed|intoleran\p{L}{0,3}|\p{L}{3,20}-free)(?![\p{L}])/iu

/** True if a clause denies or forbids something in plain words. */
export const isNegated = (text: string): boolean => negation.test(text)
/** True if the vocabulary of a clause may deny or restrict something. */
export const isRestricted = (text: string): boolean => softNegation.test(text)
