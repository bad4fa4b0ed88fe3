import { splitWords, stem } from '../../text/words.ts'
import { tokenizerNamed } from '../../tokenizers/tokenizers.ts'
import type { DatasetMessage } from '../dataset.ts'
import type { MemorySystem, Transcript } from '../system.ts'

/** BM25 constants, and the share of a neighbour's score that is added. */
const weights = { saturation: 1.2, length: 0.5, previous: 0.3, next: 0.2, date: 0.8 }

const formatMonth = new Intl.DateTimeFormat('en', { month: 'long', timeZone: 'UTC' })
const formatDay = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' })
const monthWords = new Set(
  Array.from({ length: 12 }, (_, month) => formatMonth.format(Date.UTC(2000, month)).toLowerCase()),
)

const dateTermsOf = (at: number | null): string[] =>
  at === null ? [] : [`date:${formatMonth.format(at).toLowerCase()}`, `date:${new Date(at).getUTCFullYear()}`]

function queryTermsOf(query: string): Map<string, number> {
  const terms = new Map(splitWords(query).map((word) => [stem(word), 1]))
  for (const word of splitWords(query))
    if (monthWords.has(word) || /^(19|20)\d\d$/.test(word)) terms.set(`date:${word}`, weights.date)
  return terms
}

type Ranking = (query: string) => Float64Array

/** Creates the BM25 ranking of messages, each raised by its neighbours. */
function createRanking(messages: readonly DatasetMessage[]): Ranking {
  const postings = new Map<string, Map<number, number>>()
  const lengths = messages.map(({ speaker, text, at }, row) => {
    const terms = splitWords(`${speaker}: ${text}`).map(stem)
    for (const term of [...terms, ...dateTermsOf(at)]) {
      const posting = postings.get(term) ?? new Map<number, number>()
      posting.set(row, (posting.get(row) ?? 0) + 1)
      postings.set(term, posting)
    }
    return terms.length
  })
  const averageLength = Math.max(1, lengths.reduce((sum, length) => sum + length, 0) / messages.length)
  return (query) => {
    const own = new Float64Array(messages.length)
    for (const [term, weight] of queryTermsOf(query)) {
      const posting = postings.get(term)
      if (posting === undefined) continue
      const idf = Math.log(1 + (messages.length - posting.size + 0.5) / (posting.size + 0.5))
      for (const [row, frequency] of posting) {
        const relativeLength = (lengths[row] as number) / averageLength
        const damping = weights.saturation * (1 - weights.length + weights.length * relativeLength)
        own[row] = (own[row] as number) + (weight * idf * frequency * (weights.saturation + 1)) / (frequency + damping)
      }
    }
    return own.map((score, row) => score + weights.previous * (own[row - 1] ?? 0) + weights.next * (own[row + 1] ?? 0))
  }
}

type Line = { readonly text: string; readonly tokens: number; readonly day: string }

/** Packs the best lines into the budget and returns them in reading order, with a line per day. */
function pack(lines: readonly Line[], order: readonly number[], budget: number, count: (text: string) => number) {
  const chosen: number[] = []
  const days = new Set<string>()
  let spent = 0
  for (const row of order) {
    const { tokens, day } = lines[row] as Line
    const cost = tokens + (day === '' || days.has(day) ? 0 : count(`${day}\n`))
    if (spent + cost > budget) continue
    spent += cost
    chosen.push(row)
    days.add(day)
  }
  let text = renderLines(lines, chosen)
  // Lines counted one by one may have fewer tokens than the joined text.
  while (count(text) > budget) {
    chosen.pop()
    text = renderLines(lines, chosen)
  }
  return text
}

function renderLines(lines: readonly Line[], rows: readonly number[]): string {
  let [text, shownDay] = ['', '']
  for (const row of rows.toSorted((a, b) => a - b)) {
    const { text: line, day } = lines[row] as Line
    if (day !== '' && day !== shownDay) text += `${day}\n`
    shownDay = day
    text += line
  }
  return text
}

async function createIndex({ messages }: Transcript): Promise<(query: string, budget: number) => string> {
  const { count } = await tokenizerNamed('exact')
  const lines = messages.map(({ speaker, text, at }): Line => {
    const line = `${speaker}: ${text}\n`
    return { text: line, tokens: count(line), day: at === null ? '' : formatDay.format(at) }
  })
  const rank = createRanking(messages)
  return (query, budget) => {
    const scores = rank(query)
    const order = [...scores.keys()]
      .filter((row) => (scores[row] as number) > 0)
      .sort((a, b) => (scores[b] as number) - (scores[a] as number))
    return pack(lines, order, budget, count)
  }
}

/**
 * Baseline: BM25 over whole messages with their speakers, with Porter stems, the month and year of a message as terms,
 * and a share of the neighbours' scores. Packs the best messages in reading order, with a line per day.
 */
export const bm25System: MemorySystem = {
  name: 'bm25',
  async open(conversation) {
    const search = await createIndex(conversation)
    return { context: async (query, budget) => search(query, budget), close: async () => undefined }
  },
  async openShared(conversations) {
    const indexes = new Map<string, (query: string, budget: number) => string>()
    for (const conversation of conversations) indexes.set(conversation.id, await createIndex(conversation))
    return {
      context: async (id, query, budget) => indexes.get(id)?.(query, budget) ?? '',
      close: async () => undefined,
    }
  },
}
