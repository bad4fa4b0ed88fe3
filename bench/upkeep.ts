// Upkeep: what the built-in summariser keeps of names and numbers in a tenth of the tokens, and of evidence in 30 % of the words.

import { termsOf } from '../src/text/words.ts'
import { tokenizerNamed } from '../src/tokenizers/tokenizers.ts'
import { summarise } from '../src/upkeep/summarise/summarise.ts'
import type { Told } from '../src/upkeep/summarise/summary.ts'
import { lossesOf } from '../src/upkeep/verify.ts'
import { seeded } from './corpus.ts'
import { type BenchMessage, type Conversation, flags, load, percent } from './data.ts'

const exact = await tokenizerNamed('exact')
const asked = (name: string): boolean => flags.only === undefined || name.startsWith(flags.only)
const sum = (figures: readonly number[]): number => figures.reduce((total, figure) => total + figure, 0)
const joined = (messages: readonly { readonly text: string }[]): string => messages.map(({ text }) => text).join('\n')
const countWords = (text: string): number => text.match(/\S+/g)?.length ?? 0

const told = ({ id, at, role, speaker, text }: BenchMessage, sequence: number): Told => ({
  id,
  sequence,
  at: at ?? 0,
  role,
  content: text,
  ...(speaker === role ? {} : { name: speaker }),
})

/**
 * What counts, by a pattern that is not the summariser's: URLs, paths, camelCase, snake_case and kebab-case names, hashes,
 * numbers of four digits or more; not a part of a word, nor what is left of a tag, an escape or a regular expression.
 */
const identifier =
  /(?<![A-Za-z0-9<\\)\]+*$])(?:https?:\/\/[^\s"'`<>)\]]+|[\w@~-]*(?:[./][\w@-]+)*\/[\w@.-]+|[a-z]+(?:[A-Z][a-z0-9]+)+|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+|[a-z0-9]+(?:-[a-z0-9]+)+|[0-9a-f]{7,40}|\d{4,})(?![A-Za-z0-9])/g
const namesIn = (text: string): Set<string> =>
  new Set((text.match(identifier) ?? []).map((name) => name.replace(/^-+|[.,;:*_}-]+$/g, '')))

/** How many of the names are in a text, not as part of a longer word. */
const held = (names: ReadonlySet<string>, text: string): number =>
  [...names].filter((name) => stands(text, name)).length

function stands(text: string, name: string): boolean {
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1))
    if (
      !/[A-Za-z0-9]{2}/.test(text.charAt(at - 1) + name.charAt(0)) &&
      !/[A-Za-z0-9]{2}/.test(name.charAt(name.length - 1) + text.charAt(at + name.length))
    )
      return true
  return false
}

type Survival = {
  readonly names: number
  readonly kept: number
  readonly reachable: number
  readonly latest: number
  readonly took: number
}

function survivalOf({ messages }: Conversation): Survival {
  const source = joined(messages)
  const tokens = exact.count(source)
  const all = messages.map(told)
  const start = performance.now()
  const { text } = summarise(all, undefined, { fits: (candidate) => exact.count(candidate) <= tokens / 10 })
  const took = performance.now() - start
  if (exact.count(text) > tokens / 10) throw new Error('the summary is longer than a tenth')
  const lost = lossesOf(text, all).map((loss) => loss.text)
  const names = namesIn(source)
  const latest = held(names, source.slice(-source.length / 10))
  return {
    names: names.size,
    kept: held(names, text),
    reachable: held(names, [text, ...lost].join('\n')),
    latest,
    took,
  }
}

function survival(): void {
  console.log(
    'names and numbers in a tenth of the tokens, %: the summary; with the ledger of losses; the last tenth of the conversation',
  )
  const all: Survival[] = []
  for (const name of ['locomo-dev', 'beam-100k', 'transcripts-dev'] as const) {
    if (!asked(name)) continue
    const results = load(name).map(survivalOf)
    all.push(...results)
    printSurvival(name, results)
  }
  printSurvival('overall', all)
}

function printSurvival(label: string, results: readonly Survival[]): void {
  const share = (of: (result: Survival) => number): string =>
    percent(sum(results.map(of)) / sum(results.map(({ names }) => names)))
  const least = percent(Math.min(...results.map(({ kept, names }) => kept / names)))
  const slowest = Math.max(...results.map(({ took }) => took)).toFixed(0)
  const cells = [share(({ kept }) => kept), share(({ reachable }) => reachable), share(({ latest }) => latest)].map(
    (cell) => cell.padStart(6),
  )
  console.log(`  ${label.padEnd(16)} ${cells.join(' ')}   (worst conversation ${least}, slowest ${slowest} ms)`)
}

