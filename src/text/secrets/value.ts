/** A value as it is written after its name. */
export type Written = { readonly start: number; readonly end: number; readonly isQuoted: boolean }

/** More is not needed to tell whether it is a secret. */
const longest = 500
const tail = /[^\s"'`⟨]*/y
// Inside a string of a string the quotes are escaped: it ends at a quote with as many backslashes as it began with.
const quoted = /(\\{0,7})(["'`])(?:(?!(?<!\\)\1\2)[^\n]){0,500}/y
/** A comma, a bracket or a quote belongs to a bare value when neither a space nor another name follows it: `Password=a;b;Port=1`. */
const bare =
  /^[“‘«„]?(?:[^\s"'`<,;&)}\]\\“”’»⟨]+|["'`<,;&)}\]](?![\s"'`<>,;&)}\]\\/]|$|[\w. -]{1,30}[=:])|\\(?![nrt"'\\]))+/
const opening = /^[“‘«„]/
const closing = /[.,:;?)\]}。，；？]+$/

/** What stands at this place: the inside of a string, or everything up to the next space. */
export function valueAt(text: string, at: number): Written {
  quoted.lastIndex = at
  const string = quoted.exec(text)
  if (string !== null) return { start: at + `${string[1]}${string[2]}`.length, end: quoted.lastIndex, isQuoted: true }
  const word = (bare.exec(text.slice(at, at + longest))?.[0] ?? '').replace(closing, '')
  const isQuoted = opening.test(word)
  return { start: at + Number(isQuoted), end: at + word.length, isQuoted }
}

/** Where a secret ends that may be longer than was looked at. */
export function endOfWhole(text: string, { start, end }: Written): number {
  tail.lastIndex = end
  return end - start > longest - 10 && tail.test(text) ? tail.lastIndex : end
}
