import type { HeldRow } from './archive.ts'

/** The rows that are forgotten, by their tables; `observed` are nodes of which only observations may hold what is looked for. */
export type Saying = Readonly<Record<'entity' | 'relationship' | 'node' | 'link' | 'observed', readonly number[]>>

/** Finds the rows in which one of these texts stands, in whichever case: in names, types, properties or observations. */
export function saying(held: readonly HeldRow[], texts: readonly string[]): Saying {
  const holds = (value: unknown): boolean => textsIn(value).some((text) => isSaid(text, texts))
  const placesOf = (chosen: (row: HeldRow['row']) => boolean): readonly number[] =>
    held.filter(({ row }) => chosen(row)).map(({ place }) => place)
  const isNode = (row: HeldRow['row']): boolean => 'node' in row && holds([row.node.name, row.node.entityType])
  return {
    entity: placesOf((row) => 'entity' in row && holds([row.entity.id, row.entity.type, row.entity.properties])),
    relationship: placesOf(
      (row) =>
        'relationship' in row &&
        holds([row.relationship.from, row.relationship.to, row.relationship.type, row.relationship.properties]),
    ),
    node: placesOf(isNode),
    link: placesOf((row) => 'link' in row && holds(Object.values(row.link))),
    observed: placesOf((row) => 'node' in row && !isNode(row) && holds(row.node.observations)),
  }
}

/** Whether a text holds one of these, in whichever case. */
export function isSaid(text: string, texts: readonly string[]): boolean {
  const lower = text.toLowerCase()
  return texts.some((one) => lower.includes(one.toLowerCase()))
}

/** Every text in a value, names of fields included. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [String(value)]
  return Object.entries(value).flatMap(([name, inner]) => [...(Array.isArray(value) ? [] : [name]), ...textsIn(inner)])
}