const normal = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
const gramsOf = (words: readonly string[]): string[] => words.slice(4).map((_, at) => words.slice(at, at + 5).join(' '))

/** Whether at least 90 % of the word 5-grams of a turn occur in a text; of a shorter turn, all of it. */
function presenceIn(text: string): (turn: string) => boolean {
  const words = normal(text)
  const [flat, grams] = [` ${words.join(' ')} `, new Set(gramsOf(words))]
  return (turn) => {
    const own = normal(turn)
    if (own.length < 5) return flat.includes(` ${own.join(' ')} `)
    const wanted = gramsOf(own)
    return wanted.filter((gram) => grams.has(gram)).length >= 0.9 * wanted.length
  }
}

type Method = (messages: readonly BenchMessage[], words: number) => string

/** Whole turns in the order of their scores, as long as there is room. */
const byScore =
  (scores: (messages: readonly BenchMessage[]) => readonly number[]): Method =>
  (messages, words) => {
    const score = scores(messages)
    let left = words
    const kept = [...messages.keys()]
      .sort((one, other) => (score[other] ?? 0) - (score[one] ?? 0))
      .filter((at) => {
        const size = countWords(messages[at]?.text ?? '')
        if (size > left) return false
        left -= size
        return true
      })
    return joined(kept.sort((one, other) => one - other).flatMap((at) => messages[at] ?? []))
  }

/** The plain way: rare words for each word of the turn, and some weight on days, numbers, names and the speaker. */
function density(messages: readonly BenchMessage[]): readonly number[] {
  const terms = messages.map(({ text }) => new Set(termsOf(text)))
  const frequency = new Map<string, number>()
  for (const set of terms) for (const term of set) frequency.set(term, (frequency.get(term) ?? 0) + 1)
  return messages.map(({ text }, at) => {
    const rarity = sum([...(terms[at] ?? [])].map((term) => Math.log(1 + messages.length / (frequency.get(term) ?? 1))))
    const marks = [
      /\b(?:\w+day|yesterday|tomorrow|ago|weeks?|months?|years?)\b/i,
      /\d/,
      /[a-z,] [A-Z][a-z]/,
      /\b(?:I|my|we|our)\b/i,
    ]
    return (rarity / (countWords(text) + 5)) * (1 + sum(marks.map((mark) => (mark.test(text) ? 0.5 : 0))))
  })
}

const methods: Readonly<Record<string, Method>> = {
  summarise: (messages, words) => summarise(messages.map(told), undefined, { words: [0, words] }).text,
  'idf density': byScore(density),
  random: byScore((messages) => {
    const random = seeded(7)
    return messages.map(() => random())
  }),
}

function evidence(): void {
  console.log('evidence in 30 % of the words, %: of the turns that any question needs; mean over the questions')
  for (const name of ['locomo-dev', 'beam-100k'] as const) {
    if (!asked(name)) continue
    const conversations = load(name)
    for (const [label, method] of Object.entries(methods)) {
      const shares = conversations.map((conversation) => evidenceIn(conversation, method))
      const turns = sum(shares.map(({ present }) => present)) / sum(shares.map(({ needed }) => needed))
      const questions = shares.flatMap(({ recalls }) => recalls)
      console.log(
        `  ${name.padEnd(12)} ${label.padEnd(12)} ${percent(turns).padStart(6)} ${percent(sum(questions) / questions.length).padStart(6)}   n=${questions.length}`,
      )
    }
  }
}

function evidenceIn(
  { messages, questions = [] }: Conversation,
  method: Method,
): { needed: number; present: number; recalls: number[] } {
  const most = Math.floor(0.3 * sum(messages.map(({ text }) => countWords(text))))
  const text = method(messages, most)
  if (countWords(text) > most) throw new Error('the summary has too many words')
  const isPresent = presenceIn(text)
  const byId = new Map(messages.map((message) => [message.id, message.text]))
  const needed = questions.map(({ evidence }) => evidence.filter((id) => byId.has(id))).filter((ids) => ids.length > 0)
  const found = new Map([...new Set(needed.flat())].map((id) => [id, isPresent(byId.get(id) ?? '')]))
  const recalls = needed.map((ids) => ids.filter((id) => found.get(id)).length / ids.length)
  return { needed: found.size, present: [...found.values()].filter(Boolean).length, recalls }
}

survival()
evidence()
