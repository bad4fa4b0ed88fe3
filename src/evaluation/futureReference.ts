import { clipToStart, joinTexts } from './clip.ts'
import type { DatasetMessage } from './dataset.ts'

/** Tokens after the cut in which a reuse counts. */
const lookaheadTokens = 2_000
const identifierPattern =
  /https?:\/\/[^\s"'`<>)\]]+|[\w@~-]*(?:[./][\w@-]+)*\/[\w@.-]+|[a-z]+(?:[A-Z][a-z0-9]+)+|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+|[a-z0-9]+(?:-[a-z0-9]+)+|\b[0-9a-f]{7,40}\b|\b\d{3,}\b/g

/** The rest of longer words is not read: the pattern takes quadratic time. */
const maxWordCharacters = 400

const splitAtSpaces = (text: string): string[] => text.split(/\s+/)
const findIdentifiers = (text: string): Set<string> =>
  new Set(splitAtSpaces(text).flatMap((word) => word.slice(0, maxWordCharacters).match(identifierPattern) ?? []))

/**
 * Identifiers that are reused, each with its occurrences as three words: the word before, its own and the word after.
 */
export type ReusedIdentifiers = ReadonlyMap<string, readonly string[]>

/** A transcript cut before one of its user messages. */
export type Cut = {
  readonly past: readonly DatasetMessage[]
  readonly query: string
  readonly reused: ReusedIdentifiers
}

/** Returns the positions of the user messages at half, at three quarters and at the end of a transcript. */
export function findCutPositions(messages: readonly DatasetMessage[]): number[] {
  const users = findUserPositions(messages)
  const positions = [0.5, 0.75].map((share) => users[Math.floor(share * users.length)]).concat(users.at(-1))
  return [...new Set(positions.filter((position) => position !== undefined))]
}

/** Returns the positions of user messages that have a history. */
export const findUserPositions = (messages: readonly DatasetMessage[]): number[] =>
  messages.flatMap((message, index) => (message.role === 'user' && index > 1 ? [index] : []))

/** Cuts a transcript before a message. Returns undefined if nothing outside the query is reused after it. */
export function cutTranscript(
  messages: readonly DatasetMessage[],
  position: number,
  countTokens: (text: string) => number,
): Cut | undefined {
  const past = messages.slice(0, position)
  const query = messages[position]?.text ?? ''
  const later = findIdentifiers(clipToStart(joinTexts(messages.slice(position + 1)), lookaheadTokens, countTokens))
  const inQuery = findIdentifiers(query)
  const reused = new Map(
    [...findNeighbourhoods(joinTexts(past))].filter(([name]) => later.has(name) && !inQuery.has(name)),
  )
  return reused.size === 0 ? undefined : { past, query, reused }
}

/** Returns every identifier with the words before and after each of its occurrences. */
function findNeighbourhoods(text: string): Map<string, string[]> {
  const words = splitAtSpaces(text)
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

/** Returns the share of reused identifiers that a text contains together with both neighbour words. */
export function scoreReuse(text: string, reused: ReusedIdentifiers): number {
  const flat = ` ${splitAtSpaces(text).join(' ')} `
  let found = 0
  for (const occurrences of reused.values())
    if (occurrences.some((occurrence) => flat.includes(` ${occurrence} `))) found++
  return found / reused.size
}
