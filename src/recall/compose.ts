import type { Tokens } from '../domain/entry.ts'
import type { Context, Degradation, Ledger, Provider } from '../domain/ledger.ts'
import type { Framing, Profile } from '../domain/profile.ts'
import { feesOf, wordsOf } from './fees.ts'
import { fit } from './fit.ts'
import { frame } from './frame.ts'
import type { Gathered } from './gather.ts'
import { notesIn } from './pressure.ts'
import { receipt } from './receipt.ts'
import type { Renderer } from './render.ts'

export type Composition = { readonly budget: Tokens; readonly framing: Framing; readonly provider: Provider }

/** What is shown, from what was gathered: fit, then frame, with the receipt. Writes nothing; the same input gives the same bytes. */
export function compose(gathered: Gathered, profile: Profile, renderer: Renderer, options: Composition): Context {
  const { framing, degraded } = affordable(options, renderer)
  const fees = feesOf(profile, renderer, { framing, opener: options.provider === 'anthropic' })
  const fitted = fit(gathered, options.budget, renderer, fees)
  const { messages, text, cacheable } = frame(fitted, profile, framing, renderer)
  const ledger: Ledger = {
    profile: profile.name,
    tokenizer: renderer.tokenizer.name,
    counted: counted(
      renderer,
      fitted.pieces.every((piece) => piece.form.exact),
    ),
    budget: options.budget,
    spent: fitted.spent,
    history: gathered.pressure.history,
    due: gathered.pressure.due,
    cacheable,
    lines: receipt(gathered, fitted),
    knowledge: fitted.pieces.flatMap(({ derived }) =>
      derived?.kind === 'knowledge' && (gathered.origins.get(derived) ?? 'scope') === 'scope' ? [derived.id] : [],
    ),
    degraded: [...degraded, ...(notesIn(gathered.head.derived)?.faults ?? [])],
  }
  return {
    messages,
    get text() {
      return text()
    },
    ledger,
  }
}

/** In a budget so small that the words of the framing would crowd out what they frame, memory is shown without them. */
function affordable({ budget, framing }: Composition, renderer: Renderer): { framing: Framing; degraded: readonly Degradation[] } {
  const { before, after } = wordsOf[framing]
  if (renderer.fee(before) + renderer.fee(after) <= budget / 4) return { framing, degraded: [] }
  return { framing: 'sections', degraded: [{ step: 'framing', why: `no room for the words of the ${framing} framing` }] }
}

function counted(renderer: Renderer, exact: boolean): Ledger['counted'] {
  if (renderer.tokenizer.kind === 'estimate') return 'estimated'
  return renderer.tokenizer.kind === 'exact' && exact ? 'exact' : 'bounded'
}
