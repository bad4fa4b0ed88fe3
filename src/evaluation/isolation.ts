import type { Dataset, DatasetConversation } from './dataset.ts'
import { type ByBudget, type EvaluationOptions, loadTokenCounter, selectQuestions, withMemory } from './evaluate.ts'
import { createEvidenceScorer } from './evidence.ts'
import { listGrams, normaliseWords } from './grams.ts'
import { mean } from './statistics.ts'

export type IsolationResult = {
  readonly questions: number
  /** Turns of other users in all contexts; must be 0. */
  readonly foreignTurns: number
  /** Share of the contexts that are the same as with the conversation alone in its store. */
  readonly identical: number
  /** Evidence by turn with the conversation alone, and with all conversations in one store. */
  readonly aloneByTurn: number
  readonly sharedByTurn: number
}

/** Share of a foreign turn's 5-grams that a context must contain. */
const presentShare = 0.9

type ForeignTurnCounter = (text: string, ownIndex: number) => number

/**
 * Counts the turns of other conversations in a context. Turns of under five words, and wordings that the own
 * conversation has too, prove nothing and do not count.
 */
function createForeignTurnCounter(conversations: readonly DatasetConversation[]): ForeignTurnCounter {
  const gramCounts: number[] = []
  const turnsByGram = new Map<string, number[]>()
  const gramsByConversation = conversations.map(({ messages }) => {
    const own = new Set<string>()
    for (const { text } of messages) {
      const grams = new Set(listGrams(normaliseWords(text)))
      for (const gram of grams) {
        own.add(gram)
        turnsByGram.set(gram, [...(turnsByGram.get(gram) ?? []), gramCounts.length])
      }
      gramCounts.push(grams.size)
    }
    return own
  })
  return (text, ownIndex) => {
    const hits = new Map<number, { found: number; foreign: number }>()
    for (const gram of new Set(listGrams(normaliseWords(text))))
      for (const turn of turnsByGram.get(gram) ?? []) {
        const { found, foreign } = hits.get(turn) ?? { found: 0, foreign: 0 }
        const isForeign = gramsByConversation[ownIndex]?.has(gram) !== true
        hits.set(turn, { found: found + 1, foreign: foreign + (isForeign ? 1 : 0) })
      }
    return [...hits].filter(
      ([turn, { found, foreign }]) => foreign > 0 && found >= presentShare * (gramCounts[turn] ?? 0),
    ).length
  }
}

/**
 * Compares contexts of conversations in one store with those of each conversation alone. Returns undefined if the
 * system cannot share a store.
 */
export async function evaluateIsolation(
  dataset: Dataset,
  { system, budgets, limit = Number.POSITIVE_INFINITY, onProgress }: EvaluationOptions,
): Promise<ByBudget<IsolationResult> | undefined> {
  if (system.openShared === undefined) return undefined
  const countTokens = await loadTokenCounter()
  const { conversations } = dataset
  const selected = selectQuestions(dataset, limit)
  const total = [...selected.values()].reduce((sum, questions) => sum + questions.length, 0) * budgets.length
  const countForeignTurns = createForeignTurnCounter(conversations)
  const samples: { budget: number; foreign: number; identical: number; alone: number; shared: number }[] = []
  const shared = await system.openShared(conversations)
  try {
    for (const [conversation, questions] of selected)
      await withMemory(system.open(conversation), async (memory) => {
        const score = createEvidenceScorer(conversation, countTokens)
        for (const question of questions)
          for (const budget of budgets) {
            const texts = {
              alone: await memory.context(question.query, budget),
              shared: await shared.context(conversation.id, question.query, budget),
            }
            const byTurn = (text: string): number => score(question, { text, budget, milliseconds: 0 }).byTurn
            samples.push({
              budget,
              foreign: countForeignTurns(texts.shared, conversations.indexOf(conversation)),
              identical: texts.alone === texts.shared ? 1 : 0,
              alone: byTurn(texts.alone),
              shared: byTurn(texts.shared),
            })
            onProgress?.(samples.length, total)
          }
      })
  } finally {
    await shared.close()
  }
  return budgets.map((budget) => {
    const own = samples.filter((sample) => sample.budget === budget)
    return {
      budget,
      questions: own.length,
      foreignTurns: own.reduce((sum, { foreign }) => sum + foreign, 0),
      identical: mean(own.map(({ identical }) => identical)),
      aloneByTurn: mean(own.map(({ alone }) => alone)),
      sharedByTurn: mean(own.map(({ shared: value }) => value)),
    }
  })
}
