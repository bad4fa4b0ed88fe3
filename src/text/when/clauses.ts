/** A word of a text: in lower case, without what belongs to the sentence, and where it stands. */
export type Word = { readonly text: string; readonly start: number; readonly end: number; readonly isCapital: boolean }

/** What lies between spaces and marks; a comma or colon before a digit is part of a number. */
const run = /(?:[^\s,;:()[\]{}"“”—–!?]|[,:](?=\d))+/gu
const isJoint = (between: string): boolean => !/[^\s,]/u.test(between)

/** The words of a text, clause by clause: a phrase does not reach beyond the end of one. */
export function clausesOf(text: string): Word[][] {
  const clauses: Word[][] = []
  let end = 0
  let isOpen = false
  for (const { 0: found, index } of text.matchAll(run)) {
    const bare = withoutEnd(found)
    const word = {
      text: bare.replace(/['’]s$/u, '').toLowerCase(),
      start: index,
      end: index + bare.length,
      isCapital: /^\p{Lu}/u.test(bare),
    }
    if (isOpen && isJoint(text.slice(end, index))) clauses.at(-1)?.push(word)
    else clauses.push([word])
    end = index + found.length
    isOpen = bare.length === found.length
  }
  return clauses
}

/** Without the stops and apostrophes at its end; counted from the end, so that a long row of them costs nothing more. */
function withoutEnd(found: string): string {
  let end = found.length
  while (end > 0 && ".…'’".includes(found[end - 1] as string)) end--
  return found.slice(0, end)
}
