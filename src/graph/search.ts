import type { Node } from './graph.ts'

/** More letters of a text than this are not needed to find the few nodes that may hold it. */
const longest = 64

/** What a text is searched by: in lower case by the rules of JavaScript, text by text, as the reference does it. */
export const haystackOf = (...texts: readonly string[]): string =>
  // SQLite's index of letters ends at a zero.
  texts
    .map((text) => text.toLowerCase())
    .join('\n')
    .replaceAll('\0', '\ufffd')

/** Whether a node's name, type or one of its observations holds a text in lower case. */
export const isFoundBy = ({ name, entityType, observations }: Node, wanted: string): boolean =>
  [name, entityType, ...observations].some((text) => text.toLowerCase().includes(wanted))

/** The rows of nodes among which all that hold a text in lower case are: the condition, whose first value is the home, and its other values. */
export function lookingFor(wanted: string): { readonly where: string; readonly values: readonly string[] } {
  // Half a letter is found in whole ones, and nothing in the file is like it.
  if (wanted === '' || !wanted.isWellFormed() || wanted.includes('\0')) return { where: 'home = ?1', values: [] }
  const letters = [...wanted].slice(0, longest)
  if (letters.length < 3) return { where: scanned, values: [wanted] }
  return { where: indexed, values: [`"${letters.join('').replaceAll('"', '""')}"`] }
}

/** The plus keeps SQLite from going through all nodes of a home instead of those that were found. */
const scanned = `+home = ?1 AND place IN (
  SELECT place FROM graph_node WHERE home = ?1 AND instr(lower, ?2) > 0
  UNION SELECT node FROM graph_observation WHERE instr(lower, ?2) > 0)`

const indexed = `+home = ?1 AND place IN (
  SELECT rowid FROM graph_node_words WHERE graph_node_words MATCH ?2
  UNION SELECT node FROM graph_observation WHERE place IN (SELECT rowid FROM graph_observation_words WHERE graph_observation_words MATCH ?2))`
