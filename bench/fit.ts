// Fits the weights of the ranking on all development sets together: coordinate ascent on the mean of evidence by turn
// and by word over sets and budgets. Cross-validates by conversation: for each fold the weights are fitted on the
// others. Usage: npm run bench -- fit [--data DIR] [--rounds N] [--folds N] [--lexical]
import { parseArgs } from 'node:util'
import { runSync } from '../src/domain/work.ts'
import type { DatasetConversation } from '../src/evaluation/dataset.ts'
import { weighFeatures } from '../src/search/features.ts'
import { parseQuery } from '../src/search/query.ts'
import { Ranker } from '../src/search/ranking.ts'
import {
  type FeatureName,
  featureNames,
  lexicalWeights,
  type RankingWeights,
  semanticWeights,
} from '../src/search/rankingWeights.ts'
import { toIndexedText } from '../src/search/scopeIndex.ts'
import { wordTable } from '../src/stores/textAnalysis.ts'
import { splitPassages } from '../src/text/passages.ts'
import { tokenizerNamed } from '../src/tokenizers/tokenizers.ts'
import { loadDataset } from './datasets.ts'

/** Sets, their budgets and their weight in the objective: RealMem has 18 questions only. */
const sets = {
  'locomo-dev': { budgets: [500, 1_000, 2_000, 4_000], weight: 1 },
  'beam-100k': { budgets: [1_000, 2_000, 4_000, 8_000], weight: 1 },
  'friends-dev': { budgets: [500, 1_000, 2_000, 4_000], weight: 1 },
  'qmsum-dev': { budgets: [500, 1_000, 2_000, 4_000], weight: 1 },
  'realmem-dev': { budgets: [500, 1_000, 2_000, 4_000], weight: 0.3 },
} as const
type SetName = keyof typeof sets

/** Shares of the budget that a context spends on other things, and tokens of a date line. */
const otherShare = 0.12
const dateLineTokens = 7
const maxMisses = 400

const { values: options } = parseArgs({
  options: {
    data: { type: 'string' },
    rounds: { type: 'string', default: '2' },
    folds: { type: 'string', default: '0' },
    lexical: { type: 'boolean', default: false },
  },
  strict: false,
  allowPositionals: true,
})

type Passage = { readonly message: number; readonly cost: number; readonly words: number; readonly day: number }
type Question = {
  /** One column per feature. */
  readonly features: readonly Float32Array[]
  readonly namesSpeaker: Uint8Array
  /** Messages that the answer needs. */
  readonly evidence: readonly number[]
}
type Prepared = {
  readonly set: SetName
  readonly fold: number
  readonly passages: readonly Passage[]
  readonly isUser: Uint8Array
  readonly isLong: Uint8Array
  readonly questions: readonly Question[]
}

const exact = await tokenizerNamed('exact')
const formatPercent = (value: number): string => (100 * value).toFixed(1)
const countWords = (text: string): number => text.match(/[\p{L}\p{N}]+/gu)?.length ?? 0
const oneHot = (name: FeatureName): Record<FeatureName, number> =>
  Object.fromEntries(featureNames.map((other) => [other, other === name ? 1 : 0])) as Record<FeatureName, number>

const table = options.lexical ? undefined : wordTable()

/** Indexes a conversation as a store does and computes the features of its questions. */
function prepare(set: SetName, { messages, questions = [] }: DatasetConversation, fold: number): Prepared {
  const ranker = new Ranker(table)
  const passages: Passage[] = []
  const byId = new Map(messages.map(({ id }, number) => [id, number]))
  for (const [number, { text, role, speaker, at }] of messages.entries()) {
    const name = speaker === role ? undefined : speaker
    const lineTokens = exact.count(`${speaker}: ${text}\n`)
    const message = { sequence: number + 1, at: at ?? 0, role, content: text, lineTokens }
    ranker.add(toIndexedText(name === undefined ? message : { ...message, name }))
    const ranges = text.trim() === '' ? [] : splitPassages(text)
    for (const [start, end] of ranges)
      passages.push({
        message: number,
        cost: Math.ceil((lineTokens * (end - start)) / text.length) + (ranges.length > 1 ? 4 : 0),
        words: countWords(text.slice(start, end)),
        day: Math.floor((at ?? 0) / 86_400_000),
      })
  }
  const isLong = Uint8Array.from(passages, ({ message }, row) =>
    Number(passages[row - 1]?.message === message || passages[row + 1]?.message === message),
  )
  const isUser = Uint8Array.from(passages, ({ message }) => Number(messages[message]?.speaker === 'user'))
  return {
    set,
    fold,
    passages,
    isUser,
    isLong,
    questions: questions.flatMap(({ query, evidence }) => {
      const found = [...new Set(evidence.flatMap((id) => byId.get(id) ?? []))]
      return found.length === 0 ? [] : [{ ...extract(ranker, query, passages.length), evidence: found }]
    }),
  }
}

