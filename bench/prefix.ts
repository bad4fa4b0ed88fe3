// Stable prefix: how much of each prompt a provider's cache has seen in the one before, weighted by tokens.
import type { ChatMessage } from '../src/domain/ledger.ts'
import { openMemory } from '../src/index.ts'
import { tokenizerNamed } from '../src/tokenizers/tokenizers.ts'
import { type Conversation, flags, incoming, load } from './data.ts'

const budget = Number(flags.budget ?? 32_000)
const exact = await tokenizerNamed('exact')
const serialised = (messages: readonly ChatMessage[]): string =>
  messages.map((message) => `${message.role}\n${message.content}\n`).join('')

type Sums = { shared: number; whole: number; prompts: number; cuts: number; broken: number }

function commonLength(a: string, b: string): number {
  let at = 0
  while (at < a.length && at < b.length && a.charCodeAt(at) === b.charCodeAt(at)) at++
  return at
}

/** Replays a conversation: a prompt for each turn of the user. */
async function replay(conversation: Conversation, sums: Sums): Promise<void> {
  await using memory = await openMemory({ profile: 'thread' })
  let previous: { text: string; stable: string; start: string } | undefined
  for (const message of conversation.messages) {
    await memory.append('bench:one', [incoming(message)])
    await memory.upkeep.settled()
    if (message.role !== 'user' || message.text.trim() === '') continue
    const { messages, ledger } = await memory.context('bench:one', { budget })
    const text = serialised(messages)
    const stable = serialised(messages.slice(0, ledger.cacheable.messages))
    const start = ledger.lines.find((line) => line.band === 'tail')?.entries?.[0] ?? ''
    const tokens = exact.count(text)
    if (previous !== undefined) {
      sums.shared += tokens * (commonLength(previous.text, text) / text.length)
      if (start !== previous.start) sums.cuts++
      else if (!text.startsWith(previous.stable)) sums.broken++
    }
    sums.whole += previous === undefined ? 0 : tokens
    sums.prompts++
    previous = { text, stable, start }
  }
}

for (const name of ['locomo-dev', 'beam-100k', 'transcripts-dev'] as const) {
  if (flags.only !== undefined && !name.startsWith(flags.only)) continue
  const sums: Sums = { shared: 0, whole: 0, prompts: 0, cuts: 0, broken: 0 }
  for (const conversation of load(name).slice(0, Number(flags.limit ?? 1_000))) await replay(conversation, sums)
  console.log(
    `${name}: common prefix ${(sums.shared / sums.whole).toFixed(3)} over ${sums.prompts} prompts at ${budget} tokens, mean ${Math.round(sums.whole / sums.prompts)}; ${sums.cuts} cuts, and ${sums.broken} prompts whose declared prefix changed without one`,
  )
}
