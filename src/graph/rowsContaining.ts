import { listJsonTexts } from '../text/json.ts'
import type { GraphRow, StoredGraphRow } from './types.ts'

type MatchedKind = 'entity' | 'relationship' | 'node' | 'link' | 'nodeOfObservation'

/**
 * Finds the row ids of rows that contain one of the texts in a name, type, property or observation. `nodeOfObservation`
 * are nodes of which only observations contain one.
 */
export function rowsContaining(
  rows: readonly StoredGraphRow[],
  texts: readonly string[],
): Readonly<Record<MatchedKind, readonly number[]>> {
  const matches = (value: unknown): boolean => listJsonTexts(value).some((text) => containsAny(text, texts))
  const rowIdsOf = (predicate: (row: GraphRow) => boolean): readonly number[] =>
    rows.filter(({ row }) => predicate(row)).map(({ rowId }) => rowId)
  const isMatchingNode = (row: GraphRow): boolean => 'node' in row && matches([row.node.name, row.node.entityType])
  return {
    entity: rowIdsOf((row) => 'entity' in row && matches([row.entity.id, row.entity.type, row.entity.properties])),
    relationship: rowIdsOf(
      (row) =>
        'relationship' in row &&
        matches([row.relationship.from, row.relationship.to, row.relationship.type, row.relationship.properties]),
    ),
    node: rowIdsOf(isMatchingNode),
    link: rowIdsOf((row) => 'link' in row && matches(Object.values(row.link))),
    nodeOfObservation: rowIdsOf((row) => 'node' in row && !isMatchingNode(row) && matches(row.node.observations)),
  }
}

/** Ignores case. */
export function containsAny(text: string, searched: readonly string[]): boolean {
  const lowerCase = text.toLowerCase()
  return searched.some((one) => lowerCase.includes(one.toLowerCase()))
}
