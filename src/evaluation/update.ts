import { isStopword } from '../text/words.ts'
import type { Dataset, DatasetConversation, DatasetQuestion } from './dataset.ts'
import { type ByBudget, type EvaluationOptions, loadTokenCounter, selectQuestions, withMemory } from './evaluate.ts'
import { coverTurn, normaliseWords, prepareContext } from './grams.ts'

/** Category of the questions whose answer changed during the conversation. */
export const updateCategory = 'knowledge_update'

/** Joins the digits of numbers such as 1,350. */
const splitValueWords = (text: string): string[] => normaliseWords(text.replaceAll(/(?<=\d),(?=\d{3})/g, ''))
const hasDigit = (word: string): boolean => /\d/.test(word)

/** A value in its place: the word before, the value and the word after. */
type Neighbourhoods = ReadonlyMap<string, readonly string[]>

/** The current and the outdated wording that a context may contain. */
export type UpdateProbe = {
  /** Words of the current value. Empty if the evidence does not contain it: then the newest turn must be present. */
  readonly current: Neighbourhoods
  readonly newestTurn: string
  /** Words that only the evidence before the change has. */
  readonly outdated: Neighbourhoods
}

/**
 * Finds the current and the outdated value of a question in its evidence. The value is made of the figures of the
 * answer, or of its other words if it has no figures. The change is the latest evidence turn that is the first with one
 * of them: its new words are the current value. Outdated are figures (or words) of the evidence before the change that
 * the evidence from the change on lacks.
 */
export function createUpdateProbe(
  { messages }: Pick<DatasetConversation, 'messages'>,
  { answer, evidence }: Pick<DatasetQuestion, 'answer' | 'evidence'>,
): UpdateProbe {
  const ids = new Set(evidence)
  const turns = messages.filter(({ id }) => ids.has(id)).map(({ text }) => splitValueWords(text))
  const answerWords = splitValueWords(answer ?? '').filter((word) => !isStopword(word))
  const hasFigures = answerWords.some(hasDigit)
  const isValue = (word: string): boolean => (hasFigures ? hasDigit(word) : !isStopword(word))
  const firstTurns = new Map(
    answerWords.filter(isValue).map((word) => [word, turns.findIndex((turn) => turn.includes(word))]),
  )
  const changedAt = Math.max(...firstTurns.values(), -1)
  const [before, after] = changedAt < 0 ? [turns.slice(0, -1), turns.slice(-1)] : splitAt(turns, changedAt)
  const afterWords = new Set(after.flat())
  return {
    current: findNeighbourhoods(after, (word) => changedAt >= 0 && firstTurns.get(word) === changedAt),
    newestTurn: turns.at(-1)?.join(' ') ?? '',
    outdated: findNeighbourhoods(before, (word) => isValue(word) && !afterWords.has(word)),
  }
}

const splitAt = <T>(items: readonly T[], at: number): [T[], T[]] => [items.slice(0, at), items.slice(at)]

function findNeighbourhoods(turns: readonly (readonly string[])[], isWanted: (word: string) => boolean) {
  const found = new Map<string, string[]>()
  for (const turn of turns)
    for (const [at, word] of turn.entries())
      if (isWanted(word))
        found.set(word, [...(found.get(word) ?? []), turn.slice(Math.max(0, at - 1), at + 2).join(' ')])
  return found
}

/** Tells if a context contains the current value, and if it contains only an outdated one. */
export function scoreUpdate(text: string, { current, newestTurn, outdated }: UpdateProbe) {
  const joined = ` ${splitValueWords(text).join(' ')} `
  const isShown = (occurrences: readonly string[]): boolean =>
    occurrences.some((words) => joined.includes(` ${words} `))
  const isCurrent =
    current.size === 0
      ? coverTurn(newestTurn, prepareContext(joined)).isPresent
      : [...current.values()].every((occurrences) => isShown(occurrences))
  return { isCurrent, isStaleOnly: !isCurrent && [...outdated.values()].some((occurrences) => isShown(occurrences)) }
}

export type UpdateResult = {
  readonly questions: number
  /** Questions whose context contains the current value. */
  readonly current: number
  /** Questions whose context contains an outdated value and not the current one. */
  readonly staleOnly: number
  readonly overBudget: number
  /** Ids of the questions without the current value. */
  readonly missing: readonly string[]
}

/** Measures if contexts contain the newest value of facts that changed. */
export async function evaluateUpdate(
  dataset: Dataset,
  { system, budgets, limit = Number.POSITIVE_INFINITY, onProgress }: EvaluationOptions,
): Promise<ByBudget<UpdateResult>> {
  const countTokens = await loadTokenCounter()
  const selected = selectQuestions(dataset, limit, ({ category }) => category === updateCategory)
  const questionCount = [...selected.values()].reduce((sum, questions) => sum + questions.length, 0)
  const samples: { budget: number; id: string; isCurrent: boolean; isStaleOnly: boolean; isOver: boolean }[] = []
  for (const [conversation, questions] of selected)
    await withMemory(system.open(conversation), async (memory) => {
      for (const question of questions) {
        const probe = createUpdateProbe(conversation, question)
        for (const budget of budgets) {
          const text = await memory.context(question.query, budget)
          const isOver = countTokens(text) > budget
          samples.push({ budget, id: question.id, isOver, ...scoreUpdate(isOver ? '' : text, probe) })
          onProgress?.(samples.length, questionCount * budgets.length)
        }
      }
    })
  return budgets.map((budget) => {
    const own = samples.filter((sample) => sample.budget === budget)
    return {
      budget,
      questions: own.length,
      current: own.filter(({ isCurrent }) => isCurrent).length,
      staleOnly: own.filter(({ isStaleOnly }) => isStaleOnly).length,
      overBudget: own.filter(({ isOver }) => isOver).length,
      missing: own.filter(({ isCurrent }) => !isCurrent).map(({ id }) => id),
    }
  })
}
