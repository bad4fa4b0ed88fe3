import type { Work } from '../domain/work.ts'
import { listJsonTexts } from '../text/json.ts'
import type { GraphRow, StoredGraphRow } from './types.ts'

type MatchedKind = 'entity' | 'relationship' | 'node' | 'link' | 'nodeOfObservation'
/** Row ids; `nodeOfObservation` are nodes of which only observations match. */
export type RowsContaining = Readonly<Record<MatchedKind, readonly number[]>>

/** Finds the rows that contain one of the texts in a name, type, property or observation. Interruptible work. */
export function* rowsContainingInSteps(
  rows: readonly StoredGraphRow[],
  texts: readonly string[],
): Work<RowsContaining> {
  const found: Record<MatchedKind, number[]> = {
    entity: [],
    relationship: [],
    node: [],
    link: [],
    nodeOfObservation: [],
  }
  const lowerCase = texts.map((text) => text.toLowerCase())
  for (const { row, rowId } of rows) {
    for (const [kind, value] of searchedValues(row)) {
      const values = listJsonTexts(value)
      const isMatch = values.some((text) => containsAny(text, lowerCase))
      if (isMatch) found[kind].push(rowId)
      yield rowWork + values.reduce((sum, text) => sum + valueWork + text.length / searchingSpeed, 0)
      if (isMatch) break
    }
  }
  return found
}

/** Costs of looking at a row and at a value, in characters. */
const rowWork = 10
const valueWork = 1
/** Characters compared in the time in which other work processes one. */
const searchingSpeed = 64

/** Values of a row in which a text is searched, with the kind of a row that contains it there. */
function searchedValues(row: GraphRow): readonly (readonly [MatchedKind, unknown])[] {
  if ('entity' in row) return [['entity', [row.entity.id, row.entity.type, row.entity.properties]]]
  if ('link' in row) return [['link', Object.values(row.link)]]
  if ('relationship' in row) {
    const { from, to, type, properties } = row.relationship
    return [['relationship', [from, to, type, properties]]]
  }
  if (!('node' in row)) return []
  const { name, entityType, observations } = row.node
  return [
    ['node', [name, entityType]],
    ['nodeOfObservation', observations],
  ]
}

/** True if a text contains one of the searched texts, ignoring case. */
export function containsAny(text: string, searched: readonly string[]): boolean {
  const lowerCase = text.toLowerCase()
  return searched.some((one) => lowerCase.includes(one.toLowerCase()))
}
