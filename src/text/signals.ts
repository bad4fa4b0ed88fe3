// What makes a sentence worth keeping.

/** Days, months and how long ago something was. */
export const day =
  /\b(?:jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|aug(?:ust)?|sept(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|(?:mon|tues|wednes|thurs|fri|satur|sun)day|yesterday|today|tomorrow|tonight|ago|weeks?|weekend|months?|years?)\b/gi
/** Numbers, in digits or in words. */
export const amount =
  /\d+|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|once|twice|first|second|third|dozen)\b/gi
/** Names in the midst of a sentence. */
export const name = /(?<=[\p{Ll}\d,;] )\p{Lu}\p{Ll}/gu
/** Somebody speaks of themselves. */
export const firstPerson = /\b(?:I|[Mm]y|[Mm]e|[Mm]ine|[Ww]e|[Oo]ur|us)\b/
/** Names of a machine: paths, members, addresses, code. */
export const identifier = /\w[_/]\w|\w\.\w|[a-z][A-Z]|:\/\/|`/

/** How often a pattern occurs, but no more than it counts. */
export function upTo(most: number, text: string, pattern: RegExp): number {
  let count = 0
  pattern.lastIndex = 0
  while (count < most && pattern.test(text)) count++
  return count
}
