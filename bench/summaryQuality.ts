// Summary quality: identifiers that survive in a summary of a tenth of the tokens, and answers to later questions in one
// of a tenth or 30 % of the words.

import type { DatasetConversation, DatasetMessage } from '../src/evaluation/dataset.ts'
import { formatPercent } from '../src/evaluation/statistics.ts'
import { extractTerms } from '../src/text/words.ts'
import { tokenizerNamed } from '../src/tokenizers/tokenizers.ts'
import { summarise } from '../src/upkeep/summarise/summarise.ts'
import type { SummaryMessage } from '../src/upkeep/summarise/summary.ts'
import { findLosses } from '../src/upkeep/verify.ts'
import { createRandom } from './corpus.ts'
import { flags, loadDataset } from './datasets.ts'

const exact = await tokenizerNamed('exact')
const isSelected = (name: string): boolean => flags.only === undefined || name.startsWith(flags.only)
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
const joinTexts = (messages: readonly { readonly text: string }[]): string =>
  messages.map(({ text }) => text).join('\n')
const countWords = (text: string): number => text.match(/\S+/g)?.length ?? 0

const toSummaryMessage = ({ id, at, role, speaker, text }: DatasetMessage, sequence: number): SummaryMessage => ({
  id,
  sequence,
  at: at ?? 0,
  role,
  content: text,
  ...(speaker === role ? {} : { name: speaker }),
})

/**
 * Identifiers, by a pattern independent of the summariser's: URLs, paths, camelCase, snake_case and kebab-case names,
 * hashes, and numbers of four digits or more. Excludes parts of words and remains of tags, escapes and regular
 * expressions.
 */
