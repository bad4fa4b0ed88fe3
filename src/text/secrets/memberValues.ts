const space = String.raw`(?:\s|\\[nrt]){0,40}`
/** Beginning of an object, a list of objects or a list of strings: `{ "value": `, `{ value: `, `[ "`. */
const containerStart = new RegExp(
  String.raw`(?:\[${space})?\{${space}\\{0,7}["'\`]?[\w$-]{1,40}\\{0,7}["'\`]?[ \t]{0,3}:|\[${space}\\{0,7}["'\`]`,
  'y',
)
/** A sign, a string between quotes with as many backslashes before each, or a bare word. */
const token = /(?:\s|\\[nrt])+|([{[])|([\]}])|(\\{0,7})(["'`])((?:(?!(?<!\\)\3\4)[^\n]){0,200})\3\4|[:,]|[\w$.+-]+/y
const nameEnd = /[ \t]{0,3}:/y
/** Characters and levels of a container that are read. */
const maxCharacters = 300
const maxLevels = 4

/** Position of a string's inside. */
export type MemberSpan = { readonly start: number; readonly end: number }

/**
 * Finds the strings of an object or list at an index, without the field names. Returns undefined if there is none.
 *
 * @example
 * findMemberValues('{ "value": "abc" }', 0) // [{ start: 12, end: 15 }]
 */
export function findMemberValues(text: string, at: number): readonly MemberSpan[] | undefined {
  containerStart.lastIndex = at
  if (!containerStart.test(text)) return undefined
  const values: MemberSpan[] = []
  let levels = 0
  token.lastIndex = at
  for (let from = at; from < at + maxCharacters; from = token.lastIndex) {
    const match = token.exec(text)
    if (match === null) break
    const { 1: opening, 2: closing, 3: escapes, 4: quote, 5: string } = match
    if (opening !== undefined && ++levels > maxLevels) break
    if (closing !== undefined && --levels === 0) break
    if (string === undefined) continue
    nameEnd.lastIndex = token.lastIndex
    const start = from + `${escapes}${quote}`.length
    if (!nameEnd.test(text)) values.push({ start, end: start + string.length })
  }
  return values
}
