import type { Tokens } from '../domain/entry.ts'
import type { Context, Ledger, Provider } from '../domain/ledger.ts'
import type { Framing, Profile } from '../domain/profile.ts'
import { allocateBudget } from './allocateBudget.ts'
import { findNotes } from './budgetPressure.ts'
import { frameContext } from './frame.ts'
import type { Gathered } from './gatherCandidates.ts'
import { overheadTable } from './overhead.ts'
import type { Allocation, Piece } from './piece.ts'
import { buildReceipt } from './receipt.ts'
import type { Renderer } from './render.ts'

export type ComposeOptions = { readonly budget: Tokens; readonly framing: Framing; readonly provider: Provider }

/** A context whose text is built on demand. A function, because an accessor property would retain the input until a major GC. */
export type Composed = Pick<Context, 'messages' | 'ledger'> & { readonly text: () => string }

/** Framing text may take at most this share of the budget; otherwise the context uses the `sections` framing. */
const maxFramingShare = 0.25

/** Builds a context from its candidates: allocates the budget, frames the pieces and writes the receipt. Deterministic, writes nothing. */
export function compose(
  candidates: Gathered,
  profile: Profile,
  renderer: Renderer,
  { budget, framing: requested, provider }: ComposeOptions,
): Composed {
  const requestedOverheads = overheadTable(profile, renderer, requested, provider)
  const framing = requestedOverheads.framingTokens <= budget * maxFramingShare ? requested : 'sections'
  const overheads = framing === requested ? requestedOverheads : overheadTable(profile, renderer, framing, provider)
  const allocation = allocateBudget(candidates, budget, renderer, overheads)
  const { messages, text, cacheable } = frameContext(allocation, profile, framing, renderer)
  const degraded = [...(findNotes(candidates.head.derived)?.faults ?? [])]
  if (framing !== requested)
    degraded.unshift({
      step: 'framing',
      why: `the text of the ${requested} framing would take over a quarter of the budget`,
    })
  const ledger: Ledger = {
    profile: profile.name,
    tokenizer: renderer.tokenizer.name,
    counted: countAccuracy(renderer, allocation),
    budget,
    spent: allocation.spentTokens,
    history: candidates.pressure.history,
    due: candidates.pressure.due,
    cacheable,
    lines: buildReceipt(candidates, allocation),
    knowledge: allocation.derived
      .filter(({ derived }) => derived.kind === 'knowledge' && (candidates.origins.get(derived) ?? 'scope') === 'scope')
      .map(({ derived }) => derived.id),
    degraded,
  }
  return { messages, text, ledger }
}

function countAccuracy({ tokenizer: { kind } }: Renderer, { messages, derived }: Allocation): Ledger['counted'] {
  if (kind === 'estimate') return 'estimated'
  return kind === 'exact' && messages.every(isExact) && derived.every(isExact) ? 'exact' : 'bounded'
}

const isExact = ({ rendering }: Piece): boolean => rendering.exact
