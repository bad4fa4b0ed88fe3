import type { Entity } from '../graph/graph.ts'
import { type Category, categories, evenWeights, type Weights } from './item.ts'
import { adapted, averageOf } from './preserve.ts'
import { type Measured, restorationOf } from './records.ts'
import { workspaceRowId } from './save/rows.ts'
import type { HandoffParts } from './settings.ts'

/** So many of the newest restores tell how a category fares. */
const newest = 20

/** How much each category counts in a workspace. */
export async function weightsOf({ graph }: Pick<HandoffParts, 'graph'>, workspace: string): Promise<Weights> {
  return weightsIn(await graph.entity(workspace, workspaceRowId(workspace)))
}

function weightsIn(row: Entity | undefined): Weights {
  const weights = (row?.properties.weights ?? {}) as Readonly<Record<string, unknown>>
  const of = (category: Category): number =>
    typeof weights[category] === 'number' ? weights[category] : evenWeights[category]
  return Object.fromEntries(categories.map((category) => [category, of(category)])) as Weights
}

/** Learns from a restore: categories that have come through badly of late count for more from now on. */
export async function learned(parts: HandoffParts, workspace: string, measured: Measured): Promise<Weights> {
  const { entities } = await parts.graph.entities(workspace, {
    types: ['session'],
    filters: [{ property: 'restored', op: 'exists', value: true }],
    sort: [{ by: 'created_at', order: 'desc' }],
    limit: newest,
  })
  const earlier = entities.map((row) => restorationOf(row)?.preservation)
  return adapted(await weightsOf(parts, workspace), averagesOf([measured, ...earlier]))
}

/** How well each category came through, on average; what was never there has none. */
function averagesOf(all: readonly (Measured | undefined)[]): Partial<Record<Category, number>> {
  const averages: Partial<Record<Category, number>> = {}
  for (const category of categories) {
    const scores = all.flatMap((one) => one?.categories[category] ?? []).map(averageOf)
    if (scores.length > 0) averages[category] = scores.reduce((sum, score) => sum + score, 0) / scores.length
  }
  return averages
}
