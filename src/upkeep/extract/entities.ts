import { findFacts } from '../../text/facts.ts'
import type { Sentence } from '../../text/sentences.ts'
import { isStopword, wordsOf } from '../../text/words.ts'
import type { TextFact } from './fields.ts'

const isUrl = /^(?:https?|ftp|wss?):\/\/[^\s/]/i
const sourceList = /^\W{0,4}(?:[a-z]+ )?(?:sources?|references?|links?|urls?)(?: urls?)?: (.+)$/i

/** Finds URLs, and listed sources without a scheme, such as a DOI. */
export function findUrls({ text, start }: Sentence): readonly TextFact[] {
  const facts: TextFact[] = []
  for (const fact of findFacts(text)) if (isUrl.test(fact.text)) facts.push(urlFact(fact.text, start + fact.start))
  if (facts.length > 0) return facts
  const list = sourceList.exec(text)?.[1] ?? ''
  const offset = start + text.length - list.length
  for (const { 0: word, index } of list.matchAll(/[^\s,;]{3,200}/g)) {
    const name = word.replace(/[.!?)]+$/, '')
    if (/^[\w(][^\s]*[\d./]/.test(name) && !/^\d+$/.test(name)) facts.push(urlFact(name, offset + index))
  }
  return facts
}

const urlFact = (value: string, from: number): TextFact => ({
  field: 'source_urls',
  key: '',
  value,
  importance: 5,
  from,
  to: from + value.length,
})

const capitalised =
  /(?<![\p{L}\p{N}\p{M}_./@#:'’-])\p{Lu}[\p{L}\p{M}\p{N}]*(?:[-'’&][\p{L}\p{N}]+)*(?: (?:of |the |de |van |von |der |del |di |da |al )?\p{Lu}[\p{L}\p{M}\p{N}]*(?:[-'’&][\p{L}\p{N}]+)*){0,4}(?![\p{L}\p{N}_@/]|[.:][\p{L}\p{N}])/gu
const camelCase = /^\p{Lu}?\p{Ll}+\p{Lu}/u
const commonWords = new Set(
  `monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november december
  english german french spanish american british european god ok tv pm am hi hey hello thanks christmas easter halloween thanksgiving mr mrs ms dr sir
  mom dad mum grandma grandpa bro lol omg wow btw fyi asap diy faq pdf url api json html css sql i'm i've i'd i'll internet web`.split(
    /\s+/,
  ),
)
/** Text before a word that does not start a sentence. */
const midSentence = /[\p{L}\p{N},)][’'”"]?\s$/u
const maxNames = 20

/**
 * Finds names of people, places, organisations and products. A capital at the start of a sentence is no evidence unless the
 * name also occurs inside another sentence. Headings are ignored, and in languages other than English single words too.
 */
export function findNames(sentences: readonly Sentence[]): readonly TextFact[] {
  const isEnglish = looksEnglish(sentences)
  const found = new Map<string, TextFact>()
  for (const { text, start } of sentences) {
    if (isHeading(text)) continue
    for (const { 0: match, index } of text.matchAll(capitalised)) {
      const { name, offset } = trimCommonWords(match)
      const position = index + offset
      const isSure =
        camelCase.test(name) || (midSentence.test(text.slice(0, position)) && (isEnglish || name.includes(' ')))
      if (!isSure || found.has(name) || !isName(name)) continue
      found.set(name, {
        field: 'entities',
        key: '',
        value: name,
        importance: 3,
        from: start + position,
        to: start + position + name.length,
      })
      if (found.size >= maxNames) return [...found.values()]
    }
  }
  return [...found.values()]
}

/** Removes common words at both ends and a possessive suffix. */
function trimCommonWords(match: string): { readonly name: string; readonly offset: number } {
  const words = match.split(' ')
  let first = 0
  while (first < words.length && isCommonWord(words[first] ?? '')) first++
  let last = words.length
  while (last > first && isCommonWord(words[last - 1] ?? '')) last--
  const offset = words.slice(0, first).reduce((sum, word) => sum + word.length + 1, 0)
  return {
    name: words
      .slice(first, last)
      .join(' ')
      .replace(/['’]s?$/, ''),
    offset: Math.min(offset, match.length),
  }
}

const isCommonWord = (word: string): boolean =>
  commonWords.has(word.toLowerCase().replace(/days$/, 'day')) ||
  isStopword(word.toLowerCase().replace('’', "'")) ||
  word.length < 2

/** Excludes words in capitals: they are emphasis or technical terms. */
const isName = (name: string): boolean => name.length > 1 && /\p{Ll}/u.test(name)

function isHeading(text: string): boolean {
  const words = text.split(/\s+/).filter((word) => /^\p{L}{4}/u.test(word))
  return /^\s*#/.test(text) || (words.length > 2 && words.every((word) => /^\p{Lu}/u.test(word)))
}

function looksEnglish(sentences: readonly Sentence[]): boolean {
  const words = sentences.slice(0, 20).flatMap(({ text }) => wordsOf(text.slice(0, 400)))
  return words.filter(isStopword).length * 7 >= words.length
}
