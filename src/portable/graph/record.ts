import { type Check, fields, isObject, listOf, number, oneOf, reject, text } from '../../domain/checks.ts'
import type { GraphRow } from '../../graph/archive.ts'
import type { Link, Node } from '../../graph/graph.ts'
import type { EntityRow, RelationshipRow } from '../../graph/rows.ts'

const anyText: Check = (value, at) => {
  if (typeof value !== 'string') reject(at, value, 'text')
}
const properties: Check = (value, at) => {
  if (!isObject(value)) reject(at, value, 'an object')
}
const origin: Check = (value, at) => {
  listOf(anyText)(value, at)
  if ((value as unknown[]).length !== 2) reject(at, value, 'a session and a message')
}
