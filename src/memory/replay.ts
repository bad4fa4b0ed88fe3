import { compose } from '../context/composeContext.ts'
import { gather, isSeen, withPassages } from '../context/gatherCandidates.ts'
import { answersFrom, type Difference, differences, type Trace, walked } from '../context/replay.ts'
import type { Message } from '../domain/entry.ts'
import type { Key } from '../domain/key.ts'
import type { Context } from '../domain/ledger.ts'
import type { Profile } from '../domain/profile.ts'
import type { ContextOptions, Contexts } from './contextBuilder.ts'

/** A context built under another profile, and the messages whose verdict differs. */
export type Replayed = Context & { readonly differences: readonly Difference[] }

/** Records the inputs of a context and rebuilds it under another profile. */
export type Replaying = {
  trace(contexts: Contexts, key: Key, options: ContextOptions, messages: readonly Message[]): Promise<Trace>
  replay(contexts: Contexts, trace: Trace, profile: Profile): Replayed
}

/** Replay for all platforms. In a browser, pass it to `openMemory` as `replaying`. */
export const replaying: Replaying = {
  async trace(contexts, key, options, messages) {
    const { profile, renderer } = contexts.means
    return contexts.gathered(
      key,
      { ...options, traced: true },
      ({ gathered, budget, framing, query, shared, when }) => {
        const { ledger } = compose(gathered, profile, renderer, { budget, framing, provider: 'openai' })
        return {
          head: gathered.head,
          messages,
          shared,
          query,
          budget,
          framing,
          ledger,
          ...(when !== undefined && { when }),
        }
      },
    )
  },

  replay({ means: { renderer } }, trace, profile) {
    const { budget, framing, query, when } = trace
    const visible = trace.shared.filter(({ from }) => isSeen(profile, from))
    const walk = gather(trace.head, profile, {
      budget,
      query,
      shared: visible.filter(({ from }) => from !== 'files'),
      when,
      price: (entry) => renderer.price(entry),
    })
    const passages = visible.find(({ from }) => from === 'files')?.entries ?? []
    const gathered = withPassages(walked(walk, answersFrom(trace.head.key, trace.messages)), passages, budget)
    const { messages, text, ledger } = compose(gathered, profile, renderer, { budget, framing, provider: 'openai' })
    return { messages, text: text(), ledger, differences: differences(trace.messages, trace.ledger, ledger) }
  },
}