const identifierPattern =
  /(?<![A-Za-z0-9<\\)\]+*$])(?:https?:\/\/[^\s"'`<>)\]]+|[\w@~-]*(?:[./][\w@-]+)*\/[\w@.-]+|[a-z]+(?:[A-Z][a-z0-9]+)+|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+|[a-z0-9]+(?:-[a-z0-9]+)+|[0-9a-f]{7,40}|\d{4,})(?![A-Za-z0-9])/g
const findIdentifiers = (text: string): Set<string> =>
  new Set((text.match(identifierPattern) ?? []).map((name) => name.replace(/^-+|[.,;:*_}-]+$/g, '')))

/** Counts the names that a text contains as whole words. */
const countContained = (names: ReadonlySet<string>, text: string): number =>
  [...names].filter((name) => containsWholeWord(text, name)).length

function containsWholeWord(text: string, name: string): boolean {
  for (let index = text.indexOf(name); index >= 0; index = text.indexOf(name, index + 1))
    if (
      !/[A-Za-z0-9]{2}/.test(text.charAt(index - 1) + name.charAt(0)) &&
      !/[A-Za-z0-9]{2}/.test(name.charAt(name.length - 1) + text.charAt(index + name.length))
    )
      return true
  return false
}

/** Names that only an assistant or a tool mentions can be generated again. */
const isSaidByPerson = ({ role, speaker }: DatasetMessage): boolean => role === 'user' || speaker !== role

type Survival = {
  readonly names: number
  /** Names in the summary. */
  readonly inSummary: number
  /** Names in the summary or in its ledger of losses. */
  readonly reachable: number
  /** Names in the last tenth of the conversation. */
  readonly inLatest: number
  readonly elapsedMs: number
}

function measureSurvival({ messages }: DatasetConversation): Survival {
  const source = joinTexts(messages)
  const tokens = exact.count(source)
  const all = messages.map(toSummaryMessage)
  const start = performance.now()
  const { text } = summarise(all, undefined, { fits: (candidate) => exact.count(candidate) <= tokens / 10 })
  const elapsedMs = performance.now() - start
  if (exact.count(text) > tokens / 10) throw new Error('the summary is longer than a tenth')
  const lost = findLosses(text, all).map((loss) => loss.text)
  const names = findIdentifiers(joinTexts(messages.filter(isSaidByPerson)).replace(/```[^`]*```/g, ''))
  const inLatest = countContained(names, source.slice(-source.length / 10))
  return {
    names: names.size,
    inSummary: countContained(names, text),
    reachable: countContained(names, [text, ...lost].join('\n')),
    inLatest,
    elapsedMs,
  }
}

async function reportSurvival(): Promise<void> {
  console.log(
    'names and numbers of people in a tenth of the tokens, %: the summary; with the ledger of losses; the last tenth of the conversation',
  )
  const all: Survival[] = []
  for (const name of ['locomo-dev', 'beam-100k', 'transcripts-dev'] as const) {
    if (!isSelected(name)) continue
    const results = (await loadDataset(name)).map(measureSurvival)
    all.push(...results)
    printSurvival(name, results)
  }
  printSurvival('overall', all)
}

function printSurvival(label: string, results: readonly Survival[]): void {
  const share = (of: (result: Survival) => number): string =>
    formatPercent(sum(results.map(of)) / sum(results.map(({ names }) => names)))
  const worst = formatPercent(Math.min(...results.map(({ inSummary, names }) => inSummary / names)))
  const slowest = Math.max(...results.map(({ elapsedMs }) => elapsedMs)).toFixed(0)
  const cells = [
    share(({ inSummary }) => inSummary),
    share(({ reachable }) => reachable),
    share(({ inLatest }) => inLatest),
  ].map((cell) => cell.padStart(6))
  console.log(`  ${label.padEnd(16)} ${cells.join(' ')}   (worst conversation ${worst}, slowest ${slowest} ms)`)
}

type Method = (messages: readonly DatasetMessage[], words: number) => string

/** Selects whole turns by score until the word limit is reached. */
const selectByScore =
  (scores: (messages: readonly DatasetMessage[]) => readonly number[]): Method =>
  (messages, words) => {
    const score = scores(messages)
    let remaining = words
    const selected = [...messages.keys()]
      .sort((one, other) => (score[other] ?? 0) - (score[one] ?? 0))
      .filter((at) => {
        const size = countWords(messages[at]?.text ?? '')
        if (size > remaining) return false
        remaining -= size
        return true
      })
    return joinTexts(selected.sort((one, other) => one - other).flatMap((at) => messages[at] ?? []))
  }

/** Scores turns by term rarity per word, with a bonus for dates, numbers, names and first-person pronouns. */
function scoreByDensity(messages: readonly DatasetMessage[]): readonly number[] {
  const terms = messages.map(({ text }) => new Set(extractTerms(text)))
  const frequency = new Map<string, number>()
  for (const set of terms) for (const term of set) frequency.set(term, (frequency.get(term) ?? 0) + 1)
  return messages.map(({ text }, at) => {
    const rarity = sum([...(terms[at] ?? [])].map((term) => Math.log(1 + messages.length / (frequency.get(term) ?? 1))))
    const bonusPatterns = [
      /\b(?:\w+day|yesterday|tomorrow|ago|weeks?|months?|years?)\b/i,
      /\d/,
      /[a-z,] [A-Z][a-z]/,
      /\b(?:I|my|we|our)\b/i,
    ]
    return (rarity / (countWords(text) + 5)) * (1 + sum(bonusPatterns.map((pattern) => (pattern.test(text) ? 0.5 : 0))))
  })
}

const methods: Readonly<Record<string, Method>> = {
  summarise: (messages, words) => summarise(messages.map(toSummaryMessage), undefined, { words: [0, words] }).text,
  'idf density': selectByScore(scoreByDensity),
  random: selectByScore((messages) => {
    const random = createRandom(7)
    return messages.map(() => random())
  }),
}

async function reportAnswers(): Promise<void> {
  console.log('answers in a share of the words, %: of the words of the answers; of the answers with all their words')
  for (const name of ['locomo-dev', 'beam-100k'] as const) {
    if (!isSelected(name)) continue
    const conversations = await loadDataset(name)
    for (const share of [0.1, 0.3])
      for (const [label, method] of Object.entries(methods)) {
        const found = conversations.flatMap((conversation) => measureAnswers(conversation, method, share))
        const complete = found.filter((part) => part === 1).length / found.length
        const row = [formatPercent(sum(found) / found.length), formatPercent(complete)].map((cell) => cell.padStart(6))
        console.log(`  ${name.padEnd(12)} ${share} ${label.padEnd(12)} ${row.join(' ')}   n=${found.length}`)
      }
  }
}

/** Returns the share of the words of each answer that the text contains, of those that the conversation contains. */
function measureAnswers({ messages, questions }: DatasetConversation, method: Method, share: number): number[] {
  const maxWords = Math.floor(share * sum(messages.map(({ text }) => countWords(text))))
  const text = method(messages, maxWords)
  if (countWords(text) > maxWords) throw new Error('the summary has too many words')
  const [all, shown] = [new Set(extractTerms(joinTexts(messages))), new Set(extractTerms(text))]
  return questions.flatMap(({ answer }) => {
    const terms = [...new Set(extractTerms(answer ?? ''))].filter((term) => all.has(term))
    return terms.length === 0 ? [] : [terms.filter((term) => shown.has(term)).length / terms.length]
  })
}

await reportSurvival()
await reportAnswers()
