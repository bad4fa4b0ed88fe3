// Cuts transcripts and scores how many identifiers that are reused after the cut a text contains.
import { tokenizerNamed } from '../src/tokenizers/tokenizers.ts'
import type { BenchMessage } from './datasets.ts'

export const exact = await tokenizerNamed('exact')

/** Tokens after the cut in which a reuse counts. */
const lookaheadTokens = 2_000
const identifierPattern =
  /https?:\/\/[^\s"'`<>)\]]+|[\w@~-]*(?:[./][\w@-]+)*\/[\w@.-]+|[a-z]+(?:[A-Z][a-z0-9]+)+|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+|[a-z0-9]+(?:-[a-z0-9]+)+|\b[0-9a-f]{7,40}\b|\b\d{3,}\b/g

const findIdentifiers = (text: string): Set<string> => new Set(text.match(identifierPattern) ?? [])
const splitWords = (text: string): string[] => text.split(/\s+/)

/**
 * Identifiers that are reused, each with its occurrences as three words: the word before, its own and the word after.
 */
export type ReusedIdentifiers = ReadonlyMap<string, readonly string[]>

/** A transcript cut before one of its user messages. */
export type Cut = { readonly past: readonly BenchMessage[]; readonly query: string; readonly reused: ReusedIdentifiers }

/**
 * Returns the positions of the user messages at half, at three quarters and at the end of a transcript, as the dataset
 * prescribes.
 */
export function findCutPositions(messages: readonly BenchMessage[]): number[] {
  const users = findUserPositions(messages)
  const positions = [0.5, 0.75].map((share) => users[Math.floor(share * users.length)]).concat(users.at(-1))
  return [...new Set(positions.filter((position) => position !== undefined))]
}

/** Returns the positions of user messages that have a history. */
export const findUserPositions = (messages: readonly BenchMessage[]): number[] =>
  messages.flatMap((message, index) => (message.role === 'user' && index > 1 ? [index] : []))

/** Cuts a transcript before a message. Returns undefined if nothing outside the query is reused after it. */
export function cutTranscript(messages: readonly BenchMessage[], position: number): Cut | undefined {
  const past = messages.slice(0, position)
  const query = messages[position]?.text ?? ''
  const later = findIdentifiers(clipToStart(joinTexts(messages.slice(position + 1)), lookaheadTokens))
  const inQuery = findIdentifiers(query)
  const reused = new Map(
    [...findNeighbourhoods(joinTexts(past))].filter(([name]) => later.has(name) && !inQuery.has(name)),
  )
  return reused.size === 0 ? undefined : { past, query, reused }
}

/** Returns every identifier with the words before and after each of its occurrences. */
function findNeighbourhoods(text: string): Map<string, string[]> {
  const words = splitWords(text)
  const found = new Map<string, string[]>()
  words.forEach((word, index) => {
    for (const name of findIdentifiers(word)) {
      const list = found.get(name) ?? []
      list.push(`${words[index - 1] ?? ''} ${word} ${words[index + 1] ?? ''}`.trim())
      found.set(name, list)
    }
  })
  return found
}

/** Clips a text to its first tokens. */
function clipToStart(text: string, tokens: number): string {
  let cut = text.slice(0, tokens * 6)
  while (exact.count(cut) > tokens) cut = cut.slice(0, Math.floor(cut.length * 0.95))
  return cut
}

/** Clips a text to its last tokens: the baseline that memory is compared with. */
export function clipToEnd(text: string, tokens: number): string {
  let cut = text.slice(-tokens * 6)
  while (exact.count(cut) > tokens) cut = cut.slice(Math.ceil(cut.length * 0.03))
  return cut
}

export const joinTexts = (messages: readonly BenchMessage[]): string =>
  messages.map((message) => message.text).join('\n')

/** Returns the share of reused identifiers that a text contains together with both neighbour words. */
export function scoreText(text: string, reused: ReusedIdentifiers): number {
  const flat = ` ${splitWords(text).join(' ')} `
  let found = 0
  for (const occurrences of reused.values())
    if (occurrences.some((occurrence) => flat.includes(` ${occurrence} `))) found++
  return found / reused.size
}
