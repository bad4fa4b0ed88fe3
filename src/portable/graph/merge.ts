import type { Scope } from '../../domain/key.ts'
import type { GraphRow, GraphWrite, HeldRow } from '../../graph/archive.ts'
import type { Node } from '../../graph/graph.ts'
import type { EntityRow, RelationshipRow } from '../../graph/rows.ts'
import { canonical } from '../canonical.ts'

/** What joins two graphs: rows that are written in any case, and those that the store has with other contents, by their names. */
export type Merge = { readonly writes: readonly GraphWrite[]; readonly others: readonly Other[] }
export type Other = { readonly name: string; readonly write: GraphWrite }

type Step = { readonly write?: GraphWrite; readonly other?: Other }

/**
 * Decides what of a graph has to be written so that a store that may have a graph has both: nothing is lost, and what
 * both have is there once. What the reference server would keep twice is there as often as in whichever has it more often.
 */
export function merge(held: readonly HeldRow[], came: readonly GraphRow[]): Merge {
  const known = new Map<string, HeldRow>()
  const heldNumber = numbering()
  for (const one of held) known.set(heldNumber(one.row), one)
  const number = numbering()
  const steps = came.map((row) => stepOf(known.get(number(row)), row))
  return { writes: steps.flatMap(({ write }) => write ?? []), others: steps.flatMap(({ other }) => other ?? []) }
}

/** What a store has with other contents, as a user is told. */
export const namesIn = (scope: Scope, { others }: Merge): readonly string[] =>
  others.map(({ name }) => `${name} of ${scope}`)

/** Names rows so that those of the same name are the same one, in either graph. */
function numbering(): (row: GraphRow) => string {
  const seen = new Map<string, number>()
  return (row) => {
    const name = canonical(identityOf(row))
    const times = (seen.get(name) ?? 0) + 1
    seen.set(name, times)
    return `${times} ${name}`
  }
}

function identityOf(row: GraphRow): readonly unknown[] {
  if ('entity' in row) return ['entity', row.entity.id]
  if ('relationship' in row) return ['relationship', row.relationship.from, row.relationship.type, row.relationship.to]
  if ('node' in row) return ['node', row.node.name]
  return 'link' in row ? ['link', row.link] : ['adopted']
}

function stepOf(held: HeldRow | undefined, row: GraphRow): Step {
  if (held === undefined) return { write: { row } }
  const { place, row: before } = held
  if ('entity' in row && 'entity' in before) return entityStep(place, before.entity, row.entity)
  if ('relationship' in row && 'relationship' in before)
    return relationshipStep(place, before.relationship, row.relationship)
  return 'node' in row && 'node' in before ? nodeStep(place, before.node, row.node) : {}
}

function entityStep(place: number, held: EntityRow, came: EntityRow): Step {
  const says = ({ type, properties }: EntityRow): string => canonical([type, properties])
  // What stands in a row is bound to the name it is looked up by.
  if (says(held) !== says(came))
    return { other: { name: `the entity ${came.id}`, write: { place, row: { entity: { ...came, id: held.id } } } } }
  const drawn = new Map([...held.origins, ...came.origins].map((origin) => [canonical(origin), origin]))
  if (drawn.size === held.origins.length) return {}
  return { write: { place, row: { entity: { ...held, origins: [...drawn.values()] } } } }
}

function relationshipStep(place: number, held: RelationshipRow, came: RelationshipRow): Step {
  const says = ({ properties, session }: RelationshipRow): string => canonical([properties, session ?? null])
  if (says(held) === says(came)) return {}
  const { from, to, type } = held
  return {
    other: {
      name: `the relationship ${from} ${type} ${to}`,
      write: { place, row: { relationship: { ...came, from, to, type } } },
    },
  }
}

function nodeStep(place: number, held: Node, came: Node): Step {
  const left = new Map<string, number>()
  for (const text of held.observations) left.set(canonical(text), (left.get(canonical(text)) ?? 0) + 1)
  const fresh = came.observations.filter((text) => {
    const times = left.get(canonical(text)) ?? 0
    left.set(canonical(text), times - 1)
    return times <= 0
  })
  const write = { place, row: { node: { ...held, observations: fresh } } }
  const isSame = canonical(held.entityType) === canonical(came.entityType)
  const other = {
    name: `the type of ${came.name}`,
    write: { place, row: { node: { ...held, entityType: came.entityType, observations: [] } } },
  }
  return { ...(fresh.length === 0 ? {} : { write }), ...(isSame ? {} : { other }) }
}
