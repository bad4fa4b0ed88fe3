import type { Node } from './graph.ts'

/** More letters of a text than this are not needed to find the few rows that may hold it. */
const longest = 24

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
  if (letters.length < 3) return { where: among('', ''), values: [wanted] }
  const threes = letters.slice(2).map((_, at) => quoted(letters.slice(at, at + 3).join('')))
  return { where: among(having('graph_node'), having('graph_observation')), values: [wanted, threes.join(' AND ')] }
}

/** The nodes of a home whose own row or one of whose observations holds a text. The plus keeps SQLite from going through all nodes instead of those that were found. */
const among = (nodes: string, observations: string): string => `+home = ?1 AND place IN (
  SELECT place FROM graph_node WHERE instr(lower, ?2) > 0 ${nodes}
  UNION SELECT node FROM graph_observation WHERE instr(lower, ?2) > 0 ${observations})`

/** Only rows of a table in which all of these threes of letters stand, in whichever order. */
const having = (table: string): string =>
  `AND place IN (SELECT rowid FROM ${table}_words WHERE ${table}_words MATCH ?3)`

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`