function extract(ranker: Ranker, text: string, rows: number): Omit<Question, 'evidence'> {
  const query = parseQuery(text)
  const features = runSync(ranker.extractInSteps(query, rows))
  const columns = featureNames.map((name) => {
    const column = new Float32Array(rows)
    weighFeatures(features, ranker.index, query, oneHot(name), rows, column)
    return column
  })
  const names = [...ranker.index.names.keys()]
  const namesSpeaker = Uint8Array.from({ length: rows }, (_, row) => {
    const message = ranker.index.passages.messages.values[row] as number
    const name = names[ranker.index.messages.speakers.values[message] as number] ?? ''
    return Number(name !== '' && query.stems.has(name))
  })
  return { features: columns, namesSpeaker }
}

type Score = { turn: number; word: number; count: number }
type Scores = Map<string, Score>

/** Ranks the passages of every question, packs them greedily into each budget and counts the evidence. */
function score(conversations: readonly Prepared[], weights: RankingWeights): Scores {
  const scores: Scores = new Map()
  for (const conversation of conversations) {
    const { passages, isUser, isLong, set } = conversation
    const divisors = passages.map(({ cost }) => (cost + weights.baseTokens) ** weights.density)
    const wordsOf = new Map<number, number>()
    for (const { message, words } of passages) wordsOf.set(message, (wordsOf.get(message) ?? 0) + words)
    for (const { features, namesSpeaker, evidence } of conversation.questions) {
      const values = new Float32Array(passages.length)
      featureNames.forEach((name, index) => {
        const weight = weights.features[name]
        const column = features[index] as Float32Array
        if (weight !== 0)
          for (let row = 0; row < values.length; row++)
            values[row] = (values[row] as number) + weight * (column[row] as number)
      })
      for (let row = 0; row < values.length; row++)
        values[row] =
          ((values[row] as number) *
            (namesSpeaker[row] ? weights.namedSpeaker : 1) *
            (isUser[row] ? weights.user : 1) *
            (isLong[row] ? weights.longMessage : 1)) /
          (divisors[row] as number)
      const order = [...passages.keys()].sort((a, b) => (values[b] as number) - (values[a] as number))
      for (const budget of sets[set].budgets) {
        const kept = pack(order, passages, budget * (1 - otherShare))
        const total = getScore(scores, `${set} ${budget}`)
        const [turn, word] = countEvidence(evidence, kept, wordsOf)
        total.turn += turn
        total.word += word
        total.count++
      }
    }
  }
  return scores
}

function getScore(scores: Scores, name: string): Score {
  const score = scores.get(name) ?? { turn: 0, word: 0, count: 0 }
  scores.set(name, score)
  return score
}

/** Returns the words shown of each message. */
function pack(order: readonly number[], passages: readonly Passage[], budget: number): Map<number, number> {
  const shown = new Map<number, number>()
  const days = new Set<number>()
  let [used, misses] = [0, 0]
  for (const row of order) {
    const { message, cost, words, day } = passages[row] as Passage
    const total = cost + (days.has(day) ? 0 : dateLineTokens)
    if (used + total > budget) {
      if (++misses > maxMisses) break
      continue
    }
    used += total
    days.add(day)
    shown.set(message, (shown.get(message) ?? 0) + words)
  }
  return shown
}

