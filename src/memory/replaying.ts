import { compose } from '../context/compose.ts'
import { gather } from '../context/gather.ts'
import { answersFrom, type Difference, differences, type Trace, walked } from '../context/replay.ts'
import { isSeen, type Shared, withPassages } from '../context/shared.ts'
import type { Derived, Message } from '../domain/entry.ts'
import type { Key } from '../domain/key.ts'
import type { Context } from '../domain/ledger.ts'
import type { Profile } from '../domain/profile.ts'
import type { ContextOptions, Contexts } from './contexts.ts'

/** A context as another profile would have made it, and which messages would have fared differently. */
export type Replayed = Context & { readonly differences: readonly Difference[] }

/** Keeps what a context was made from, and makes another one of it. */
export type Replaying = {
  trace(contexts: Contexts, key: Key, options: ContextOptions, messages: readonly Message[]): Promise<Trace>
  replay(contexts: Contexts, trace: Trace, profile: Profile): Replayed
}

/** The platform's; in a browser, pass this as `replaying`. */
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
          ...(when === undefined ? {} : { when }),
        }
      },
    )
  },

  replay({ means: { renderer } }, trace, profile) {
    const { budget, framing, query, when } = trace
    const shared = trace.shared.filter(({ from }) => isSeen(profile, from))
    const walk = gather(trace.head, profile, {
      budget,
      query,
      shared: knowledgeIn(shared),
      when,
      price: (entry) => renderer.price(entry),
    })
    const gathered = withPassages(walked(walk, answersFrom(trace.head.key, trace.messages)), passagesIn(shared), budget)
    const { messages, text, ledger } = compose(gathered, profile, renderer, { budget, framing, provider: 'openai' })
    return { messages, text: text(), ledger, differences: differences(trace.messages, trace.ledger, ledger) }
  },
}

const knowledgeIn = (shared: readonly Shared[]): readonly Shared[] => shared.filter(({ from }) => from !== 'files')
const passagesIn = (shared: readonly Shared[]): readonly Derived[] =>
  shared.find(({ from }) => from === 'files')?.entries ?? []
