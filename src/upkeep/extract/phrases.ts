import { isStopword } from '../../text/words.ts'

const accented = /[\u00c0-\u017f\u2018\u2019\u00b4]/g
const foldCharacter = (character: string): string =>
  /[\u2018\u2019\u00b4]/.test(character) ? "'" : character.normalize('NFD').charAt(0)

/** Removes accents and curly apostrophes. The result has the same length, so positions stay valid. */
export const foldText = (text: string): string => text.replace(accented, foldCharacter)

export const maxValueChars = 300
const maxKeyChars = 48

/**
 * Matches at the end of a text only, and reads backwards from there: every other start would be tried. A phrase and the
 * word that it ends with are one alternative: a lookbehind may try `now` before `right now`, whatever their order.
 */
const trailingFiller =
  /$(?<=((?:[\s,.;:!?…"'”’)*_-]|\s(?:(?:right\s{1,4})?now|please|too|instead|thanks|though|as well|anyway|anymore|any more|these days|so much|a lot|again|lately|from now on|btw|lol|haha|bitte|danke|s'il te plait|svp|stp|por favor|alsjeblieft))+))/i

/** Trims trailing punctuation and filler words: `light mode now, please` becomes `light mode`. */
export function trimPhrase(text: string): string {
  const length = trailingFiller.exec(text)?.[1]?.length ?? 0
  return closeQuote(text.slice(0, text.length - length), text).trim()
}

/** Restores the quotation mark that closes a quotation at the end of a shortened text. */
export const closeQuote = (shortened: string, text: string): string =>
  text.charAt(shortened.length) === '"' && shortened.split('"').length % 2 === 0 ? `${shortened}"` : shortened

/** Truncates a text to `maxValueChars` at the end of a clause, or else between two words. */
export function truncateValue(text: string): string {
  if (text.length <= maxValueChars) return text
  const head = text.slice(0, maxValueChars)
  const clause = Math.max(head.lastIndexOf(', '), head.lastIndexOf('; '), head.lastIndexOf('. '))
  const cut = clause > maxValueChars / 3 ? clause : head.lastIndexOf(' ')
  return trimPhrase(cut > 0 ? head.slice(0, cut) : head)
}

/** Lists the words of a text except stop words, in lower case. */
export const contentWords = (text: string): readonly string[] =>
  (text.toLowerCase().match(/[\p{L}\p{N}](?:[\p{L}\p{N}\p{M}+#]|['’./-](?=[\p{L}\p{N}]))*/gu) ?? []).filter(
    (word) => !isStopword(word.replace('’', "'")),
  )

/** Derives a key from the first content words of a text: `deploy_fridays`. */
export const keyFromText = (text: string, words = 3): string =>
  foldText(contentWords(text).slice(0, words).join('_')).slice(0, maxKeyChars)

/** Matches the rest of a phrase after its noun. */
const phraseTail =
  /(?:[,;:(]|\s(?:of|in|for|with|on|at|when|while|from|by|as|because|to|that|which|where|who|over|and|or|like|such|than|if|during|after|before|since|using|about|into|due)\s).*/is

/** Removes qualifiers from a phrase: `window seats with a view` becomes `window seats`. */
export const nounPhrase = (phrase: string): string => trimPhrase(phrase.replace(phraseTail, ''))

/** Returns the head word of a phrase: `seats` for `window seats with a view`. */
export const headWord = (phrase: string): string => contentWords(nounPhrase(phrase)).at(-1) ?? ''
