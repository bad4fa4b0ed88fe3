import type { Tokens } from '../domain/entry.ts'
import type { Context, Degradation, Ledger, Provider } from '../domain/ledger.ts'
import type { Framing, Profile } from '../domain/profile.ts'
import { feesOf, wordsOf } from './fees.ts'
import { type Fitted, fit, type Piece } from './fit.ts'
import { frame } from './frame.ts'
import type { Gathered } from './gather.ts'
import { notesIn } from './pressure.ts'
import { receipt } from './receipt.ts'
import type { Renderer } from './render.ts'

export type Composition = { readonly budget: Tokens; readonly framing: Framing; readonly provider: Provider }

/** What is shown, from what was gathered: fit, then frame, with the receipt. Writes nothing; the same input gives the same bytes. */
export function compose(gathered: Gathered, profile: Profile, renderer: Renderer, { budget, framing: wanted, provider }: Composition): Context {
  const framing = affordable(wanted, budget, renderer)
  const fitted = fit(gathered, budget, renderer, feesOf(profile, renderer, framing, provider))
  const { messages, text, cacheable } = frame(fitted, profile, framing, renderer)
  const degraded: Degradation[] = framing === wanted ? [] : [{ step: 'framing', why: `no room for the words of the ${wanted} framing` }]
  const ledger: Ledger = {
    profile: profile.name,
    tokenizer: renderer.tokenizer.name,
    counted: counted(renderer, fitted),
    budget,
    spent: fitted.spent,
    history: gathered.pressure.history,
    due: gathered.pressure.due,
    cacheable,
    lines: receipt(gathered, fitted),
    knowledge: fitted.told.flatMap(({ derived }) =>
      derived.kind === 'knowledge' && (gathered.origins.get(derived) ?? 'scope') === 'scope' ? [derived.id] : [],
    ),
    degraded: degraded.concat(notesIn(gathered.head.derived)?.faults ?? []),
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
function affordable(framing: Framing, budget: Tokens, renderer: Renderer): Framing {
  const { before, after } = wordsOf[framing]
  return renderer.fee(before) + renderer.fee(after) <= budget / 4 ? framing : 'sections'
}

function counted({ tokenizer: { kind } }: Renderer, { said, told }: Fitted): Ledger['counted'] {
  if (kind === 'estimate') return 'estimated'
  return kind === 'exact' && said.every(isExact) && told.every(isExact) ? 'exact' : 'bounded'
}

const isExact = ({ form }: Piece): boolean => form.exact
