import type { Dataset, DatasetConversation } from './dataset.ts'
import { type ByBudget, type EvaluationOptions, loadTokenCounter, withMemory } from './evaluate.ts'
import { sampleEvenly } from './statistics.ts'
import type { MemorySystem, Prompt } from './system.ts'

export type PrefixResult = {
  readonly prompts: number
  /** Share of the prompts' tokens that the previous prompt began with too, and that a provider can cache. */
  readonly common: number
  readonly meanTokens: number
  readonly overBudget: number
  /** Prompts before which the system cut the history. */
  readonly cuts: number
  /** Prompts whose declared cacheable prefix changed without a cut. */
  readonly broken: number
}

type Totals = {
  commonTokens: number
  comparedTokens: number
  tokens: number
  prompts: number
  overBudget: number
  cuts: number
  broken: number
}

/**
 * Replays conversations with one prompt per user message and compares consecutive prompts. The limit is a number of
 * conversations. Returns undefined if the system cannot be appended to.
 */
export async function evaluatePrefix(
  { conversations }: Dataset,
  { system, budgets, limit = Number.POSITIVE_INFINITY, onProgress }: EvaluationOptions,
): Promise<ByBudget<PrefixResult> | undefined> {
  const countTokens = await loadTokenCounter()
  const selected = sampleEvenly(conversations, limit)
  const messageCount = selected.reduce((sum, { messages }) => sum + messages.length, 0)
  const results: (PrefixResult & { readonly budget: number })[] = []
  let done = 0
  const onMessage = (): void => onProgress?.(++done, messageCount * budgets.length)
  for (const budget of budgets) {
    const totals = { commonTokens: 0, comparedTokens: 0, tokens: 0, prompts: 0, overBudget: 0, cuts: 0, broken: 0 }
    for (const conversation of selected)
      if (!(await replay({ system, conversation, budget, countTokens, onMessage }, totals))) return undefined
    const { commonTokens, comparedTokens, tokens, prompts, overBudget, cuts, broken } = totals
    const common = commonTokens / comparedTokens
    results.push({ budget, prompts, common, meanTokens: tokens / prompts, overBudget, cuts, broken })
  }
  return results
}

type Replay = {
  readonly system: MemorySystem
  readonly conversation: DatasetConversation
  readonly budget: number
  readonly countTokens: (text: string) => number
  readonly onMessage: () => void
}

/** Returns false if the system does not support it. */
function replay({ system, conversation, budget, countTokens, onMessage }: Replay, totals: Totals): Promise<boolean> {
  return withMemory(system.open({ id: conversation.id, messages: [] }), async (memory) => {
    if (memory.append === undefined || memory.prompt === undefined) return false
    let previous: Prompt | undefined
    for (const message of conversation.messages) {
      await memory.append(message)
      onMessage()
      if (message.role !== 'user' || message.text.trim() === '') continue
      const prompt = await memory.prompt(budget)
      addPrompt(totals, prompt, previous, countTokens(prompt.text))
      if (countTokens(prompt.text) > budget) totals.overBudget++
      previous = prompt
    }
    return true
  })
}

function addPrompt(totals: Totals, prompt: Prompt, previous: Prompt | undefined, tokens: number): void {
  totals.prompts++
  totals.tokens += tokens
  if (previous === undefined) return
  totals.comparedTokens += tokens
  totals.commonTokens += tokens * (commonPrefixLength(previous.text, prompt.text) / Math.max(1, prompt.text.length))
  if (prompt.start !== previous.start) totals.cuts++
  else if (!prompt.text.startsWith(previous.cacheable ?? '')) totals.broken++
}

function commonPrefixLength(a: string, b: string): number {
  let length = 0
  while (length < a.length && length < b.length && a.charCodeAt(length) === b.charCodeAt(length)) length++
  return length
}
