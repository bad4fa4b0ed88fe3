import { type Check, isObject, listOf, number, oneOf, reject, text } from '../../domain/checks.ts'
import type { Link, Node } from '../../graph/graph.ts'
import type { EntityRow, RelationshipRow } from '../../graph/rows.ts'
import { anyText, shaped } from '../shape.ts'

const properties: Check = (value, at) => {
  if (!isObject(value)) reject(at, value, 'an object')
}
const origin: Check = (value, at) => {
  listOf(anyText)(value, at)
  if ((value as readonly string[]).length !== 2) reject(at, value, 'a session and a message')
}
const written = { type: text, properties, createdAt: number, updatedAt: number }

const kinds: Readonly<Record<string, Check>> = {
  entity: shaped<EntityRow>({ ...written, id: text, origins: listOf(origin) }),
  relationship: shaped<RelationshipRow>({ ...written, from: text, to: text, 'session?': anyText }),
  node: shaped<Node>({ name: anyText, entityType: anyText, observations: listOf(anyText) }),
  link: shaped<Link>({ from: anyText, to: anyText, relationType: anyText }),
  adopted: number,
}

/** Checks a row of a graph. */
export const graphRow: Check = (value, at) => {
  const [kind, ...others] = isObject(value) ? Object.keys(value) : []
  oneOf(...Object.keys(kinds))(kind, `the kind of ${at}`)
  if (others.length > 0) reject(at, value, 'of one kind')
  kinds[kind as string]?.((value as Readonly<Record<string, unknown>>)[kind as string], `${at}.${kind}`)
}
