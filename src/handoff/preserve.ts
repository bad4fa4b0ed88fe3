import { anchorsIn } from '../text/anchors.ts'
import { clipMiddle } from '../text/clip.ts'
import { termsOf } from '../text/words.ts'
import { constraintsIn, finderIn } from '../upkeep/summarise/coverage.ts'
import { type Category, type ContextItem, categories, type Weights } from './item.ts'

/** How much of a text another one keeps, each from 0 to 1: what it is about, and its names, numbers, paths and constraints. */
export type Preservation = { readonly similarity: number; readonly facts: number }

/** So many characters of a text are compared, from its beginning and its end. */
const most = 500_000

/**
 * How much of the original a restored text keeps: the cosine of their words, stemmed and weighted by how rare they are in the
 * original, and the share of its facts that are there to the letter.
 *
 * @example
 * preservation('Deploy src/app.ts to port 8080.', 'We deploy to port 8080.') // { similarity: 0.65…, facts: 0.5 }
 */
export function preservation(original: string, restored: string): Preservation {
  const [before, after] = [clipMiddle(original, most, most), clipMiddle(restored, most, most)]
  const rarity = rarityIn(before)
  return {
    similarity: cosine(weighted(before, rarity), weighted(after, rarity)),
    facts: factsKept(before, keeperIn(after)),
  }
}

/** The same for each category that has items: what else the restored text speaks of counts for nothing. */
export function preservationOf(
  items: readonly ContextItem[],
  restored: string,
): Partial<Record<Category, Preservation>> {
  const after = clipMiddle(restored, most, most)
  const keeps = keeperIn(after)
  const found: Partial<Record<Category, Preservation>> = {}
  for (const category of categories) {
    const own = items.filter((item) => item.category === category).map(({ content }) => content)
    if (own.length === 0) continue
    const before = clipMiddle(own.join('\n'), most, most)
    const rarity = rarityIn(before)
    const known = weighted(before, rarity)
    const kept = new Map([...weighted(after, rarity)].filter(([term]) => known.has(term)))
    found[category] = { similarity: cosine(known, kept), facts: factsKept(before, keeps) }
  }
  return found
}

/** How well something was preserved, as one number. */
export const averageOf = ({ similarity, facts }: Preservation): number => (similarity + facts) / 2

/** How rare each term is among the lines of a text; one that is not in it is as rare as can be. */
function rarityIn(text: string): (term: string) => number {
  const lines = text.split('\n')
  const frequency = new Map<string, number>()
  for (const line of lines)
    for (const term of new Set(termsOf(line))) frequency.set(term, (frequency.get(term) ?? 0) + 1)
  return (term) => Math.log(1 + lines.length / (frequency.get(term) ?? 1))
}

function weighted(text: string, rarity: (term: string) => number): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const term of termsOf(text)) counts.set(term, (counts.get(term) ?? 0) + 1)
  // the tenth time a word is said adds less than the second
  return new Map([...counts].map(([term, count]) => [term, (1 + Math.log(count)) * rarity(term)]))
}

function cosine(left: ReadonlyMap<string, number>, right: ReadonlyMap<string, number>): number {
  if (left.size === 0) return 1
  let product = 0
  for (const [term, weight] of left) product += weight * (right.get(term) ?? 0)
  const length = (vector: ReadonlyMap<string, number>): number =>
    Math.sqrt([...vector.values()].reduce((sum, weight) => sum + weight * weight, 0))
  return product === 0 ? 0 : Math.min(1, product / (length(left) * length(right)))
}

type Keeps = { readonly fact: (text: string) => boolean; readonly constraint: (text: string) => boolean }

const keeperIn = (text: string): Keeps => ({ fact: finderIn(text), constraint: constraintsIn(text) })

/** The share of the different facts of a text that are kept; of none, all are. */
function factsKept(text: string, keeps: Keeps): number {
  const facts = new Map(anchorsIn(text).map((anchor) => [`${anchor.kind} ${anchor.text}`, anchor]))
  if (facts.size === 0) return 1
  let kept = 0
  for (const { kind, text: fact } of facts.values())
    if (kind === 'constraint' ? keeps.constraint(fact) : keeps.fact(fact)) kept++
  return kept / facts.size
}

/** A category that averages less is not preserved well enough, and weighs so much more from then on. */
const enough = 0.8
const raise = 1.1
const bounds = { least: 0.5, most: 2 }

/**
 * Weights in which categories that are not preserved well enough count a tenth more. Each stays from 0.5 to 2, and together
 * they are as many as there are categories, so that raising all of them raises none.
 *
 * @example
 * adapted({ code: 1, file: 1, data: 1, concept: 1, task: 1 }, { code: 0.7 }).code // 1.078…
 */
export function adapted(weights: Weights, averages: Partial<Readonly<Record<Category, number>>>): Weights {
  const raised = categories.map((category) => {
    const weight = weights[category]
    return bounded(Number.isFinite(weight) ? weight : 1) * ((averages[category] ?? 1) < enough ? raise : 1)
  })
  const scale = scaleOf(raised)
  return Object.fromEntries(categories.map((category, at) => [category, bounded((raised[at] ?? 1) * scale)])) as Record<
    Category,
    number
  >
}

const bounded = (weight: number): number => Math.max(bounds.least, Math.min(bounds.most, weight))

/** By what weights are multiplied so that they sum up to their number once they are bounded: found by halves, since the sum only grows with it. */
function scaleOf(weights: readonly number[]): number {
  const sum = (scale: number): number => weights.reduce((total, weight) => total + bounded(weight * scale), 0)
  if (Math.abs(sum(1) - weights.length) < 1e-12) return 1
  let [low, high] = [0, bounds.most / bounds.least]
  for (let step = 0; step < 64; step++) {
    const middle = (low + high) / 2
    if (sum(middle) < weights.length) low = middle
    else high = middle
  }
  return high
}
