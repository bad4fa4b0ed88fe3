import { type Entry, getEntryText } from '../domain/entry.ts'
import { isInterrogative, isQuestion } from '../text/sentences.ts'
import { extractTerms } from '../text/words.ts'

/** An entry that a search found. */
export type SearchResult = {
  readonly key: string
  readonly entry: Entry
  /** The passage of the entry's text that matches best: [start, end). */
  readonly passage?: readonly [start: number, end: number]
  readonly score: number
  /** Contribution of each ranking feature. */
  readonly why: Readonly<Record<string, number>>
  /** Other entries with the same text, which are not results of their own. */
  readonly repeats?: readonly { readonly key: string; readonly id: string }[]
}

/** Share of the score that a question keeps which repeats the one that is asked. */
const repeatedQuestionFactor = 0.25
/** Longer texts are neither questions nor quotations, and repeat each other only letter by letter. */
const maxComparedCharacters = 8_192
/** Share of its terms that such a question has in common with the one that is asked. */
const minSharedTerms = 0.6
/** Characters around a quotation in a reply that is nothing but a quotation. */
const maxFrameCharacters = 40
const minQuotedCharacters = 8

/**
 * Puts results into their final order: statements before questions that only repeat the query, each text once. Applying
 * it to its own results changes nothing.
 */
export function refineResults(
  results: readonly SearchResult[],
  query: string | undefined,
  limit: number,
): readonly SearchResult[] {
  const isComparable = query !== undefined && query.length <= maxComparedCharacters
  const ranked = isComparable ? demoteQuestions(results, query) : results
  return mergeRepeats([...ranked].sort((a, b) => b.score - a.score)).slice(0, limit)
}

/** Lowers the score of messages that ask what is asked now: they cannot be the answer. */
function demoteQuestions(results: readonly SearchResult[], query: string): readonly SearchResult[] {
  const queryTerms = new Set(extractTerms(query))
  const minShare = isQuestion(query) ? minSharedTerms : 1
  const isRepetition = ({ entry, why }: SearchResult): boolean => {
    if (entry.kind !== 'message' || 'repeatedQuestion' in why) return false
    if (entry.content.length > maxComparedCharacters || !isInterrogative(entry.content)) return false
    const terms = [...new Set(extractTerms(entry.content))]
    return terms.filter((term) => queryTerms.has(term)).length >= minShare * terms.length
  }
  return results.map((result) => {
    if (!isRepetition(result)) return result
    const score = result.score * repeatedQuestionFactor
    return { ...result, score, why: { ...result.why, repeatedQuestion: score - result.score } }
  })
}

/** Merges results of one kind with the same text, and replies that only quote another result, into the best of them. */
function mergeRepeats(results: readonly SearchResult[]): readonly SearchResult[] {
  const groups: { result: SearchResult; text: string }[] = []
  for (const result of results) {
    const text = normalize(getEntryText(result.entry))
    const group = groups.find(
      (other) =>
        other.result.entry.kind === result.entry.kind &&
        (other.text === text || quotes(other.result, other.text, text) || quotes(result, text, other.text)),
    )
    if (group === undefined) groups.push({ result, text })
    else if (quotes(group.result, group.text, text)) {
      // The quoted text stands for its quotation, with the better score.
      const { score, why } = group.result
      Object.assign(group, { result: { ...withRepeats(result, group.result), score, why }, text })
    } else group.result = withRepeats(group.result, result)
  }
  return groups.map(({ result }) => result)
}

/** True for a reply that consists of a quotation of `quoted` and a few words. */
const quotes = ({ entry }: SearchResult, text: string, quoted: string): boolean =>
  entry.kind === 'message' &&
  entry.role === 'assistant' &&
  text.length <= maxComparedCharacters &&
  quoted.length >= minQuotedCharacters &&
  text.length > quoted.length &&
  text.length - quoted.length <= maxFrameCharacters &&
  text.includes(quoted)

function withRepeats(result: SearchResult, other: SearchResult): SearchResult {
  const all = [...(result.repeats ?? []), { key: other.key, id: other.entry.id }, ...(other.repeats ?? [])]
  const seen = new Set([`${result.key} ${result.entry.id}`])
  const repeats = all.filter(({ key, id }) => {
    const name = `${key} ${id}`
    if (seen.has(name)) return false
    seen.add(name)
    return true
  })
  return repeats.length === 0 ? result : { ...result, repeats }
}

/** Ignores case, white space and the punctuation at the end of a text that is not long. */
const normalize = (text: string): string =>
  text.length > maxComparedCharacters
    ? text
    : text
        .toLowerCase()
        .replaceAll(/\s+/gu, ' ')
        .trim()
        .replace(/[.!?\u2026\s]{1,20}$/u, '')
