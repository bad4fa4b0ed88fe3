import { isStopword, splitWords, stem } from '../../src/text/words.ts'

/** Words of the list that get a row. */
const maxWords = 40_000
/** Rows shared by all stems outside the list, so that names and rare words take part in training. */
const bucketCount = 2_048
/** Contractions are missing from the word list, which splits them at the apostrophe. */
const contractions = `don't didn't doesn't isn't aren't wasn't weren't won't wouldn't can't couldn't shouldn't haven't
  hasn't hadn't i'm i've i'll i'd you're you've you'll you'd he's she's it's that's what's who's where's there's we're
  we've we'll they're they've they'll let's`.split(/\s+/)

/** Numbers the words of a text as rows of the table: first the stems, then the stopwords, then the hash buckets. */
export type TableRows = {
  readonly stems: readonly string[]
  readonly stopwords: readonly string[]
  readonly count: number
  readonly rowsOf: (text: string) => number[]
}

/** Selects the words that get a row from a list with the most frequent first. */
export const selectWords = (list: readonly string[]): readonly string[] =>
  list.filter((word) => /^[a-z0-9][a-z0-9'.-]*$/.test(word)).slice(0, maxWords)

export function createTableRows(words: readonly string[]): TableRows {
  const stems = [...new Set(words.filter((word) => !isStopword(word)).map(stem))]
  const stopwords = [...new Set([...words.filter(isStopword), ...contractions])]
  const rowOfStem = new Map(stems.map((text, row) => [text, row]))
  const rowOfStopword = new Map(stopwords.map((word, row) => [word, stems.length + row]))
  const firstBucket = stems.length + stopwords.length
  const rowOf = (word: string): number | undefined => {
    if (isStopword(word)) return rowOfStopword.get(word)
    const text = stem(word)
    return rowOfStem.get(text) ?? firstBucket + (hashFnv1a(text) % bucketCount)
  }
  return {
    stems,
    stopwords,
    count: firstBucket + bucketCount,
    rowsOf: (text) => splitWords(text).flatMap((word) => rowOf(word) ?? []),
  }
}

/** Hashes the UTF-16 code units of a text by 32-bit FNV-1a. */
function hashFnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash >>> 0
}
