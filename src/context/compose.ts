import type { Tokens } from '../domain/entry.ts'
import type { Context, Ledger, Provider } from '../domain/ledger.ts'
import type { Framing, Profile } from '../domain/profile.ts'
import { feesOf } from './fees.ts'
import { fit } from './fit.ts'
import { frame } from './frame.ts'
import type { Gathered } from './gather.ts'
import type { Fitted, Piece } from './piece.ts'
import { notesIn } from './pressure.ts'
import { receipt } from './receipt.ts'
import type { Renderer } from './render.ts'

export type Composition = { readonly budget: Tokens; readonly framing: Framing; readonly provider: Provider }

/** A context whose text is made when it is asked for: an accessor would keep all it was made from until old space is collected. */
export type Composed = Pick<Context, 'messages' | 'ledger'> & { readonly text: () => string }

/** What is shown, from what was gathered: fit, then frame, with the receipt. Writes nothing; the same input gives the same bytes. */
export function compose(
  gathered: Gathered,
  profile: Profile,
  renderer: Renderer,
  { budget, framing: wanted, provider }: Composition,
): Composed {
  const wish = feesOf(profile, renderer, wanted, provider)
  // in a budget so small that the words of the framing would crowd out what they frame, memory is shown without them
  const framing = wish.words <= budget / 4 ? wanted : 'sections'
  const fitted = fit(
    gathered,
    budget,
    renderer,
    framing === wanted ? wish : feesOf(profile, renderer, framing, provider),
  )
  const { messages, text, cacheable } = frame(fitted, profile, framing, renderer)
  const degraded = [...(notesIn(gathered.head.derived)?.faults ?? [])]
  if (framing !== wanted) degraded.unshift({ step: 'framing', why: `no room for the words of the ${wanted} framing` })
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
    knowledge: fitted.told
      .filter(({ derived }) => derived.kind === 'knowledge' && (gathered.origins.get(derived) ?? 'scope') === 'scope')
      .map(({ derived }) => derived.id),
    degraded,
  }
  return { messages, text, ledger }
}

function counted({ tokenizer: { kind } }: Renderer, { said, told }: Fitted): Ledger['counted'] {
  if (kind === 'estimate') return 'estimated'
  return kind === 'exact' && said.every(isExact) && told.every(isExact) ? 'exact' : 'bounded'
}

const isExact = ({ form }: Piece): boolean => form.exact
