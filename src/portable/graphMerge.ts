import type { Scope } from '../domain/key.ts'
import type { Work } from '../domain/work.ts'
import type { EntityRow, GraphNode, GraphRow, GraphWrite, RelationshipRow, StoredGraphRow } from '../graph/types.ts'
import { toCanonicalJson } from './canonical.ts'

/** The result of merging two graphs: rows to write, and rows that the store has with different contents. */
export type GraphMerge = { readonly writes: readonly GraphWrite[]; readonly conflicts: readonly GraphConflict[] }
/** A row with different contents; `write` replaces the stored one. */
export type GraphConflict = { readonly name: string; readonly write: GraphWrite }

type RowMerge = { readonly write?: GraphWrite; readonly conflict?: GraphConflict }

/** Cost of comparing a row, in characters. */
const rowWork = 100

/**
 * Decides which imported rows to write so that the store contains both graphs and rows of both only once. Rows may
 * occur several times, as in the reference server; the result has each as often as the graph that has it more often.
 * Interruptible work.
 */
export function* mergeGraphs(stored: readonly StoredGraphRow[], imported: readonly GraphRow[]): Work<GraphMerge> {
  const identifyStored = createRowIdentifier()
  const storedById = new Map<string, StoredGraphRow>()
  for (const row of stored) {
    storedById.set(identifyStored(row.row), row)
    yield rowWork
  }
  const identifyImported = createRowIdentifier()
  const [writes, conflicts]: [GraphWrite[], GraphConflict[]] = [[], []]
  for (const row of imported) {
    const { write, conflict } = mergeRow(storedById.get(identifyImported(row)), row)
    if (write !== undefined) writes.push(write)
    if (conflict !== undefined) conflicts.push(conflict)
    yield rowWork
  }
  return { writes, conflicts }
}

/** Formats conflicts for users. */
export const formatConflicts = (scope: Scope, { conflicts }: GraphMerge): readonly string[] =>
  conflicts.map(({ name }) => `${name} of ${scope}`)

/** Creates a function that returns the same id for corresponding rows of two graphs; repeated rows are numbered. */
function createRowIdentifier(): (row: GraphRow) => string {
  const counts = new Map<string, number>()
  return (row) => {
    const identity = toCanonicalJson(identityOf(row))
    const count = (counts.get(identity) ?? 0) + 1
    counts.set(identity, count)
    return `${count} ${identity}`
  }
}

function identityOf(row: GraphRow): readonly unknown[] {
  if ('entity' in row) return ['entity', row.entity.id]
  if ('relationship' in row) return ['relationship', row.relationship.from, row.relationship.type, row.relationship.to]
  if ('node' in row) return ['node', row.node.name]
  return 'link' in row ? ['link', row.link] : ['adopted']
}

function mergeRow(stored: StoredGraphRow | undefined, imported: GraphRow): RowMerge {
  if (stored === undefined) return { write: { row: imported } }
  const { rowId, row } = stored
  if ('entity' in imported && 'entity' in row) return mergeEntity(rowId, row.entity, imported.entity)
  if ('relationship' in imported && 'relationship' in row)
    return mergeRelationship(rowId, row.relationship, imported.relationship)
  return 'node' in imported && 'node' in row ? mergeNode(rowId, row.node, imported.node) : {}
}

function mergeEntity(rowId: number, stored: EntityRow, imported: EntityRow): RowMerge {
  const contentOf = ({ type, properties }: EntityRow): string => toCanonicalJson([type, properties])
  // The stored id is kept, because encrypted rows are bound to the id under which they are looked up.
  if (contentOf(stored) !== contentOf(imported)) {
    const write = { rowId, row: { entity: { ...imported, id: stored.id } } }
    return { conflict: { name: `the entity ${imported.id}`, write } }
  }
  const origins = new Map([...stored.origins, ...imported.origins].map((origin) => [toCanonicalJson(origin), origin]))
  if (origins.size === stored.origins.length) return {}
  return { write: { rowId, row: { entity: { ...stored, origins: [...origins.values()] } } } }
}

function mergeRelationship(rowId: number, stored: RelationshipRow, imported: RelationshipRow): RowMerge {
  const contentOf = ({ properties, session }: RelationshipRow): string => toCanonicalJson([properties, session ?? null])
  if (contentOf(stored) === contentOf(imported)) return {}
  const { from, to, type } = stored
  const write = { rowId, row: { relationship: { ...imported, from, to, type } } }
  return { conflict: { name: `the relationship ${from} ${type} ${to}`, write } }
}

function mergeNode(rowId: number, stored: GraphNode, imported: GraphNode): RowMerge {
  const unmatched = new Map<string, number>()
  for (const text of stored.observations)
    unmatched.set(toCanonicalJson(text), (unmatched.get(toCanonicalJson(text)) ?? 0) + 1)
  const newObservations = imported.observations.filter((text) => {
    const count = unmatched.get(toCanonicalJson(text)) ?? 0
    unmatched.set(toCanonicalJson(text), count - 1)
    return count <= 0
  })
  const write = { rowId, row: { node: { ...stored, observations: newObservations } } }
  const hasSameType = toCanonicalJson(stored.entityType) === toCanonicalJson(imported.entityType)
  const conflict = {
    name: `the type of ${imported.name}`,
    write: { rowId, row: { node: { ...stored, entityType: imported.entityType, observations: [] } } },
  }
  return { ...(newObservations.length === 0 ? {} : { write }), ...(hasSameType ? {} : { conflict }) }
}
