import { tokenizerNamed } from '../tokenizers/tokenizers.ts'
import type { Dataset, DatasetConversation, DatasetQuestion } from './dataset.ts'
import { createEvidenceScorer, type EvidenceResult, type EvidenceScore, summariseEvidence } from './evidence.ts'
import { type Cut, cutTranscript, findCutPositions, scoreReuse } from './futureReference.ts'
import { type Latency, mean, sampleEvenly, summariseLatency } from './statistics.ts'
import type { MemorySystem, OpenedMemory } from './system.ts'

export type EvaluationOptions = {
  readonly system: MemorySystem
  readonly budgets: readonly number[]
  /** Maximum number of questions or cuts, spread evenly over the dataset; default: all. */
  readonly limit?: number
  /** Called after every context, with the number of contexts so far and in total. */
  readonly onProgress?: (done: number, total: number) => void
}

/** A result for each budget. */
export type ByBudget<T> = readonly (T & { readonly budget: number })[]

/** Counts `o200k_base` tokens. */
export const loadTokenCounter = async (): Promise<(text: string) => number> => (await tokenizerNamed('exact')).count

/** Selects the questions of each conversation that have evidence and satisfy a condition. */
export function selectQuestions(
  { conversations }: Dataset,
  limit: number,
  isWanted: (question: DatasetQuestion) => boolean = () => true,
): ReadonlyMap<DatasetConversation, readonly DatasetQuestion[]> {
  const all = conversations.flatMap((conversation) =>
    conversation.questions
      .filter((question) => question.evidence.length > 0 && isWanted(question))
      .map((question) => ({ conversation, question })),
  )
  const selected = new Map<DatasetConversation, DatasetQuestion[]>()
  for (const { conversation, question } of sampleEvenly(all, limit))
    selected.set(conversation, [...(selected.get(conversation) ?? []), question])
  return selected
}

/** Runs an action with a memory and closes it afterwards. */
export async function withMemory<T>(opening: Promise<OpenedMemory>, action: (memory: OpenedMemory) => Promise<T>) {
  const memory = await opening
  try {
    return await action(memory)
  } finally {
    await memory.close()
  }
}

/** Measures the share of the evidence of each question that the context contains. */
export async function evaluateEvidence(
  dataset: Dataset,
  { system, budgets, limit = Number.POSITIVE_INFINITY, onProgress }: EvaluationOptions,
): Promise<ByBudget<EvidenceResult>> {
  const countTokens = await loadTokenCounter()
  const selected = selectQuestions(dataset, limit)
  const total = [...selected.values()].reduce((sum, questions) => sum + questions.length, 0) * budgets.length
  const scores = new Map(budgets.map((budget): [number, EvidenceScore[]] => [budget, []]))
  let done = 0
  for (const [conversation, questions] of selected)
    await withMemory(system.open(conversation), async (memory) => {
      const score = createEvidenceScorer(conversation, countTokens)
      for (const question of questions)
        for (const budget of budgets) {
          const { text, milliseconds } = await timeContext(memory, question.query, budget)
          scores.get(budget)?.push(score(question, { text, budget, milliseconds }))
          onProgress?.(++done, total)
        }
    })
  return budgets.map((budget) => ({ budget, ...summariseEvidence(scores.get(budget) ?? []) }))
}

async function timeContext(
  memory: Pick<OpenedMemory, 'context'>,
  query: string,
  budget: number,
): Promise<{ readonly text: string; readonly milliseconds: number }> {
  const start = performance.now()
  const text = await memory.context(query, budget)
  return { text, milliseconds: performance.now() - start }
}

export type FutureReferenceResult = {
  readonly cuts: number
  /** Mean share of the identifiers reused after the cut that the context contains with both neighbour words. */
  readonly reused: number
  readonly overBudget: number
  readonly latency: Latency
}

/** Measures the share of identifiers used soon after a cut that the context before it contains. */
export async function evaluateFutureReference(
  { conversations }: Dataset,
  { system, budgets, limit = Number.POSITIVE_INFINITY, onProgress }: EvaluationOptions,
): Promise<ByBudget<FutureReferenceResult>> {
  const countTokens = await loadTokenCounter()
  const all = conversations.flatMap(({ id, messages }) =>
    findCutPositions(messages).flatMap((position) => {
      const cut = cutTranscript(messages, position, countTokens)
      return cut === undefined ? [] : [{ id: `${id}@${position}`, cut }]
    }),
  )
  const cuts = sampleEvenly(all, limit)
  const samples: { budget: number; reused: number; isOverBudget: boolean; milliseconds: number }[] = []
  for (const { id, cut } of cuts)
    await withMemory(system.open({ id, messages: cut.past }), async (memory) => {
      for (const budget of budgets) {
        samples.push({ budget, ...(await scoreCut(memory, cut, budget, countTokens)) })
        onProgress?.(samples.length, cuts.length * budgets.length)
      }
    })
  return budgets.map((budget) => {
    const selected = samples.filter((sample) => sample.budget === budget)
    return {
      budget,
      cuts: selected.length,
      reused: mean(selected.map(({ reused }) => reused)),
      overBudget: selected.filter(({ isOverBudget }) => isOverBudget).length,
      latency: summariseLatency(selected.map(({ milliseconds }) => milliseconds)),
    }
  })
}

async function scoreCut(memory: OpenedMemory, cut: Cut, budget: number, countTokens: (text: string) => number) {
  const { text, milliseconds } = await timeContext(memory, cut.query, budget)
  const isOverBudget = countTokens(text) > budget
  return { reused: isOverBudget ? 0 : scoreReuse(text, cut.reused), isOverBudget, milliseconds }
}
