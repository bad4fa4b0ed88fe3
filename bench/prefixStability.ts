// Prefix stability: the share of each prompt that is a common prefix with the previous one and thus cacheable, weighted
// by tokens.
import type { ChatMessage } from '../src/domain/ledger.ts'
import { openMemory } from '../src/index.ts'
import { tokenizerNamed } from '../src/tokenizers/tokenizers.ts'
import { type Conversation, flags, loadDataset, toMessageInput } from './datasets.ts'

const budget = Number(flags.budget ?? 32_000)
const exact = await tokenizerNamed('exact')
const serialise = (messages: readonly ChatMessage[]): string =>
  messages.map((message) => `${message.role}\n${message.content}\n`).join('')

type Totals = { sharedTokens: number; tokens: number; prompts: number; cuts: number; broken: number }

function commonPrefixLength(a: string, b: string): number {
  let length = 0
  while (length < a.length && length < b.length && a.charCodeAt(length) === b.charCodeAt(length)) length++
  return length
}

/** Replays a conversation with one prompt per user message. */
async function replay(conversation: Conversation, totals: Totals): Promise<void> {
  await using memory = await openMemory({ profile: 'thread' })
  let previous: { text: string; stable: string; start: string } | undefined
  for (const message of conversation.messages) {
    await memory.append('bench:one', [toMessageInput(message)])
    await memory.upkeep.whenIdle()
    if (message.role !== 'user' || message.text.trim() === '') continue
    const { messages, ledger } = await memory.context('bench:one', { budget })
    const text = serialise(messages)
    const stable = serialise(messages.slice(0, ledger.cacheable.messages))
    const start = ledger.lines.find((line) => line.band === 'tail')?.entries?.[0] ?? ''
    const tokens = exact.count(text)
    if (previous !== undefined) {
      totals.sharedTokens += tokens * (commonPrefixLength(previous.text, text) / text.length)
      if (start !== previous.start) totals.cuts++
      else if (!text.startsWith(previous.stable)) totals.broken++
    }
    totals.tokens += previous === undefined ? 0 : tokens
    totals.prompts++
    previous = { text, stable, start }
  }
}

for (const name of ['locomo-dev', 'beam-100k', 'transcripts-dev'] as const) {
  if (flags.only !== undefined && !name.startsWith(flags.only)) continue
  const totals: Totals = { sharedTokens: 0, tokens: 0, prompts: 0, cuts: 0, broken: 0 }
  for (const conversation of loadDataset(name).slice(0, Number(flags.limit ?? 1_000)))
    await replay(conversation, totals)
  console.log(
    `${name}: common prefix ${(totals.sharedTokens / totals.tokens).toFixed(3)} over ${totals.prompts} prompts at ${budget} tokens, mean ${Math.round(totals.tokens / totals.prompts)}; ${totals.cuts} cuts, and ${totals.broken} prompts whose declared prefix changed without one`,
  )
}
