import type { DatasetConversation, DatasetQuestion } from './dataset.ts'
import { coverTurn, prepareContext } from './grams.ts'
import { type Latency, mean, summariseLatency } from './statistics.ts'

/** Score of one context for one question, all from 0 to 1. */
export type EvidenceScore = {
  readonly category: string
  /** Share of the evidence turns that the context contains. */
  readonly byTurn: number
  /** Share of the words of all evidence turns that the context contains. */
  readonly byWord: number
  /** 1 if the context contains every evidence turn, otherwise 0. */
  readonly allEvidence: number
  /** Tokens of the context ÷ the smaller of the budget and the whole history, at most 1. */
  readonly budgetShare: number
  readonly isOverBudget: boolean
  readonly milliseconds: number
}

/** A context to be scored. The scorer counts the tokens itself. */
export type ContextSample = { readonly text: string; readonly budget: number; readonly milliseconds: number }

/** Scores the contexts of one conversation. */
export type EvidenceScorer = (question: DatasetQuestion, sample: ContextSample) => EvidenceScore

/** Creates the scorer of a conversation. A context over budget scores 0. */
export function createEvidenceScorer(
  { messages }: Pick<DatasetConversation, 'messages'>,
  countTokens: (text: string) => number,
): EvidenceScorer {
  const texts = new Map(messages.map(({ id, text }) => [id, text]))
  const historyTokens = messages.reduce((sum, { text }) => sum + countTokens(text), 0)
  return ({ category, evidence }, { text, budget, milliseconds }) => {
    const tokens = countTokens(text)
    const budgetShare = Math.min(1, tokens / Math.max(1, Math.min(budget, historyTokens)))
    const isOverBudget = tokens > budget
    const common = { category, budgetShare, isOverBudget, milliseconds }
    if (isOverBudget) return { ...common, byTurn: 0, byWord: 0, allEvidence: 0 }
    const context = prepareContext(text)
    const turns = evidence.flatMap((id) => texts.get(id) ?? []).map((turn) => coverTurn(turn, context))
    const present = turns.filter(({ isPresent }) => isPresent).length
    const words = turns.reduce((sum, turn) => sum + turn.words, 0)
    const foundWords = turns.reduce((sum, turn) => sum + turn.foundWords, 0)
    return {
      ...common,
      byTurn: present / turns.length,
      byWord: words === 0 ? present / turns.length : foundWords / words,
      allEvidence: present === turns.length ? 1 : 0,
    }
  }
}

export type CategoryResult = {
  readonly category: string
  readonly questions: number
  readonly byTurn: number
  readonly byWord: number
  readonly allEvidence: number
}

export type EvidenceResult = Omit<CategoryResult, 'category'> & {
  readonly budgetShare: number
  /** Contexts over budget; they score 0. */
  readonly overBudget: number
  readonly latency: Latency
  readonly categories: readonly CategoryResult[]
}

/** Averages the scores of one system at one budget. */
export function summariseEvidence(scores: readonly EvidenceScore[]): EvidenceResult {
  const categories = [...new Set(scores.map(({ category }) => category))].sort()
  return {
    ...averageScores(scores),
    budgetShare: mean(scores.map(({ budgetShare }) => budgetShare)),
    overBudget: scores.filter(({ isOverBudget }) => isOverBudget).length,
    latency: summariseLatency(scores.map(({ milliseconds }) => milliseconds)),
    categories: categories.map((category) => ({
      category,
      ...averageScores(scores.filter((score) => score.category === category)),
    })),
  }
}

const averageScores = (scores: readonly EvidenceScore[]): Omit<CategoryResult, 'category'> => ({
  questions: scores.length,
  byTurn: mean(scores.map(({ byTurn }) => byTurn)),
  byWord: mean(scores.map(({ byWord }) => byWord)),
  allEvidence: mean(scores.map(({ allEvidence }) => allEvidence)),
})
