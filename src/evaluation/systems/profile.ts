import type { ChatMessage } from '../../domain/ledger.ts'
import { openMemory } from '../../index.ts'
import type { ProfileName } from '../../profiles/index.ts'
import { toMessageInput } from '../dataset.ts'
import type { MemorySystem, OpenedMemory } from '../system.ts'

const keyOf = (index: number): string => `user${index}:conversation`

/** Creates a system under test from a built-in profile, with the store in RAM and upkeep without a model. */
export const createProfileSystem = (profile: ProfileName): MemorySystem => ({
  name: profile,
  async open({ messages }): Promise<OpenedMemory> {
    const memory = await openMemory({ profile })
    const key = keyOf(0)
    if (messages.length > 0) await memory.append(key, messages.map(toMessageInput))
    await memory.upkeep.whenIdle()
    return {
      context: async (query, budget) => (await memory.context(key, { query, budget })).text,
      append: async (message) => {
        await memory.append(key, [toMessageInput(message)])
        await memory.upkeep.whenIdle()
      },
      prompt: async (budget) => {
        const { messages: prompt, ledger } = await memory.context(key, { budget })
        return {
          text: serialisePrompt(prompt),
          cacheable: serialisePrompt(prompt.slice(0, ledger.cacheable.messages)),
          start: ledger.lines.find((line) => line.band === 'tail')?.entries?.[0] ?? '',
        }
      },
      close: () => memory.close(),
    }
  },
  async openShared(conversations) {
    const memory = await openMemory({ profile })
    const keys = new Map(conversations.map(({ id }, index) => [id, keyOf(index)]))
    for (const [index, { messages }] of conversations.entries())
      await memory.append(keyOf(index), messages.map(toMessageInput))
    await memory.upkeep.whenIdle()
    return {
      context: async (id, query, budget) => (await memory.context(keys.get(id) ?? '', { query, budget })).text,
      close: () => memory.close(),
    }
  },
})

const serialisePrompt = (messages: readonly ChatMessage[]): string =>
  messages.map((message) => `${message.role}\n${message.content}\n`).join('')
