import type { Tokens } from '../domain/entry.ts'
import type { Work } from '../domain/work.ts'
import { extractTerms } from '../text/words.ts'
import type { ConversationLine } from './conversationLines.ts'

/** Weights of the selection. `npm run bench -- selection` measures them and checks them by cross-validation. */
export const selectionWeights = {
  /** Share of the budget for the newest lines. */
  tailShare: 0.3,
  /** Distance from the end, in tokens, at which a name last used there is worth half. */
  halfLifeTokens: 2_000,
  /** Growth of the value of a name with the logarithm of the number of lines that use it. */
  frequency: 0.7,
  /** Share of its value that a name has at the edge of a line whose neighbour is not shown. */
  edgeCredit: 0.3,
  /** Value of a plain word relative to a name, if at most `maxRareLines` lines use it. */
  rareWord: 0.05,
  maxRareLines: 12,
  /** Increase of the value of a line that matches the question best, and of all lines of its message. */
  lineMatch: 1,
  messageMatch: 0.5,
  /** Share of the budget for the lines that match the question best, and their minimum match relative to the best. */
  matchShare: 0.1,
  minMatch: 0.7,
  /** Increase of the value of the newest line: of several lines with the same names, a later one is more current. */
  lineRecency: 1,
  /** Value of a line itself. */
  userLine: 0.5,
  otherLine: 0.05,
  /** Tokens added to the cost of a line, so that very short lines are not preferred. */
  costOffset: 10,
}
export type SelectionWeights = typeof selectionWeights

/** Names and rare words of a conversation, numbered, and the values of showing them. */
export type LineScores = {
  /** Numbers of the names of each line, in the order of its mentions. */
  readonly names: readonly (readonly number[])[]
  /** Numbers of the rare words of each line. */
  readonly words: readonly (readonly number[])[]
  /** Value of each name and word. */
  readonly values: Float64Array
  /** Value of a line itself. */
  readonly line: (index: number) => number
  /** Match of a line with the question, from 0 to 1 for the best line. */
  readonly match: (index: number) => number
  /** Factor of the value of the names and words of a line by its match with the question and its age: at least 1. */
  readonly factor: (index: number) => number
}

/** Shorter terms are not counted as rare words. */
const minRareWordChars = 4

/** Lines per step; they are cheap, so that a slice has many. */
const linesPerStep = 1_024
/** Costs of a line, and of a name or word in it: an unbroken message is one line of thousands of words. */
const lineWork = 4
const nameWork = 4

/**
 * Scores lines. A name is worth more the later and the more often it is used: it is then likely to be used again.
 * Interruptible work.
 */
export function* scoreLinesInSteps(
  lines: readonly ConversationLine[],
  isUser: (message: number) => boolean,
  question: string,
  weights: SelectionWeights = selectionWeights,
): Work<LineScores> {
  const tokensAfter = countTokensAfter(lines)
  const recency = (index: number): number => 1 / (1 + (tokensAfter[index] ?? 0) / weights.halfLifeTokens)
  const valueOfUse = ({ lastLine, lineCount }: Usage): number =>
    recency(lastLine) * (1 + weights.frequency * Math.log(lineCount))
  const { lineMatch, messageMatch } = yield* matchQuestion(lines, question)
  const names = new UsageTable()
  const words = new UsageTable()
  const nameNumbers: number[][] = []
  const wordNumbers: number[][] = []
  for (let index = lines.length - 1; index >= 0; index--) {
    const { mentions, terms, block } = lines[index] as ConversationLine
    nameNumbers[index] = mentions.map(({ name }) => names.count(name, index))
    // Rare words of code are mostly parts of names.
    const plainWords = block === undefined ? terms.filter((term) => term.length >= minRareWordChars) : []
    wordNumbers[index] = plainWords.map((term) => words.count(term, index))
    yield lineWork + nameWork * (mentions.length + terms.length)
  }
  const nameCount = names.usages.length
  const isRare = (word: number): boolean => (words.usages[word]?.lineCount ?? 0) <= weights.maxRareLines
  const values = new Float64Array(nameCount + words.usages.length)
  for (const [name, usage] of names.usages.entries()) values[name] = valueOfUse(usage)
  for (const [word, usage] of words.usages.entries()) values[nameCount + word] = weights.rareWord * valueOfUse(usage)
  yield values.length
  const rareWords: (readonly number[])[] = []
  for (const numbers of wordNumbers) {
    rareWords.push(numbers.filter(isRare).map((number) => nameCount + number))
    yield lineWork + numbers.length
  }
  return {
    names: nameNumbers,
    words: rareWords,
    values,
    line: (index) => recency(index) * (isUser(lines[index]?.message ?? -1) ? weights.userLine : weights.otherLine),
    match: lineMatch,
    factor: (index) =>
      (1 + weights.lineMatch * lineMatch(index) + weights.messageMatch * messageMatch(index)) *
      (1 + weights.lineRecency * recency(index)),
  }
}

/** Last line that uses a name or word, and the number of lines that use it. */
type Usage = { readonly lastLine: number; lineCount: number }

/** Numbers names in the order in which they are counted. */
class UsageTable {
  readonly usages: Usage[] = []
  readonly #numbers = new Map<string, number>()

  /** Counts a use and returns the number of the name. Lines must be visited from the last to the first. */
  count(name: string, line: number): number {
    const number = this.#numbers.get(name)
    if (number === undefined) {
      this.#numbers.set(name, this.usages.length)
      return this.usages.push({ lastLine: line, lineCount: 1 }) - 1
    }
    const usage = this.usages[number] as Usage
    usage.lineCount++
    return number
  }
}

function countTokensAfter(lines: readonly ConversationLine[]): Float64Array {
  const tokensAfter = new Float64Array(lines.length)
  let tokens: Tokens = 0
  for (let index = lines.length - 1; index >= 0; index--) {
    tokensAfter[index] = tokens
    tokens += lines[index]?.tokens ?? 0
  }
  return tokensAfter
}

type QuestionMatch = {
  readonly lineMatch: (index: number) => number
  /** Match of the best line of the same message. */
  readonly messageMatch: (index: number) => number
}

/** Matches lines with a question: shared terms count by their rarity, relative to the best line. */
function* matchQuestion(lines: readonly ConversationLine[], question: string): Work<QuestionMatch> {
  const questionTerms = new Set(extractTerms(question))
  if (questionTerms.size === 0) return { lineMatch: () => 0, messageMatch: () => 0 }
  const lineCounts = new Map<string, number>()
  const shared: (readonly string[])[] = []
  for (const { terms } of lines) {
    const own = terms.filter((term) => questionTerms.has(term))
    for (const term of own) lineCounts.set(term, (lineCounts.get(term) ?? 0) + 1)
    if (shared.push(own) % linesPerStep === 0) yield 4 * linesPerStep
  }
  const rarity = (term: string): number => Math.log(1 + lines.length / (lineCounts.get(term) ?? 1))
  const matches = shared.map((terms) => terms.reduce((sum, term) => sum + rarity(term), 0))
  const best = matches.reduce((max, match) => Math.max(max, match), 0) || 1
  const bestOfMessage: number[] = []
  for (const [index, { message }] of lines.entries())
    bestOfMessage[message] = Math.max(bestOfMessage[message] ?? 0, matches[index] ?? 0)
  return {
    lineMatch: (index) => (matches[index] ?? 0) / best,
    messageMatch: (index) => (bestOfMessage[lines[index]?.message ?? -1] ?? 0) / best,
  }
}
