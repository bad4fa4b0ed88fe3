import { runSync, type Work } from '../../domain/work.ts'
import type { Entity } from '../../graph/types.ts'
import { findAnchorsInSteps } from '../../text/anchors.ts'
import { clipMiddle } from '../../text/clip.ts'
import { extractTerms } from '../../text/words.ts'
import { createConstraintFinder, createTextFinder } from '../../upkeep/summarise/coverage.ts'
import {
  type Category,
  type CategoryWeights,
  type ContextItem,
  evenWeights,
  itemCategories,
  type Preservation,
} from '../item.ts'
import { type PreservationReport, restorationFromRow, workspaceRowId } from '../rows.ts'
import type { HandoffDeps } from '../settings.ts'

/** Characters compared from the start and from the end of a text. */
const maxComparedChars = 500_000

const clipForComparison = (text: string): string => clipMiddle(text, maxComparedChars, maxComparedChars)

/**
 * Measures how much of a text a restored one preserves: the similarity of wording, which is the TF-IDF cosine of the
 * text with the part of its stemmed terms that is shown, and the share of its facts that occur verbatim. Both are 1 for
 * a text that is shown completely, whatever else is shown.
 *
 * @example
 * measurePreservation('Deploy src/app.ts to port 8080.', 'We deploy to port 8080.') // { similarity: 0.70…, facts: 0.5 }
 */
export const measurePreservation = (original: string, restored: string): Preservation =>
  runSync(measurePreservationInSteps(original, restored))

/** `measurePreservation` as interruptible work. */
export function* measurePreservationInSteps(original: string, restored: string): Work<Preservation> {
  const after = clipForComparison(restored)
  const { counts } = yield* readTerms(after)
  return yield* compareTexts(clipForComparison(original), counts, yield* createFactFinder(after))
}

/** Measures each category that has items. */
export const measurePreservationByCategory = (
  items: readonly ContextItem[],
  restored: string,
): Partial<Record<Category, Preservation>> => runSync(measureCategoriesInSteps(items, restored))

/** `measurePreservationByCategory` as interruptible work. */
export function* measureCategoriesInSteps(
  items: readonly ContextItem[],
  restored: string,
): Work<Partial<Record<Category, Preservation>>> {
  const after = clipForComparison(restored)
  const { counts: shownCounts } = yield* readTerms(after)
  const factFinder = yield* createFactFinder(after)
  const byCategory: Partial<Record<Category, Preservation>> = {}
  for (const category of itemCategories) {
    const contents = items.filter((item) => item.category === category).map(({ content }) => content)
    if (contents.length === 0) continue
    byCategory[category] = yield* compareTexts(clipForComparison(contents.join('\n')), shownCounts, factFinder)
  }
  return byCategory
}

type TermCounts = ReadonlyMap<string, number>

function* compareTexts(original: string, shownCounts: TermCounts, factFinder: FactFinder): Work<Preservation> {
  const similarity = yield* compareTerms(yield* readTerms(original), shownCounts)
  yield original.length
  return { similarity, facts: yield* shareOfFacts(original, factFinder) }
}

/** Combines similarity and facts into one number. */
export const averagePreservation = ({ similarity, facts }: Preservation): number => (similarity + facts) / 2

type TextTerms = {
  readonly counts: TermCounts
  /** Inverse document frequency over the lines of the text; unknown terms have the maximum. */
  readonly idf: (term: string) => number
}

/** Counts the terms of a text. White space ends every term, so that a text is read line by line. */
function* readTerms(text: string): Work<TextTerms> {
  const lines = text.split('\n')
  const counts = new Map<string, number>()
  const frequency = new Map<string, number>()
  for (const line of lines) {
    const lineTerms = new Set<string>()
    for (const part of splitAtSpaces(line)) {
      for (const term of extractTerms(part)) {
        counts.set(term, (counts.get(term) ?? 0) + 1)
        lineTerms.add(term)
      }
      yield part.length
    }
    for (const term of lineTerms) frequency.set(term, (frequency.get(term) ?? 0) + 1)
  }
  return { counts, idf: (term) => Math.log(1 + lines.length / (frequency.get(term) ?? 1)) }
}

const maxPartChars = 8_192
/** Characters compared of a run without a space: terms of more would take long in one piece. */
const maxRunChars = 16_384

/** Splits a line into parts of about `maxPartChars`, of which a long run without a space is the end. */
function* splitAtSpaces(line: string): Generator<string> {
  for (let start = 0; start < line.length; ) {
    const limit = start + maxPartChars
    const space = limit < line.length ? line.indexOf(' ', limit) : -1
    const end = space < 0 ? line.length : space
    const runStart = end - start > maxRunChars ? Math.max(start, line.lastIndexOf(' ', limit)) : start
    yield line.slice(start, Math.min(end, runStart + maxRunChars))
    start = end
  }
}

/** Weight of a term by logarithmic frequency: each repetition adds less than the previous one. */
const weigh = (count: number, idf: number): number => (count === 0 ? 0 : (1 + Math.log(count)) * idf)

/**
 * Cosine of the terms of a text and those of them that are shown; exactly 1 if all are. Terms that are shown more often
 * than in the text come from other parts of the restored text.
 */