/** Returns the shares of the evidence that is shown, by turn (at least 90 % of its words) and by word. */
function countEvidence(
  evidence: readonly number[],
  shown: ReadonlyMap<number, number>,
  wordsOf: ReadonlyMap<number, number>,
): [turn: number, word: number] {
  let [turns, words, all] = [0, 0, 0]
  for (const message of evidence) {
    const [has, total] = [shown.get(message) ?? 0, wordsOf.get(message) ?? 0]
    if (has >= 0.9 * total) turns++
    words += has
    all += total
  }
  return [turns / evidence.length, words / Math.max(1, all)]
}

/** Mean over sets and budgets, by turn and by word in equal parts. */
function objective(conversations: readonly Prepared[], weights: RankingWeights): number {
  let [sum, total] = [0, 0]
  for (const [name, { turn, word, count }] of score(conversations, weights)) {
    const { weight } = sets[name.slice(0, name.lastIndexOf(' ')) as SetName]
    sum += (weight * (0.55 * turn + 0.45 * word)) / count
    total += weight
  }
  return (100 * sum) / total
}

/** Smaller gains are noise. */
const minGain = 0.02
const factors = {
  namedSpeaker: [-0.15, 0.15],
  user: [-0.15, 0.15],
  longMessage: [-0.1, 0.1],
  density: [-0.05, 0.05],
  baseTokens: [-8, 12],
} as const

/** Improves one weight after the other, for a number of rounds. */
function fit(conversations: readonly Prepared[], start: RankingWeights, rounds: number): RankingWeights {
  let best = start
  let highest = objective(conversations, best)
  const attempt = (candidate: RankingWeights): void => {
    const value = objective(conversations, candidate)
    if (value > highest + minGain) [best, highest] = [candidate, value]
  }
  for (let round = 0; round < rounds; round++) {
    for (const [name, steps] of Object.entries(factors) as [keyof typeof factors, readonly number[]][]) {
      const before = best[name]
      for (const step of steps) attempt({ ...best, [name]: round3(before + step) })
    }
    for (const name of featureNames) {
      const before = best.features[name]
      if (options.lexical && /^(meaning|topic)/.test(name)) continue
      for (const value of before === 0 ? [0.06, 0.15] : [before * 0.6, before * 0.8, before * 1.25, before * 1.7, 0])
        attempt({ ...best, features: { ...best.features, [name]: round3(value) } })
    }
    console.error(`  round ${round + 1}: ${highest.toFixed(2)}`)
  }
  return best
}

const round3 = (value: number): number => Math.round(value * 1_000) / 1_000

function print(title: string, scores: Scores): void {
  console.log(title)
  for (const [set, { budgets }] of Object.entries(sets)) {
    const list = budgets.map((budget) => scores.get(`${set} ${budget}`) as Score)
    const [turn, word] = (['turn', 'word'] as const).map((kind) =>
      list.map((item) => formatPercent(item[kind] / item.count)).join('/'),
    )
    console.log(`  ${set.padEnd(12)} by turn ${turn}   by word ${word}   n=${list[0]?.count}`)
  }
}

const [rounds, folds] = [Number(options.rounds), Number(options.folds)]
const conversations: Prepared[] = []
for (const set of Object.keys(sets) as SetName[]) {
  const data = await loadDataset(set)
  data.forEach((conversation, number) => {
    conversations.push(prepare(set, conversation, folds === 0 ? 0 : number % folds))
  })
  console.error(`prepared ${set}`)
}
const start = options.lexical ? lexicalWeights : semanticWeights
print('shipped weights', score(conversations, start))
if (rounds > 0) {
  const fitted = fit(conversations, start, rounds)
  print('fitted weights', score(conversations, fitted))
  console.log(JSON.stringify(fitted, undefined, 2))
}
if (folds > 1) {
  const held: Scores = new Map()
  for (let fold = 0; fold < folds; fold++) {
    const weights = fit(
      conversations.filter((conversation) => conversation.fold !== fold),
      start,
      Math.max(1, rounds),
    )
    for (const [name, part] of score(
      conversations.filter((conversation) => conversation.fold === fold),
      weights,
    )) {
      const total = getScore(held, name)
      total.turn += part.turn
      total.word += part.word
      total.count += part.count
    }
  }
  print(`cross-validated by conversation, ${folds} folds`, held)
}
