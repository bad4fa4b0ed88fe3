import { type DerivedEntry, isBlank, type Knowledge, type Message } from '../domain/entry.ts'
import type { Origin } from '../domain/ledger.ts'
import type { IndexHit } from '../domain/ports.ts'
import { getImportance } from '../domain/profile.ts'
import { isQuestion } from '../text/sentences.ts'
import { extractTerms, isStopword, splitWords } from '../text/words.ts'
import { minStatementTerms } from './claimLimits.ts'
import type { ContextQuery } from './sessionReader.ts'

/** Scores of the entries that match a question. */
export type QuestionScores = ReadonlyMap<DerivedEntry, number>

/** Entries of one memory; without `from`, of the session itself. */
export type EntryGroup = { readonly from: Origin | undefined; readonly entries: readonly DerivedEntry[] }

/** A text to search for, and the share of its scores that counts. */
type SearchText = { readonly text: string; readonly weight: number }

/** The word table is English: it relates foreign words, but not by their meaning. */
function mayUseRelatedWords(text: string): boolean {
  const words = splitWords(text)
  return words.length < minForeignWords || words.filter(isStopword).length >= minStopwordShare * words.length
}

/** Phrases of a turn that say nothing about its subject: greetings, thanks and the speaker's own time. */
const emptyPhrases: readonly RegExp[] = [
  /\b(?:have|enjoy) (?:a|an|your) (?:\w{1,20} ){0,2}(?:day|morning|afternoon|evening|night|week|weekend|time|one)\b/gi,
  /\bgood (?:day|morning|afternoon|evening|night)\b/gi,
  /\b(?:see|talk to) you\b/gi,
  /\b(?:today|tonight|tomorrow|yesterday)\b/gi,
  /\b(?:this|last|next) (?:week|weekend|month|year|morning|afternoon|evening|night|time)\b/gi,
]
/** Opens a turn that accepts an answer, greets or ends the conversation. */
const acknowledgements = [
  'ok|okay|thanks|thank you|thx|great|perfect|sure|fine|good|nice|cool|alright|all right|got it|bye|goodbye|hello|hi|hey',
  'danke|vielen dank|tschüss|hallo|guten tag|guten morgen|merci|au revoir|bonjour|gracias|adiós|hola|obrigad[oa]|olá|tchau|bedankt|dank je|doei',
  '(?:yes|no|yeah|nope)(?=\\s{0,3}[,.!])',
]
const acknowledgement = new RegExp(`^\\W{0,9}(?:${acknowledgements.join('|')})(?![\\p{L}\\p{N}'’])`, 'iu')
/** Refers to the turn before it. */
const followUp =
  /^\W{0,9}(?:and|but|or|also|then|what about|how about|und|aber|et|mais|y|pero|mas|maar)\b|\b(?:it|that|this|these|those|they|them|one|ones|das|dies|es|cela|eso|isso|dat)\b/i
/** Asks to go on with the turn before it. */
const continuation =
  /^\W{0,9}(?:go on|continue|proceed|carry on|keep going|more|tell me more|do (?:it|that|so)|weiter)\b/i

/** Share of English stopwords from which a text counts as English; shorter texts may have none. */
const minStopwordShare = 0.2
const minForeignWords = 3
/** Of a longer turn, such as a pasted text with a question, the beginning and the end are searched for. */
const maxEndCharacters = 2_000
/** Share that the turn before counts in a question that refers to it. */
const earlierTurnWeight = 0.5
/** Entries that score less than this share of the best one are not shown. */
const minScoreShare = 0.2
/** Entries compared for one question. */
const maxHits = 64
/**
 * Entries without a word in common with the question are shown if the embedder finds them closer to it than the others,
 * by this share of the distance that is left. It holds for embedders of very different scales.
 */
const minLead = 0.25
/** Larger shares of the entries do not stand out. */
const maxShareAhead = 0.25

/** Returns a turn without phrases that say nothing about its subject; empty if nothing else is left. */
export function findSubject(turn: string): string {
  const ends =
    turn.length <= 2 * maxEndCharacters ? turn : `${turn.slice(0, maxEndCharacters)} ${turn.slice(-maxEndCharacters)}`
  const text = emptyPhrases.reduce((rest, phrase) => rest.replace(phrase, ' '), ends)
  const isEmpty = !isQuestion(turn) && acknowledgement.test(text) && extractTerms(text).length < minStatementTerms
  return isEmpty ? '' : text
}