function* compareTerms({ counts, idf }: TextTerms, shownCounts: TermCounts): Work<number> {
  let [product, leftSquared, rightSquared] = [0, 0, 0]
  for (const [term, count] of counts) {
    const rarity = idf(term)
    const weight = weigh(count, rarity)
    const shown = weigh(Math.min(count, shownCounts.get(term) ?? 0), rarity)
    product += weight * shown
    leftSquared += weight * weight
    rightSquared += shown * shown
    yield 1
  }
  if (product === leftSquared && leftSquared === rightSquared) return 1
  return product === 0 ? 0 : Math.min(1, product / Math.sqrt(leftSquared * rightSquared))
}

type FactFinder = { readonly hasFact: (text: string) => boolean; readonly hasConstraint: (text: string) => boolean }

function* createFactFinder(text: string): Work<FactFinder> {
  const hasFact = yield* createTextFinder(text)
  return { hasFact, hasConstraint: yield* createConstraintFinder(text) }
}

/** Returns the share of a text's distinct facts that were found; 1 if it has none. */
function* shareOfFacts(text: string, { hasFact, hasConstraint }: FactFinder): Work<number> {
  const anchors = yield* findAnchorsInSteps(text)
  const facts = new Map(anchors.map((anchor) => [`${anchor.kind} ${anchor.text}`, anchor]))
  yield text.length
  if (facts.size === 0) return 1
  let found = 0
  for (const { kind, text: fact } of facts.values()) {
    if (kind === 'constraint' ? hasConstraint(fact) : hasFact(fact)) found++
    yield fact.length
  }
  return found / facts.size
}

/** Categories with a lower average preservation get a higher weight. */
const minAverage = 0.8
const raiseFactor = 1.1
const minWeight = 0.5
const maxWeight = 2

/** Newest restores that are averaged. */
const averagedRestores = 20

/** Reads the category weights of a workspace. */
export async function readWeights({ graph }: Pick<HandoffDeps, 'graph'>, workspace: string): Promise<CategoryWeights> {
  return weightsFromRow(await graph.getEntity(workspace, workspaceRowId(workspace)))
}

function weightsFromRow(row: Entity | undefined): CategoryWeights {
  const weights = (row?.properties.weights ?? {}) as Readonly<Record<string, unknown>>
  const weightOf = (category: Category): number =>
    typeof weights[category] === 'number' ? weights[category] : evenWeights[category]
  return Object.fromEntries(itemCategories.map((category) => [category, weightOf(category)])) as CategoryWeights
}

/** Computes the weights after a restore: categories poorly preserved in recent restores are raised. */
export async function learnWeights(
  deps: HandoffDeps,
  workspace: string,
  report: PreservationReport,
): Promise<CategoryWeights> {
  const { entities } = await deps.graph.queryEntities(workspace, {
    types: ['session'],
    filters: [{ property: 'restored', op: 'exists', value: true }],
    sort: [{ by: 'created_at', order: 'desc' }],
    limit: averagedRestores,
  })
  const earlierReports = entities.map((row) => restorationFromRow(row)?.preservation)
  return adaptWeights(await readWeights(deps, workspace), averageByCategory([report, ...earlierReports]))
}

/** Averages the preservation per category; categories that never occurred are omitted. */
function averageByCategory(reports: readonly (PreservationReport | undefined)[]): Partial<Record<Category, number>> {
  const averages: Partial<Record<Category, number>> = {}
  for (const category of itemCategories) {
    const scores = reports.flatMap((report) => report?.categories[category] ?? []).map(averagePreservation)
    if (scores.length > 0) averages[category] = scores.reduce((sum, score) => sum + score, 0) / scores.length
  }
  return averages
}

/**
 * Raises the weights of poorly preserved categories by a tenth. Each weight stays within 0.5 to 2, and the sum stays
 * the number of categories, so raising all of them changes nothing.
 *
 * @example
 * adaptWeights({ code: 1, file: 1, data: 1, concept: 1, task: 1 }, { code: 0.7 }).code // 1.078…
 */
export function adaptWeights(
  weights: CategoryWeights,
  averages: Partial<Readonly<Record<Category, number>>>,
): CategoryWeights {
  const raised = itemCategories.map((category) => {
    const weight = weights[category]
    const factor = (averages[category] ?? 1) < minAverage ? raiseFactor : 1
    return clampWeight(Number.isFinite(weight) ? weight : 1) * factor
  })
  const scale = findScale(raised)
  return Object.fromEntries(
    itemCategories.map((category, index) => [category, clampWeight((raised[index] ?? 1) * scale)]),
  ) as CategoryWeights
}

const clampWeight = (weight: number): number => Math.max(minWeight, Math.min(maxWeight, weight))

/** Finds the factor by which the clamped weights sum to their number, by bisection: the sum grows with the factor. */
function findScale(weights: readonly number[]): number {
  const sum = (scale: number): number => weights.reduce((total, weight) => total + clampWeight(weight * scale), 0)
  if (Math.abs(sum(1) - weights.length) < 1e-12) return 1
  let [low, high] = [0, maxWeight / minWeight]
  for (let step = 0; step < 64; step++) {
    const middle = (low + high) / 2
    if (sum(middle) < weights.length) low = middle
    else high = middle
  }
  return high
}
