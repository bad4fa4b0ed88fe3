import { tokenizerNamed } from '../../tokenizers/tokenizers.ts'
import { clipToEnd, joinTexts } from '../clip.ts'
import type { DatasetMessage } from '../dataset.ts'
import type { MemorySystem } from '../system.ts'

/** Baseline: the last N tokens of the conversation, cut in the middle of a message if necessary. */
export const windowSystem: MemorySystem = {
  name: 'window',
  async open({ messages }) {
    const { count } = await tokenizerNamed('exact')
    const history: DatasetMessage[] = [...messages]
    const clip = (budget: number): string => clipToEnd(joinTexts(history), budget, count)
    return {
      context: async (_query, budget) => clip(budget),
      append: async (message) => void history.push(message),
      prompt: async (budget) => ({ text: clip(budget) }),
      close: async () => undefined,
    }
  },
  openShared: async (conversations) => {
    const histories = new Map(conversations.map(({ id, messages }) => [id, joinTexts(messages)]))
    const { count } = await tokenizerNamed('exact')
    return {
      context: async (id, _query, budget) => clipToEnd(histories.get(id) ?? '', budget, count),
      close: async () => undefined,
    }
  },
}