/** Returns the texts to search for; none if the turn says nothing. */
function searchTextsOf(question: string, recent: readonly Message[]): readonly SearchText[] {
  const text = findSubject(question)
  if (isBlank(text)) return []
  const before = refersBack(question, text) ? findSubjectBefore(question, recent) : undefined
  return before === undefined
    ? [{ text, weight: 1 }]
    : [
        { text, weight: 1 },
        { text: `${text} ${before}`, weight: earlierTurnWeight },
      ]
}

/** True if a turn is short and means something only together with an earlier one. */
const refersBack = (turn: string, subject: string): boolean =>
  ((isQuestion(turn) && followUp.test(subject)) || continuation.test(subject)) &&
  extractTerms(subject).length < minStatementTerms

/** Finds the subject of the newest turn of the user before the question that does not itself refer back. */
function findSubjectBefore(question: string, recent: readonly Message[]): string | undefined {
  for (const { role, content } of recent.toReversed()) {
    // The question may be stored as the newest turn.
    if (role !== 'user' || content === question) continue
    const subject = findSubject(content)
    if (!isBlank(subject) && !refersBack(content, subject)) return subject
  }
  return undefined
}

/**
 * Scores entries by a question, in the index of the memory they belong to. Only a word of the question, or one related
 * to it, makes a match. The confidence or importance of an entry counts as a prior.
 */
export function* scoreByQuestion(
  groups: readonly EntryGroup[],
  question: string,
  recent: readonly Message[],
): ContextQuery<QuestionScores> {
  const scores = new Map<DerivedEntry, number>()
  for (const { from, entries } of groups) {
    if (entries.length === 0) continue
    const byId = new Map(entries.map((entry) => [entry.id, entry]))
    const kinds = [...new Set(entries.map(({ kind }) => kind))]
    for (const { text, weight } of searchTextsOf(question, recent)) {
      const useRelated = mayUseRelatedWords(text)
      const { hits } = yield { search: { text, kinds, limit: maxHits, broad: useRelated }, in: from }
      for (const hit of findMatches(hits, useRelated)) {
        const entry = byId.get(hit.entry.id)
        if (entry === undefined) continue
        const score = weight * hit.score * priorOf(entry)
        if (score > (scores.get(entry) ?? 0)) scores.set(entry, score)
      }
    }
  }
  return scores
}

/**
 * Returns the hits that match by a word or a related word, or clearly by meaning. Words of merely similar meaning count
 * only beside such a hit, because alone they would find something for every question, and only without an embedder.
 */
export function findMatches(hits: readonly IndexHit[], useRelated: boolean): readonly IndexHit[] {
  const cosines = hits.flatMap(({ why }) => why.meaning ?? [])
  const mean = cosines.reduce((sum, cosine) => sum + cosine, 0) / Math.max(1, cosines.length)
  const minCosine = mean + minLead * (1 - mean)
  const standsOut = cosines.filter((cosine) => cosine >= minCosine).length <= maxShareAhead * cosines.length
  const isMatch = ({ why }: IndexHit): boolean =>
    (why.words ?? 0) > 0 ||
    (useRelated && (why.related ?? 0) > 0) ||
    (standsOut && why.meaning !== undefined && why.meaning >= minCosine)
  const useSimilar = useRelated && cosines.length === 0 && hits.some(isMatch)
  return hits.filter((hit) => isMatch(hit) || (useSimilar && (hit.why.similar ?? 0) > 0))
}

/** From 0.5 to 1. Importance counts up to 10, confidence up to 1. */
const priorOf = (entry: DerivedEntry): number =>
  0.5 + Math.min(1, getImportance(entry) / (entry.kind === 'knowledge' ? 1 : 10)) / 2

/** A person's own preferences hold for every answer. */
const isPreference = (entry: DerivedEntry, from: Origin | undefined): entry is Knowledge =>
  from === 'person' && entry.kind === 'knowledge' && entry.category === 'user_preference'

/** Selects the entries that match the question, best first, and the person's preferences after them. */
export function selectMatching(
  entries: readonly DerivedEntry[],
  scores: QuestionScores,
  origins: ReadonlyMap<DerivedEntry, Origin>,
): readonly DerivedEntry[] {
  let bestScore = 0
  for (const score of scores.values()) bestScore = Math.max(bestScore, score)
  const minScore = minScoreShare * bestScore
  const isSelected = (entry: DerivedEntry): boolean =>
    (scores.get(entry) ?? -1) >= minScore || isPreference(entry, origins.get(entry))
  return sortByScore(entries.filter(isSelected), scores)
}

/** Puts the entries that match the question first. The others keep their order. */
export const sortByScore = (entries: readonly DerivedEntry[], scores: QuestionScores): readonly DerivedEntry[] =>
  entries.toSorted((a, b) => (scores.get(b) ?? 0) - (scores.get(a) ?? 0))
