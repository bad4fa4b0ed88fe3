// Future reference: which of the names, paths and numbers that the next 2,000 tokens use again does a context hold, each with its neighbours?
import { openMemory } from '../src/index.ts'
import { tokenizerNamed } from '../src/models/tokenizers.ts'
import { type BenchMessage, incoming, load, percent } from './data.ts'

const budgets = [1_000, 2_000, 4_000]
const exact = await tokenizerNamed('exact')
const identifier =
  /https?:\/\/[^\s"'`<>)\]]+|[\w@~-]*(?:[./][\w@-]+)*\/[\w@.-]+|[a-z]+(?:[A-Z][a-z0-9]+)+|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+|[a-z0-9]+(?:-[a-z0-9]+)+|\b[0-9a-f]{7,40}\b|\b\d{3,}\b/g

const namesIn = (text: string): Set<string> => new Set(text.match(identifier) ?? [])
const wordsOf = (text: string): string[] => text.split(/\s+/)

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

function ending(text: string, tokens: number): string {
  let cut = text.slice(-tokens * 6)
  while (exact.count(cut) > tokens) cut = cut.slice(Math.ceil(cut.length * 0.03))
  return cut
}

const joined = (messages: readonly BenchMessage[]): string => messages.map((message) => message.text).join('\n')

function score(text: string, wanted: ReadonlyMap<string, readonly string[]>): number {
  const flat = ` ${wordsOf(text).join(' ')} `
  let found = 0
  for (const places of wanted.values()) if (places.some((place) => flat.includes(` ${place} `))) found++
  return found / wanted.size
}

const totals = budgets.map(() => ({ ours: 0, window: 0 }))
let cases = 0
for (const { messages } of load('transcripts-dev')) {
  const users = messages.flatMap((message, at) => (message.role === 'user' && at > 1 ? [at] : []))
  const cuts = new Set([0.5, 0.75].map((part) => users[Math.floor(part * users.length)]).concat(users.at(-1)))
  for (const cut of cuts) {
    if (cut === undefined) continue
    const past = messages.slice(0, cut)
    const query = (messages[cut] as BenchMessage).text
    const later = namesIn(beginning(joined(messages.slice(cut + 1)), 2_000))
    const asked = namesIn(query)
    const wanted = new Map([...neighbourhoods(joined(past))].filter(([name]) => later.has(name) && !asked.has(name)))
    if (wanted.size === 0) continue
    await using memory = await openMemory()
    await memory.append('bench:one', past.map(incoming))
    await memory.upkeep.settled()
    cases++
    for (const [at, budget] of budgets.entries()) {
      const { text } = await memory.context('bench:one', { query, budget })
      const total = totals[at] as (typeof totals)[number]
      total.ours += score(text, wanted)
      total.window += score(ending(joined(past), budget), wanted)
    }
  }
}
console.log(`transcripts-dev: future reference, % of ${cases} cuts; thread against the last N tokens, clipped`)
for (const [at, budget] of budgets.entries())
  console.log(`  ${budget}: ${percent((totals[at]?.ours ?? 0) / cases)} against ${percent((totals[at]?.window ?? 0) / cases)}`)
