import { allocateBudgetInSteps } from '../../src/context/allocateBudget.ts'
import type { Allocation, OverheadTable } from '../../src/context/allocation.ts'
import type { BandCandidates, BudgetPressure } from '../../src/context/claimLimits.ts'
import type { Rendering } from '../../src/context/entryText.ts'
import type { ContextCandidates } from '../../src/context/gatherCandidates.ts'
import { type Renderer, singleUnit, type Unit } from '../../src/context/render.ts'
import type { DerivedEntry, Message, Summary } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import type { Band, RenderStep } from '../../src/domain/profile.ts'
import { createEmptyHead, type SessionHead } from '../../src/domain/session.ts'
import { runSync, type Work } from '../../src/domain/work.ts'

export const createMessage = (sequence: number, tokens: number, more: Partial<Message> = {}): Message => ({
  kind: 'message',
  id: `m${sequence}`,
  sequence,
  ...{ at: sequence, offset: 0, role: 'user', content: 'word '.repeat(tokens), tokenizer: 'none' },
  ...{ tokens, lineTokens: tokens, weight: tokens, ...more },
})
export const createUnit = (sequence: number, tokens: number, more: Partial<Message> = {}): Unit =>
  singleUnit(createMessage(sequence, tokens, more))
/** A derived entry that costs as many tokens as its version number says. */
export const createSummary = (id: string, tokens: number): Summary => ({
  kind: 'summary',
  id,
  ...{ at: 1, tier: 'hour', text: id, covers: [0, 0], endOffset: 0, version: tokens, by: 'test', sources: [] },
  lossyRanges: [],
})
export const createBand = (name: string, claim: Band['claim'], more: Partial<Band> = {}): Band => ({
  name,
  claim,
  renderings: [{ as: 'whole' }],
  priority: 1,
  renderAs: 'turns',
  ...more,
})
export const candidatesOf = (
  band: Band,
  units: readonly Unit[],
  more: Partial<BandCandidates> = {},
): BandCandidates => ({ band, units, derived: [], limit: Number.MAX_SAFE_INTEGER, shortenedRuns: [], ...more })

export const noPressure: BudgetPressure = {
  window: undefined,
  history: 0,
  due: false,
  compressed: [],
  dropped: [],
  promoted: [],
}
export const headOf = (messages: readonly Message[]): SessionHead => ({
  ...createEmptyHead(parseKey('acme:ann'), 0),
  messages: messages.length,
  lastSequence: messages.at(-1)?.sequence ?? 0,
  recent: messages,
})

const minCutTokens = 6
/** A rendering; the text is the mode. */
const rendering = (tokens: number, shortened: boolean, mode?: unknown): Rendering => ({
  text: JSON.stringify(mode) ?? '',
  chat: [],
  tokens,
  shortened,
  exact: true,
})

/** A renderer in which every form has a round number of tokens: `squeeze` takes half, `fit` and `end` all they get. */
const renderer = {
  *renderUnitInSteps({ messages }: Unit, mode: unknown, step: RenderStep, maxTokens: number): Work<Rendering | null> {
    const whole = messages.reduce((sum, { tokens }) => sum + tokens, 0)
    const canBeWhole = step.as === 'whole' || step.as === 'fit' || step.as === 'end'
    if (canBeWhole && whole <= maxTokens) return rendering(whole, false, mode)
    if (step.as === 'whole') return null
    if (canBeWhole) return maxTokens < minCutTokens ? null : rendering(maxTokens, true, mode)
    const tokens = step.as === 'clip' ? Math.min(whole, step.characters) : whole / 2
    return tokens <= maxTokens ? rendering(tokens, true, mode) : null
  },
  // biome-ignore lint/correctness/useYield: these renderings need no pauses
  *renderShortest({ messages }: Unit): Work<Rendering> {
    return rendering(Math.min(minCutTokens, messages[0]?.tokens ?? 0), true)
  },
  // biome-ignore lint/correctness/useYield: these renderings need no pauses
  *renderDerived(entry: DerivedEntry, step: RenderStep, maxTokens: number): Work<Rendering | null> {
    const whole = (entry as Summary).version
    if (whole === 0) return null
    if (step.as === 'whole' || whole <= maxTokens) return whole <= maxTokens ? rendering(whole, false) : null
    return rendering(maxTokens, true)
  },
  renderPassages: (_: Message, passages: readonly (readonly [number, number])[], _mode: unknown, maxTokens: number) => {
    const tokens = passages.reduce((sum, [start, end]) => sum + Math.ceil((end - start) / 5), 0)
    return tokens <= maxTokens ? rendering(tokens, false) : null
  },
  renderExcerpt: (_: Unit, excerpt: string, _mode: unknown, maxTokens: number) =>
    excerpt.length <= maxTokens ? rendering(excerpt.length, true) : null,
  tokenCostOf: (entry: DerivedEntry) => (entry as Summary).version,
} as unknown as Renderer

const noOverheads: OverheadTable = {
  framingTokens: 0,
  reply: { name: 'reply', tokens: 0 },
  stable: { name: 'stable', tokens: 0 },
  volatile: { name: 'volatile', tokens: 0 },
  headings: new Map(),
  dayLine: () => ({ text: '', tokens: 0 }),
}

type Input = Partial<ContextCandidates> & { readonly overheads?: Partial<OverheadTable> }

/** Allocates a budget to bands, which are filled in their order. */
export function allocate(budget: number, bands: readonly BandCandidates[], input: Input = {}): Allocation {
  const { overheads, ...more } = input
  const limited = bands.map((candidates) => ({ ...candidates, limit: Math.min(candidates.limit, budget) }))
  const sequences = [
    ...bands.flatMap(({ units }) => units),
    ...(more.newestTurn === undefined ? [] : [more.newestTurn]),
    ...(more.sinceNewestTurn ?? []),
  ].flatMap(({ messages }) => messages.map(({ sequence }) => sequence))
  const head = { ...headOf([]), lastSequence: Math.max(0, ...sequences) }
  return runSync(
    allocateBudgetInSteps(
      {
        head,
        ...{ derived: [], origins: new Map(), scores: undefined, pressure: noPressure, isQuestionStored: true },
        ...{ newestTurn: undefined, sinceNewestTurn: [], openingMessage: undefined, sentByClient: undefined },
        bands: limited,
        byPriority: limited,
        ...more,
      },
      budget,
      renderer,
      { ...noOverheads, ...overheads },
    ),
  )
}

/** The shown messages in prompt order, as `m3 whole 20`. */
export const shownMessages = ({ messages }: Allocation): readonly string[] =>
  messages.map(({ unit, renderedAs, rendering: { tokens } }) => `${unit.messages[0]?.id} ${renderedAs} ${tokens}`)
export const shownDerived = ({ derived }: Allocation): readonly string[] =>
  derived.map(({ derived: { id }, renderedAs, rendering: { tokens } }) => `${id} ${renderedAs} ${tokens}`)
export const missesOf = ({ misses }: Allocation): readonly string[] =>
  misses.map(({ run, derived, cause }) => `${run?.join('–') ?? derived?.id} ${cause}`)
