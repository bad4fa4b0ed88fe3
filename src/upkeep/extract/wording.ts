import { isStopword } from '../../text/words.ts'

/** The most characters a value may have. */
export const longestValue = 300
const longestKey = 48

const afterthought =
  /(?:[\s,.;:!?…"'”’)*_-]|\s(?:now|please|too|instead|thanks|though|as well|anyway|anymore|any more|these days|so much|a lot|again|lately|right now|from now on|btw|lol|haha))+$/i

/** What is meant, without the words and signs it trails off with: `light mode now, please` is about `light mode`. */
export const tidy = (text: string): string => text.replace(afterthought, '').trim()

/** A text of bounded length, cut where a clause ends or else between two words. */
export function bounded(text: string): string {
  if (text.length <= longestValue) return text
  const head = text.slice(0, longestValue)
  const clause = Math.max(head.lastIndexOf(', '), head.lastIndexOf('; '), head.lastIndexOf('. '))
  const cut = clause > longestValue / 3 ? clause : head.lastIndexOf(' ')
  return tidy(cut > 0 ? head.slice(0, cut) : head)
}

/** The words of a text that mean something, in lower case, in their order. */
export const contentWords = (text: string): readonly string[] =>
  (text.toLowerCase().match(/[\p{L}\p{N}](?:[\p{L}\p{N}\p{M}+#]|['’./-](?=[\p{L}\p{N}]))*/gu) ?? []).filter(
    (word) => !isStopword(word.replace('’', "'")),
  )

/** The name of what a text is about, made of its first words that mean something: `deploy_fridays`. */
export const keyFrom = (text: string, words = 3): string =>
  contentWords(text).slice(0, words).join('_').slice(0, longestKey)

/** Where the phrase that a noun stands at the end of comes to an end. */
const tail =
  /(?:[,;:(]|\s(?:of|in|for|with|on|at|when|while|from|by|as|because|to|that|which|where|who|over|and|or|like|such|than|if|during|after|before|since|using|about|into|due)\s).*$/i

/** A phrase up to what is only said about it: `window seats` of `window seats with a view`. */
export const nounPhrase = (phrase: string): string => tidy(phrase.replace(tail, ''))

/** The word a phrase is about: `seats` of `window seats with a view`. */
export const headOf = (phrase: string): string => contentWords(nounPhrase(phrase)).at(-1) ?? ''
