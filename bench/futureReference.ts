// What the next tokens of a transcript use again of what came before, and how much of that a context holds.
import { tokenizerNamed } from '../src/tokenizers/tokenizers.ts'
import type { BenchMessage } from './data.ts'

export const exact = await tokenizerNamed('exact')

/** What comes back counts only in so many tokens after the cut. */
const ahead = 2_000
const identifier =
  /https?:\/\/[^\s"'`<>)\]]+|[\w@~-]*(?:[./][\w@-]+)*\/[\w@.-]+|[a-z]+(?:[A-Z][a-z0-9]+)+|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+|[a-z0-9]+(?:-[a-z0-9]+)+|\b[0-9a-f]{7,40}\b|\b\d{3,}\b/g

const namesIn = (text: string): Set<string> => new Set(text.match(identifier) ?? [])
const wordsOf = (text: string): string[] => text.split(/\s+/)

/** Names that come back, each with the places where it stood, as three words. */
export type Wanted = ReadonlyMap<string, readonly string[]>

/** A transcript cut before one of its user messages. */
export type Cut = { readonly past: readonly BenchMessage[]; readonly query: string; readonly wanted: Wanted }

/** The places of the user messages before which the data's description cuts: at half, at three quarters and the last. */
export function placesOf(messages: readonly BenchMessage[]): number[] {
  const users = usersIn(messages)
  const places = [0.5, 0.75].map((part) => users[Math.floor(part * users.length)]).concat(users.at(-1))
  return [...new Set(places.filter((place) => place !== undefined))]
}

/** The user messages that have something before them. */
export const usersIn = (messages: readonly BenchMessage[]): number[] =>
  messages.flatMap((message, at) => (message.role === 'user' && at > 1 ? [at] : []))

/** What comes back after the cut and was not asked for, or undefined if nothing does. */
export function cutAt(messages: readonly BenchMessage[], place: number): Cut | undefined {
  const past = messages.slice(0, place)
  const query = messages[place]?.text ?? ''
  const later = namesIn(beginning(joined(messages.slice(place + 1)), ahead))
  const asked = namesIn(query)
  const wanted = new Map([...neighbourhoods(joined(past))].filter(([name]) => later.has(name) && !asked.has(name)))
  return wanted.size === 0 ? undefined : { past, query, wanted }
}

/** Every name with the words before and after it, for each place where it stands. */
function neighbourhoods(text: string): Map<string, string[]> {
  const words = wordsOf(text)
  const found = new Map<string, string[]>()
  words.forEach((word, at) => {
    for (const name of namesIn(word)) {
      const list = found.get(name) ?? []
      list.push(`${words[at - 1] ?? ''} ${word} ${words[at + 1] ?? ''}`.trim())
      found.set(name, list)
    }
  })
  return found
}

/** The first part of the text in at most so many tokens. */
function beginning(text: string, tokens: number): string {
  let cut = text.slice(0, tokens * 6)
  while (exact.count(cut) > tokens) cut = cut.slice(0, Math.floor(cut.length * 0.95))
  return cut
}

/** The last part of the text in at most so many tokens: the clipped window that memory is measured against. */
export function ending(text: string, tokens: number): string {
  let cut = text.slice(-tokens * 6)
  while (exact.count(cut) > tokens) cut = cut.slice(Math.ceil(cut.length * 0.03))
  return cut
}

export const joined = (messages: readonly BenchMessage[]): string => messages.map((message) => message.text).join('\n')

/** The share of what comes back that a text holds together with both neighbours. */
export function score(text: string, wanted: Wanted): number {
  const flat = ` ${wordsOf(text).join(' ')} `
  let found = 0
  for (const places of wanted.values()) if (places.some((place) => flat.includes(` ${place} `))) found++
  return found / wanted.size
}
