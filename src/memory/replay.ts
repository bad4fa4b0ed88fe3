import { composeContext } from '../context/composeContext.ts'
import { copyMessages } from '../context/entryText.ts'
import { addPassages, gatherCandidates, isVisible, profileForBudget } from '../context/gatherCandidates.ts'
import { compareLedgers, createReadResponder, type Difference, runContextQuery, type Trace } from '../context/replay.ts'
import type { Message } from '../domain/entry.ts'
import type { Key } from '../domain/key.ts'
import type { Context } from '../domain/ledger.ts'
import type { Profile } from '../domain/profile.ts'
import { type ContextBuilder, type ContextOptions, withDegraded } from './contextBuilder.ts'

/** A context built under another profile, and the messages whose verdict differs. */
export type ReplayResult = Context & { readonly differences: readonly Difference[] }

/** Records the inputs of a context and rebuilds it under another profile. */
export type Replayer = {
  trace(contexts: ContextBuilder, key: Key, options: ContextOptions, messages: readonly Message[]): Promise<Trace>
  replay(contexts: ContextBuilder, trace: Trace, profile: Profile): ReplayResult
}

/** Replay for all platforms. In a browser, pass it to `openMemory` as `replaying`. */
export const replayer: Replayer = {
  async trace(contexts, key, options, messages) {
    const { profile, renderer } = contexts.deps
    return contexts.gather(
      key,
      { ...options, traced: true },
      ({ candidates, budget, framing, query, shared, when, degraded }) => {
        const context = composeContext(candidates, profileForBudget(profile, budget), renderer, {
          budget,
          framing,
          provider: 'openai',
        })
        const { ledger } = withDegraded(context, degraded)
        return {
          head: candidates.head,
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

  replay({ deps: { renderer, sessions, work } }, trace, requestedProfile) {
    const { budget, framing, query, when } = trace
    const profile = profileForBudget(requestedProfile, budget)
    const visible = trace.shared.filter(({ from }) => isVisible(profile, from))
    const contextQuery = gatherCandidates(trace.head, profile, {
      budget,
      query,
      sharedEntries: visible.filter(({ from }) => from !== 'files'),
      period: () => when,
      tokenCostOf: (entry) => renderer.tokenCostOf(entry),
      work,
    })
    const passages = visible.find(({ from }) => from === 'files')?.entries ?? []
    const candidates = addPassages(
      runContextQuery(contextQuery, createReadResponder(trace, sessions.capabilities)),
      passages,
      budget,
    )
    const { messages, text, ledger } = composeContext(candidates, profile, renderer, {
      budget,
      framing,
      provider: 'openai',
    })
    return {
      messages: copyMessages(messages),
      text: text(),
      ledger,
      differences: compareLedgers(trace.messages, trace.ledger, ledger),
    }
  },
}
