// Upkeep cost: compactions and model calls per 100 user turns, and the tokens of new text between two compactions.

import type { DatasetConversation } from '../src/evaluation/dataset.ts'
import { createUpkeep, type Model, openMemory, type profiles } from '../src/index.ts'
import { summarise } from '../src/upkeep/summarise/summarise.ts'
import { flags, loadDataset } from './datasets.ts'

type ProfileName = keyof typeof profiles
type Cost = { turns: number; tokens: number; compactions: number; modelCalls: number; elapsedMs: number }

/** Model that counts its calls. It answers with an excerpt, so that its summaries are accepted, and without facts. */
function countingModel(cost: Cost): Model {
  return {
    name: 'counting',
    async *reply({ messages: [system, prompt] }) {
      cost.modelCalls++
      const words = Number(/Word count target: (\d+)/.exec(system?.content ?? '')?.[1] ?? 0)
      if (words > 0) yield `${excerpt(prompt?.content ?? '', words)}\n\nIMPORTANT DATA\n`
      yield '{}'
    },
  }
}

function excerpt(prompt: string, words: number): string {
  const lines = Array.from(prompt.matchAll(/<memory>\n([\s\S]*?)\n<\/memory>/g), ([, data = '']) => data.split('\n'))
  const messages = lines.flat().map((content, index) => ({
    id: `m${index + 1}`,
    sequence: index + 1,
    at: 0,
    role: 'user' as const,
    content: content.replace(/^(?:user|assistant): /, ''),
  }))
  return summarise(messages, undefined, { words: [words, words + 50] }).text
}

const maxTurns = Number(flags.limit ?? 40)
const profileNames = ['summary', 'thread', 'support', 'agent'] as const satisfies readonly ProfileName[]

async function measure(profile: ProfileName, { messages }: DatasetConversation, cost: Cost): Promise<void> {
  const upkeep = createUpkeep({ model: countingModel(cost) })
  await using memory = await openMemory({
    profile,
    upkeep: (deps) =>
      upkeep({
        ...deps,
        onPut: (key, epoch, entries) => {
          if (entries.some(({ kind }) => kind === 'summary')) cost.compactions++
          deps.onPut(key, epoch, entries)
        },
      }),
  })
  const start = performance.now()
  let turns = 0
  for (const { role, text, at } of messages) {
    if (role === 'user' && ++turns > maxTurns) break
    const [message] = await memory.append('bench:one', [{ role, content: text, ...(at == null ? {} : { at }) }], {
      replyFollows: role === 'user',
    })
    cost.tokens += message?.tokens ?? 0
    if (role === 'user') await memory.context('bench:one')
    await memory.upkeep.whenIdle()
  }
  cost.elapsedMs += performance.now() - start
  cost.turns += Math.min(turns, maxTurns)
}

console.log(`per 100 user turns, first ${maxTurns} turns of each conversation`)
for (const name of ['locomo-dev', 'beam-100k', 'transcripts-dev'] as const) {
  if (flags.only !== undefined && !name.startsWith(flags.only)) continue
  const conversations = await loadDataset(name)
  for (const profile of profileNames) {
    const cost: Cost = { turns: 0, tokens: 0, compactions: 0, modelCalls: 0, elapsedMs: 0 }
    for (const conversation of conversations.slice(0, 12)) await measure(profile, conversation, cost)
    const per100 = (count: number): string => ((100 * count) / cost.turns).toFixed(1).padStart(6)
    const spacing = cost.compactions === 0 ? '     –' : (cost.tokens / cost.compactions).toFixed(0).padStart(6)
    console.log(
      `  ${name.padEnd(16)} ${profile.padEnd(8)} compactions ${per100(cost.compactions)}   model calls ${per100(cost.modelCalls)}   tokens per compaction ${spacing}   (${cost.turns} turns, ${(cost.elapsedMs / cost.turns).toFixed(1)} ms each)`,
    )
  }
}
