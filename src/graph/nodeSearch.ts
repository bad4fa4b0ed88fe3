import type { Node } from './graph.ts'

/** Characters of a query that go to the trigram index; more would not narrow the candidates further. */
const maxIndexedChars = 24

/** Builds the searched text of a row: lower-cased by JavaScript's rules, text by text, as the reference server does. */
export const searchTextOf = (...texts: readonly string[]): string =>
  // SQLite's trigram index stops at a NUL.
  texts
    .map((text) => text.toLowerCase())
    .join('\n')
    .replaceAll('\0', '\ufffd')

/** True if the name, type or an observation of a node contains a lower-case text. */
export const nodeContains = ({ name, entityType, observations }: Node, lowerCaseText: string): boolean =>
  [name, entityType, ...observations].some((text) => text.toLowerCase().includes(lowerCaseText))

/**
 * Builds a condition on `graph_node` that selects a superset of the nodes containing a lower-case text. Parameter 1 is the
 * workspace id; `values` are the parameters from 2 on.
 */
export function candidateCondition(lowerCaseText: string): {
  readonly where: string
  readonly values: readonly string[]
} {
  // A lone surrogate matches inside a JavaScript string but cannot be stored in the file, so scan all nodes.
  if (lowerCaseText === '' || !lowerCaseText.isWellFormed() || lowerCaseText.includes('\0'))
    return { where: 'home = ?1', values: [] }
  const chars = [...lowerCaseText].slice(0, maxIndexedChars)
  if (chars.length < 3) return { where: containsCondition('', ''), values: [lowerCaseText] }
  const trigrams = chars.slice(2).map((_, index) => quote(chars.slice(index, index + 3).join('')))
  return {
    where: containsCondition(indexCondition('graph_node'), indexCondition('graph_observation')),
    values: [lowerCaseText, trigrams.join(' AND ')],
  }
}

/** Matches nodes by their own row or by an observation. The unary plus keeps SQLite from scanning all nodes of the workspace. */
const containsCondition = (nodes: string, observations: string): string => `+home = ?1 AND place IN (
  SELECT place FROM graph_node WHERE instr(lower, ?2) > 0 ${nodes}
  UNION SELECT node FROM graph_observation WHERE instr(lower, ?2) > 0 ${observations})`

/** Restricts a table to rows that contain all trigrams, in any order. */
const indexCondition = (table: string): string =>
  `AND place IN (SELECT rowid FROM ${table}_words WHERE ${table}_words MATCH ?3)`

const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`
