// Patterns that indicate how much a sentence matters.

/** Weekdays, months and relative dates. */
export const day =
  /\b(?:jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|aug(?:ust)?|sept(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|(?:mon|tues|wednes|thurs|fri|satur|sun)day|yesterday|today|tomorrow|tonight|ago|weeks?|weekend|months?|years?)\b/gi
/** Numbers in digits or words. */
export const amount =
  /\d+|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|once|twice|first|second|third|dozen)\b/gi
/** Capitalised words inside a sentence. */
export const name = /(?<=[\p{Ll}\d,;] )\p{Lu}\p{Ll}/gu
export const firstPerson = /\b(?:I|[Mm]y|[Mm]e|[Mm]ine|[Ww]e|[Oo]ur|us)\b/
/** Paths, members, URLs and code. */
export const identifier = /\w[_/]\w|\w\.\w|[a-z][A-Z]|:\/\/|`/

/** Counts the matches of a global pattern, up to a limit. */
export function upTo(limit: number, text: string, pattern: RegExp): number {
  let count = 0
  pattern.lastIndex = 0
  while (count < limit && pattern.test(text)) count++
  return count
}

const questionMark = /[?\u037e\u061f\uff1f][^?\u037e\u061f\uff1f\n]{0,120}$/u
const questionWord =
  /^\s*(?:what|when|where|who|whom|whose|which|why|how|did|do|does|is|are|was|were|has|have|had|can|could|would|will|should|am)\b/i
const orderWithDo = /^\s*do (?:it|this|that|so|not|the|them)\b/i

/** Tells whether a text asks a question rather than gives an order. Looks at its first line and its end. */
export function isQuestion(text: string): boolean {
  const [firstLine = ''] = text.slice(0, 200).trimStart().split('\n', 1)
  return (
    questionMark.test(text.slice(-400)) ||
    (questionWord.test(firstLine) && !orderWithDo.test(firstLine) && !/[.!:;]/.test(firstLine))
  )
}
